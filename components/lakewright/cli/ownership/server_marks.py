"""Read the marks of objects on the servers of a stack's environment, and write consents to adopt them.

A bucket in a store is reached with the key that the spec names, everything else with the identity of the environment.
"""

# botocore has no types; its errors are caught only.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakewright.cli.errors import UsageError
from lakewright.ownership.consent import Consent, ConsentKind
from lakewright.ownership.mark import (
    ADOPT_TAG,
    OwnershipMark,
    UnreadableMarkError,
    parse_description,
    parse_tags,
)
from lakewright.ownership.marked_object import MarkedObject

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakewright.cli.ownership.server_access import ServerAccess
    from lakewright.environment.environment import Environment
    from lakewright.lakekeeper.api.connection.client import Client
    from lakewright.lakekeeper.api.management.record_roles import RecordRole
    from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
    from lakewright.spec import TenantSpec


@dataclass(frozen=True)
class ServerMarks:
    """The marks on the servers of one environment."""

    environment: Environment
    spec: TenantSpec | None
    """The spec of the adopting stack, which may name stores and their keys."""
    region: str | None
    resolve: Callable[[str], str]
    """Returns the secret of a reference."""

    def read(self, consent: Consent) -> OwnershipMark:
        """Return the mark of a project, shared warehouse or bucket; an empty mark if it has none or does not exist.

        Raises:
            LakekeeperError: The mark cannot be read.
        """
        from lakewright.lakekeeper.api.management import project_record  # noqa: PLC0415 - slow to load
        from lakewright.lakekeeper.buckets import bucket_mark  # noqa: PLC0415

        if consent.kind is ConsentKind.PROJECT:
            return project_record.read_mark(self._client(consent.name), consent.name)
        if consent.kind is ConsentKind.WAREHOUSE:
            marked = self._find_shared_warehouse(consent)
            return marked[1].mark if marked else OwnershipMark()
        return bucket_mark.find_marked_bucket(self._own_bucket(consent.name)).mark

    def find_endpoint(self, bucket: str) -> str | None:
        """Return the address of the store in which `read` looks for a bucket; None for AWS."""
        return self._own_bucket(bucket).endpoint

    def find_project(self, project_id: str) -> MarkedObject | None:
        """Return a project with its mark; None if it does not exist. Raises LakekeeperError."""
        from lakewright.lakekeeper.api.management import project_record, projects  # noqa: PLC0415 - slow to load

        client = self._client(project_id)
        if projects.read_name(client, project_id) is None:
            return None
        return project_record.find_marked_project(client, project_id)

    def list_warehouses(self, project_id: str) -> list[str]:
        """Return the names of the warehouses of a project. Raises LakekeeperError."""
        from lakewright.lakekeeper.api.management import warehouses  # noqa: PLC0415 - slow to load

        return sorted(str(warehouse["name"]) for warehouse in warehouses.list_all(self._client(project_id), project_id))

    def find_bucket(self, bucket: str) -> MarkedObject | None:
        """Return a bucket with its mark; None if it does not exist or cannot be read. Raises CannotCountError."""
        from lakewright.lakekeeper.buckets import bucket_mark, own_bucket  # noqa: PLC0415 - slow to load

        marked_bucket = self._own_bucket(bucket)
        return bucket_mark.find_marked_bucket(marked_bucket) if own_bucket.exists(marked_bucket) else None

    def find_role(self, name: str) -> MarkedObject | None:
        """Return an IAM role with its mark; None if it does not exist or may not be read."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

        try:
            role = self._aws.client("iam", **self._aws_endpoint).get_role(RoleName=name)["Role"]
        except (BotoCoreError, ClientError):
            return None  # the run reports it if it needs the role
        tags = {str(tag["Key"]): str(tag["Value"]) for tag in role.get("Tags", [])}
        return MarkedObject(f"IAM role `{name}`", parse_tags(tags), (Consent(ConsentKind.ROLE, name),))

    def write_consent(self, consent: Consent, stack: str) -> None:
        """Permit a stack to adopt an object.

        Args:
            consent: The object.
            stack: The adopting stack, as `PROJECT/STACK`.

        Raises:
            UsageError: The object does not exist, objects of its kind have no mark, or AWS or the store refused a call.
            LakekeeperError: The server refused a call.
        """
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

        try:
            self._write_consent(consent, stack)
        except (BotoCoreError, ClientError) as error:
            raise UsageError(f"{consent}: the consent was not written: {error}") from error

    def _write_consent(self, consent: Consent, stack: str) -> None:
        match consent.kind:
            case ConsentKind.PROJECT:
                self._permit_project(consent.name, stack)
            case ConsentKind.ROLE if "/" in consent.name:
                self._permit_catalog_role(consent, stack)
            case ConsentKind.BUCKET:
                self._permit_bucket(consent.name, stack)
            case ConsentKind.ROLE:
                tags = [{"Key": ADOPT_TAG, "Value": stack}]
                self._aws.client("iam", **self._aws_endpoint).tag_role(RoleName=consent.name, Tags=tags)
            case ConsentKind.KEY:
                client = self._aws.client("kms", **self._aws_endpoint)
                key_id = client.describe_key(KeyId=consent.name)["KeyMetadata"]["KeyId"]
                client.tag_resource(KeyId=key_id, Tags=[{"TagKey": ADOPT_TAG, "TagValue": stack}])
            case ConsentKind.WAREHOUSE:
                self._permit_warehouse(consent, stack)

    def _permit_project(self, project_id: str, stack: str) -> None:
        from lakewright.lakekeeper.api.management import project_record, projects, record_roles  # noqa: PLC0415
        from lakewright.ownership.record_role import find_recorded_warehouse  # noqa: PLC0415

        client = self._client(project_id)
        if projects.read_name(client, project_id) is None:
            raise UsageError(f"expected a project `{project_id}` at {client.endpoint}; there is none")
        mark = project_record.read_mark(client, project_id)
        if not mark.names_owner and any(map(find_recorded_warehouse, record_roles.list_records(client, project_id))):
            raise UsageError(
                f"expected warehouse={project_id}/NAME or role={project_id}/NAME: several tenants share project"
                f" {project_id}, whose objects have marks of their own"
            )
        project_record.write_mark(client, project_id, mark.permit(stack))

    def _permit_catalog_role(self, consent: Consent, stack: str) -> None:
        from lakewright.lakekeeper.api.management import roles  # noqa: PLC0415 - slow to load

        project_id, _, name = consent.name.partition("/")
        client = self._client(project_id)
        role = roles.find_by_name(client, project_id, name)
        if role is None:
            raise UsageError(f"expected a role `{name}` in project {project_id} at {client.endpoint}; there is none")
        try:
            mark = parse_description(role.get("description"))
        except UnreadableMarkError:
            raise UsageError(
                f"{consent}: the description of the role is no mark of a stack, so no consent can be written into it."
                f" To adopt the role, run `lakewright up --adopt {consent}`"
            ) from None
        roles.replace(client, project_id, str(role["id"]), str(role["name"]), mark.permit(stack).to_description())

    def _permit_warehouse(self, consent: Consent, stack: str) -> None:
        from lakewright.lakekeeper.api.management import project_record, record_roles  # noqa: PLC0415 - slow to load

        project_id, _, name = consent.name.rpartition("/")
        if not project_id or project_record.read_mark(self._client(project_id), project_id).names_owner:
            raise UsageError(
                f"expected project=ID instead of {consent}: a consent to adopt a project covers its warehouses."
                f" To adopt one warehouse, run `lakewright up --adopt {consent}`. In a shared project, name the"
                " warehouse as PROJECT/NAME"
            )
        marked = self._find_shared_warehouse(consent)
        if marked is None:
            raise UsageError(f"expected a warehouse `{name}` in project {project_id}; there is none")
        record, warehouse = marked
        record_roles.write_mark(self._client(project_id), record, warehouse.mark.permit(stack))

    def _find_shared_warehouse(self, consent: Consent) -> tuple[RecordRole, MarkedObject] | None:
        """Return the record role and the mark of `PROJECT/NAME`; None if there is no such warehouse."""
        from lakewright.lakekeeper.api.management import project_record, warehouses  # noqa: PLC0415 - slow to load
        from lakewright.lakekeeper.api.management.record_roles import RecordRole  # noqa: PLC0415

        project_id, _, name = consent.name.rpartition("/")
        client = self._client(project_id)
        warehouse = warehouses.find_by_name(client, project_id, name)
        if warehouse is None:
            return None
        record = RecordRole(project_id, warehouses.read_id(warehouse))
        return record, project_record.find_live_shared_warehouse(client, warehouse)

    def _permit_bucket(self, bucket: str, stack: str) -> None:
        from lakewright.lakekeeper.buckets import bucket_mark, own_bucket  # noqa: PLC0415 - slow to load

        marked_bucket = self._own_bucket(bucket)
        if not own_bucket.exists(marked_bucket):
            raise UsageError(f"expected {marked_bucket.where}, which does not exist or cannot be read")
        bucket_mark.write_mark(marked_bucket, bucket_mark.find_marked_bucket(marked_bucket).mark.permit(stack))

    def _client(self, project_id: str) -> Client:
        from lakewright.lakekeeper.api.connection.client import Client  # noqa: PLC0415 - slow to load

        server = self.environment.lakekeeper.reference.model_copy(update={"project_id": project_id})
        return Client(server, self.resolve)

    def _own_bucket(self, bucket: str) -> OwnBucket:
        from lakewright.lakekeeper.buckets.own_bucket import OwnBucket  # noqa: PLC0415 - slow to load

        storages = self.spec.storage.values() if self.spec else ()
        storage = next((storage for storage in storages if storage.bucket == bucket), None)
        if storage is not None and (access := storage.stack_access) is not None:
            return OwnBucket.model_validate(access).with_resolver(self.resolve)
        account = self.environment.aws
        region = getattr(storage, "region", None) or self.region or account.region or "us-east-1"
        return OwnBucket.model_validate(account.describe_access(bucket, region))

    @cached_property
    def _aws(self) -> Any:
        from lakewright.credentials.aws_session import open_aws_session  # noqa: PLC0415 - slow to load

        account = self.environment.aws
        return open_aws_session(account.profile, self.region or account.region, account.shared_credentials_file)

    @property
    def _aws_endpoint(self) -> dict[str, str]:
        endpoint = self.environment.aws.endpoint
        return {"endpoint_url": endpoint} if endpoint else {}


def open_server_marks(access: ServerAccess, stack: str, environment: str | None = None) -> ServerMarks:
    """Return the marks on the servers of a stack.

    Args:
        access: The project with the environments, and its secrets.
        stack: The stack, whose file names the environment.
        environment: Name of another environment, for a stack whose file is elsewhere.

    Raises:
        SpecError: The spec or the environment is invalid.
        UsageError: The stack has no spec, and no environment is named.
    """
    from lakewright.spec import read_stack_file  # noqa: PLC0415 - slow to load

    project = access.project
    file = project.stack_file(stack)
    spec = read_stack_file(file) if file.is_file() else None
    name = environment or (spec.environment if spec else None)
    if name is None:
        raise UsageError(f"{file} does not exist: name the servers with --environment NAME")
    region = project.stack_config(stack).values.get("aws:region")
    return ServerMarks(
        access.load_environment(name), spec, region if isinstance(region, str) else None, access.open_resolver(stack)
    )
