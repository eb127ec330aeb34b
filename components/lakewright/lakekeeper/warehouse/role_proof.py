"""RoleProof: the proof that the role of a tenant's bucket is limited, made when the role or its use changes."""

from collections.abc import Mapping
from typing import Annotated, Any

import pulumi
from pulumi.dynamic import CheckResult, Resource
from typing_extensions import override

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.preflight import report
from lakewright.lakekeeper.preflight.report import Check, Report
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.diagnostics import note
from lakewright.lakekeeper.provider.errors import RoleTooOpenError
from lakewright.lakekeeper.provider.inputs import ResourceInputs, StateOnly, Update, has_unknown
from lakewright.lakekeeper.provider.options import ServerInput, drop_none, not_imported
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.lakekeeper.storage.credentials import SystemIdentity
from lakewright.lakekeeper.storage.profiles import S3Profile
from lakewright.lakekeeper.warehouse.role_checks import RoleUse, role_checks
from lakewright.names.types import ProjectId, WarehouseName


class RoleProofArgs(ResourceInputs):
    """The warehouse whose role is proven. A change is proven again."""

    project_id: Annotated[ProjectId, Update(via="proof")]
    """Project of the warehouse."""
    warehouse_id: Annotated[str, Update(via="proof")]
    """Warehouse, which exists before the proof: its place makes the server refuse the variations."""
    warehouse: Annotated[WarehouseName, StateOnly()]
    """Name of the warehouse, for messages."""
    storage: Annotated[S3Profile, Update(via="proof")]
    """Storage profile of the warehouse."""
    credential: Annotated[SystemIdentity, Update(via="proof")]
    """Credential of the warehouse, with the external ID."""


class RoleProofProvider(LakekeeperProvider[RoleProofArgs]):
    """Proves the limits of a role. It has no object on the server."""

    args = RoleProofArgs

    @override
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        result = super().check(_olds, news)
        if report.is_wanted() and not result.failures:
            args = self.args.parse(result.inputs)
            if "warehouse_id" in _olds and not has_unknown([args.server, args.storage, args.credential]):
                self._report(args)
        return result

    @override
    def title(self, args: RoleProofArgs) -> str:
        return f"proof of the role of warehouse `{args.warehouse}` at {args.server.endpoint}"

    @override
    def make(self, client: Client, new: RoleProofArgs) -> tuple[str, ObservedResource[RoleProofArgs]]:
        self._prove(client, new)
        return new.warehouse_id, ObservedResource(new)

    @override
    def find(self, client: Client, resource: RecordedResource[RoleProofArgs]) -> ObservedResource[RoleProofArgs] | None:
        return ObservedResource(resource.declared)

    @override
    def change(
        self, client: Client, resource: RecordedResource[RoleProofArgs], new: RoleProofArgs
    ) -> ObservedResource[RoleProofArgs]:
        self._prove(client, new)
        return ObservedResource(new)

    @override
    def remove(self, client: Client, resource: RecordedResource[RoleProofArgs]) -> None:
        """Do nothing: the proof left nothing."""

    def _prove(self, client: Client, args: RoleProofArgs) -> None:
        use = describe_use(client, args)
        checks = role_checks(use)
        if failed := [check.reason for check in checks if check.status == "failed"]:
            raise RoleTooOpenError(
                f"{use.title} is not limited as it must be, so nothing is put into it: {' '.join(failed)}"
                " `lakewright byo reserve` prints its policies; then run `up` again."
            )
        skipped = "".join(f"; {check.name} {check.reason}" for check in checks if check.status == "skipped")
        note(
            f"{use.title} is used with its external ID only, and writes below {args.storage.where} only{skipped}."
            " `lakewright byo check` also tries to list the bucket"
        )

    def _report(self, args: RoleProofArgs) -> None:
        try:
            checks = role_checks(describe_use(self.client(args.server), args))
        except (LakekeeperError, UnresolvedCredentialError) as error:
            checks = [Check(name="role", status="failed", reason=str(error))]
        report.write(
            Report(
                warehouse=args.warehouse,
                project_id=args.project_id,
                endpoint=args.server.endpoint,
                checks=checks,
            )
        )


def describe_use(client: Client, args: RoleProofArgs) -> RoleUse:
    """Return the use of the role that a declaration names."""
    return RoleUse(client, args.project_id, args.warehouse, args.storage, args.credential)


class RoleProof(Resource, module="lakekeeper", name="RoleProof"):
    """Proof that the role of a tenant's bucket needs its external ID and reaches the warehouse's prefix only."""

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        project_id: pulumi.Input[str],
        warehouse_id: pulumi.Input[str],
        warehouse: str,
        storage: pulumi.Input[Mapping[str, Any]],
        credential: pulumi.Input[Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource."""
        props = drop_none(
            server=server,
            project_id=project_id,
            warehouse_id=warehouse_id,
            warehouse=warehouse,
            storage=storage,
            credential=credential,
        )
        super().__init__(RoleProofProvider(), resource_name, props, not_imported(opts))
