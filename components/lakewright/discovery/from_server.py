"""Read projects of an environment's Lakekeeper, and write a spec for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lakewright.credentials import references
from lakewright.discovery.declaration.errors import DiscoveryError
from lakewright.discovery.declaration.storages import AccessKeys, StorageHints
from lakewright.discovery.declaration.tenant_spec import UNKNOWN_OWNER, TenantDraft, TenantNames, declare_tenant_of
from lakewright.discovery.listing.aws_roles import read_roles
from lakewright.discovery.listing.buckets import BucketFacts, read_bucket
from lakewright.discovery.listing.project_objects import ProjectObjects
from lakewright.discovery.listing.project_reading import WHOLE, list_projects, read_project
from lakewright.environment.environment import Environment
from lakewright.environment.platform import Platform
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.names.types import TenantName

_NAMED = 10
"""Projects that an error names."""
_TENANT_NAME = TypeAdapter[str](TenantName)


@dataclass(frozen=True)
class FromServerOptions:
    """Facts that a user adds to those of the servers."""

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
            options: What a person adds.

        Raises:
            DiscoveryError: There is no such project, or nothing of it can be declared.
            LakekeeperError: The server cannot be read.
        """
        found = read_project(self._client(project_id), project_id, WHOLE)
        if found is None:
            visible = [f"{name} ({known_id})" for known_id, name in sorted(self.projects().items())]
            more = f" and {len(visible) - _NAMED} more" if len(visible) > _NAMED else ""
            known = ", ".join(visible[:_NAMED]) + more if visible else "none"
            raise DiscoveryError(f"there is no project {project_id} at {self.endpoint}; visible are: {known}")
        names = TenantNames(tenant or tenant_name(project_id, found.name), options.owner, options.environment)
        roles = read_roles(self.environment.aws, _roles(found))
        tags = self.environment.aws.tags
        hints = StorageHints(options.keys, roles, self._buckets(found, options), tags)
        defaults = Platform(self.environment, tenant=names.tenant, project_id=project_id)
        return declare_tenant_of(found, names, hints, defaults, skipped_tables=options.skipped_tables)

    def _buckets(self, found: ProjectObjects, options: FromServerOptions) -> dict[str, BucketFacts]:
        """Return the settings of the named buckets that warehouses use. Raises DiscoveryError for another name."""
        used = {str(profile.get("bucket")): profile for profile in _profiles(found)}
        if unknown := [name for name in options.buckets if name not in used]:
            names = ", ".join(sorted(used)) or "none"
            raise DiscoveryError(
                f"no warehouse of project {found.project_id} is in bucket {', '.join(unknown)}; used are: {names}"
            )
        return {name: self._bucket(used[name], options.keys) for name in options.buckets}

    def _bucket(self, profile: Mapping[str, Any], keys: AccessKeys | None) -> BucketFacts:
        if (profile.get("flavor") or "aws") == "aws":
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
        return read_bucket(bucket.resolving(self._resolve))

    def _client(self, project_id: str | None) -> Any:
        reference = self.environment.lakekeeper.reference
        return self._clients.get(reference.model_copy(update={"project_id": project_id}), self._resolve)


def tenant_name(project_id: str, project_name: str) -> str:
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


def _profiles(found: ProjectObjects) -> list[Mapping[str, Any]]:
    return [warehouse.response["storage-profile"] for warehouse in found.warehouses]


def _roles(found: ProjectObjects) -> list[str]:
    profiles = _profiles(found)
    return [
        str(profile["assume-role-arn"])
        for profile in profiles
        if profile.get("type") == "s3" and (profile.get("flavor") or "aws") == "aws" and profile.get("assume-role-arn")
    ]
