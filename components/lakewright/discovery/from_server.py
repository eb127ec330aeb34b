"""Read projects of an environment's Lakekeeper, and write a spec for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lakewright.credentials import references
from lakewright.discovery.declaration.omission import DiscoveryError
from lakewright.discovery.declaration.storages import StorageHints
from lakewright.discovery.declaration.tenant_spec import UNKNOWN_OWNER, TenantDraft, TenantNames, draft_tenant_spec
from lakewright.discovery.listing.aws_roles import read_roles
from lakewright.discovery.listing.buckets import BucketFacts, read_bucket
from lakewright.discovery.listing.project_objects import ProjectObjects
from lakewright.discovery.listing.project_reading import FULL_DEPTH, list_projects, read_project
from lakewright.environment.environment import Environment
from lakewright.environment.platform import Platform
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.names.types import TenantName
from lakewright.storage.live_storage import AccessKeys, is_in_s3, is_on_aws

_MAX_LISTED_PROJECTS = 10
"""Projects that an error names."""
_TENANT_NAME = TypeAdapter[str](TenantName)


@dataclass(frozen=True)
class FromServerOptions:
    """Facts that a user adds to the facts of the servers."""

    environment: str
    owner: str = UNKNOWN_OWNER
    keys: AccessKeys | None = None
    skipped_tables: Sequence[str] = ()
    buckets: Sequence[str] = ()
    """Buckets that the stack shall make from now on."""


class ServerReader:
    """Reads projects of one Lakekeeper with the identity of an environment."""

    def __init__(self, environment: Environment, resolve: Callable[[str], str] = references.resolve) -> None:
        """Use the environment's server. `resolve` returns the secret of a reference."""
        self.environment = environment
        self._clients = ClientPool()
        self._resolve = resolve

    @property
    def endpoint(self) -> str:
        """Address of the server."""
        return self.environment.lakekeeper.endpoint

    def projects(self) -> dict[str, str]:
        """Return the names of the visible projects by id. Raises LakekeeperError."""
        return list_projects(self._client(None))

    def draft(self, project_id: str, tenant: str | None, options: FromServerOptions) -> TenantDraft:
        """Return the spec of a project's tenant.

        Args:
            project_id: Id of the project.
            tenant: Name of the tenant. Default: from the project's id or name.
            options: Facts that a user adds.

        Raises:
            DiscoveryError: The project does not exist, or nothing of it can be declared.
            LakekeeperError: The server cannot be read.
        """
        project = read_project(self._client(project_id), project_id, FULL_DEPTH)
        if project is None:
            visible = [f"{name} ({known_id})" for known_id, name in sorted(self.projects().items())]
            more = f" and {len(visible) - _MAX_LISTED_PROJECTS} more" if len(visible) > _MAX_LISTED_PROJECTS else ""
            visible_projects = ", ".join(visible[:_MAX_LISTED_PROJECTS]) + more if visible else "none"
            raise DiscoveryError(
                f"there is no project {project_id} at {self.endpoint}; visible are: {visible_projects}"
            )
        names = TenantNames(tenant or derive_tenant_name(project_id, project.name), options.owner, options.environment)
        roles = read_roles(self.environment.aws, _list_role_arns(project))
        tags = self.environment.aws.tags
        hints = StorageHints(options.keys, roles, self._read_buckets(project, options), tags)
        defaults = Platform(self.environment, tenant=names.tenant, project_id=project_id)
        return draft_tenant_spec(project, names, hints, defaults, skipped_tables=options.skipped_tables)

    def _read_buckets(self, project: ProjectObjects, options: FromServerOptions) -> dict[str, BucketFacts]:
        """Return the settings of the named buckets that warehouses use. Raises DiscoveryError for another name."""
        used = {str(profile.get("bucket")): profile for profile in _list_profiles(project) if is_in_s3(profile)}
        if unknown := [name for name in options.buckets if name not in used]:
            names = ", ".join(sorted(used)) or "none"
            raise DiscoveryError(
                f"no warehouse of project {project.project_id} is in bucket {', '.join(unknown)}; used are: {names}"
            )
        return {name: self._read_bucket(used[name], options.keys) for name in options.buckets}

    def _read_bucket(self, profile: Mapping[str, Any], keys: AccessKeys | None) -> BucketFacts:
        if is_on_aws(profile):
            access = self.environment.aws.describe_access(profile["bucket"], profile["region"])
            bucket = OwnBucket.model_validate(access)
        elif keys is None:
            return BucketFacts(problem="name its access key with `--access-key` and `--secret-key`")
        else:
            bucket = OwnBucket(
                bucket=profile["bucket"],
                region=profile["region"],
                endpoint=str(profile.get("endpoint") or "").rstrip("/") or None,
                path_style=bool(profile.get("path-style-access")),
                access_key_id=keys.access_key_id,
                secret_access_key=keys.secret_access_key,
            )
        return read_bucket(bucket.with_resolver(self._resolve))

    def _client(self, project_id: str | None) -> Any:
        reference = self.environment.lakekeeper.reference
        return self._clients.get(reference.model_copy(update={"project_id": project_id}), self._resolve)


def derive_tenant_name(project_id: str, project_name: str) -> str:
    """Return the name of a tenant: the project's id if it fits, else the project's name as a label.

    Raises:
        DiscoveryError: Neither can be the name of a tenant.
    """
    label = re.sub(r"[^a-z0-9-]+", "-", project_name.lower()).strip("-")[:40].rstrip("-")
    for candidate in (project_id, label):
        try:
            return _TENANT_NAME.validate_python(candidate)
        except ValidationError:
            continue
    raise DiscoveryError(
        f"neither the id nor the name of project {project_id} (`{project_name}`) can name a tenant: up to 40 lower-case"
        " letters, digits and `-`, the first a letter. Choose a name with `--name`"
    )


def _list_profiles(project: ProjectObjects) -> list[Mapping[str, Any]]:
    return [warehouse.response["storage-profile"] for warehouse in project.warehouses]


def _list_role_arns(project: ProjectObjects) -> list[str]:
    profiles = _list_profiles(project)
    return [
        str(profile["assume-role-arn"])
        for profile in profiles
        if is_in_s3(profile) and is_on_aws(profile) and profile.get("assume-role-arn")
    ]
