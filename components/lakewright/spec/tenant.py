"""TenantSpec: the whole description of a tenant, version 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from lakewright_spark.policies.model import PolicyPattern
from pydantic import AfterValidator, BeforeValidator, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from lakewright.field_map.marks import NoWayBack, Sets, WayBack
from lakewright.names.object_names import default_key_prefix
from lakewright.names.table_name import parse_table_name
from lakewright.names.types import ComputingUnitName, Deletion, ProjectId, ProjectName, TenantName
from lakewright.project_files.stack_files import DEFAULT_PROJECT_ID
from lakewright.spec.adoption import Adoption, is_adopting
from lakewright.spec.backup_checks import find_backup_mistakes
from lakewright.spec.checks.cross_checks import cross_checks
from lakewright.spec.computing_unit import ComputingUnitSpec
from lakewright.spec.data_check import CheckEntry
from lakewright.spec.drift_rules import DriftRules
from lakewright.spec.grant import GrantSpec
from lakewright.spec.identity import IdentitySpec, RoleMembersSpec
from lakewright.spec.limits import TenantLimitsSpec
from lakewright.spec.maintenance import MaintenanceSpec
from lakewright.spec.quota import QuotaSpec, quota_mistakes, sum_amounts
from lakewright.spec.sharing_checks import find_sharing_mistakes
from lakewright.spec.table import TableSpec
from lakewright.spec.view import ViewSpec
from lakewright.spec.warehouse import CatalogName, WarehouseSpec
from lakewright.storage.registry import StorageSpec
from lakewright.validation.problems import Path
from lakewright.validation.quantity import text_of_number
from lakewright.validation.strict_model import StrictModel, restate

_IN_KUBERNETES = "its objects are in Kubernetes, where `drift` reports changes, and do not show all of its fields"
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def _label(value: str) -> str:
    if not _LABEL.fullmatch(value):
        raise ValueError("expected up to 63 letters, digits, `-`, `_` and `.`, the first and last a letter or digit")
    return value


def _environment(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
        raise ValueError("expected the NAME of a file environments/NAME.yaml")
    return value


DefaultsName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]


def _cross_check(path: Path, message: str) -> InitErrorDetails:
    kind = PydanticCustomError("cross_check", "{message}", {"message": message})
    return InitErrorDetails(type=kind, loc=path, input=None)


Label = Annotated[str, BeforeValidator(text_of_number), AfterValidator(_label)]


class ProjectSpec(StrictModel):
    """The tenant's project in Lakekeeper, if it is not named like the tenant."""

    id: Annotated[
        ProjectId | None,
        Sets("project_id", refusal="the spec declares the name of an existing project only"),
    ] = None
    """Id of the project. Default: the tenant's name, or Lakekeeper's default project with `shared`."""
    name: Annotated[ProjectName | None, Sets("name")] = None
    """Display name of the project. Default: the tenant's name."""
    shared: Annotated[bool, NoWayBack("a decision about the project's other warehouses")] = False
    """Whether other tenants or programs have warehouses in the project. The stack then finds the project, and never
    creates, changes or deletes it. Names of the tenant's roles begin with the tenant's name."""

    @model_validator(mode="after")
    def _keeps_its_name(self) -> ProjectSpec:
        if self.shared and self.name is not None:
            raise ValueError("expected no `name` with `shared: true`: the stack does not rename a shared project")
        return self


class TenantSpec(StrictModel):
    """A tenant: its storage, warehouses, tables, grants and compute."""

    version: Annotated[Literal[1], NoWayBack("the version of the format of specs")]
    """Version of this format."""
    name: Annotated[TenantName, NoWayBack("a name in this repository; the server has the project")]
    """Name of the tenant. Its project in Lakekeeper has this id and name unless `project` sets another id or name."""
    owner: Annotated[
        str, Field(min_length=1, max_length=256), WayBack("discovery.declaration.tenant_spec:draft_tenant_spec")
    ]
    """Person or team responsible for the tenant: a name or an address."""
    extends: Annotated[
        DefaultsName | list[DefaultsName], Field(exclude=True), NoWayBack("files of this repository")
    ] = []
    """NAME of defaults/NAME.yaml, or a list of names. The spec has the values of these files, and overrides them."""
    environment: Annotated[str, AfterValidator(_environment), NoWayBack("a file of this repository")]
    """NAME of environments/NAME.yaml, which holds the settings that tenants share."""
    adopt: Annotated[Adoption, NoWayBack("it applies only while the stack takes objects over")] = False
    """Adopt existing objects of the same names that this stack did not make, such as objects that
    `deletion: retain` left. Without it, `up` refuses such objects. Remove it after the `up` that adopted them, or
    write `{until: DAY}`: then it applies until the end of that day."""
    project: ProjectSpec | None = None
    """The tenant's project in Lakekeeper, for projects that exist under another id or name."""
    labels: Annotated[dict[Label, Label], WayBack("discovery.declaration.storages:derive_labels")] = {}
    """Labels of all AWS and Kubernetes objects."""
    storage: Annotated[
        dict[ComputingUnitName, StorageSpec],
        Field(min_length=1),
        WayBack("discovery.declaration.storages:declare_storage"),
    ]
    """Storages by name."""
    warehouses: Annotated[list[WarehouseSpec], Field(min_length=1)]
    dropped_warehouses: Annotated[list[CatalogName], NoWayBack("a permission for a later change")] = []
    """Warehouses with `deletion: purge` that may be removed with their tables while warehouses are added, and removed
    warehouses with `deletion: protect` whose files need no more protection."""
    computing_units: Annotated[list[ComputingUnitSpec], NoWayBack(_IN_KUBERNETES)] = []
    identity: Annotated[IdentitySpec | None, NoWayBack("a client of the identity provider")] = None
    """OAuth2 client of the tenant's units and jobs. A unit or job with its own `identity` uses that client."""
    grants: list[GrantSpec] = []
    role_members: dict[str, RoleMembersSpec] = {}
    """Members of roles by the role's name: WAREHOUSE-owner, WAREHOUSE-writer, WAREHOUSE-reader, WAREHOUSE-maintainer,
    and the roles that `grants` names."""
    standard_roles: Annotated[bool, WayBack("discovery.declaration.grant_declaration:find_standard_grants")] = True
    """Whether each warehouse has the roles WAREHOUSE-owner, WAREHOUSE-writer, WAREHOUSE-reader and
    WAREHOUSE-maintainer, once units or jobs have users or `role_members` names a role. With `false`, only the roles of
    `grants` exist, and units and jobs have the privileges of their users' grants alone."""
    tables: list[TableSpec] = []
    views: list[ViewSpec] = []
    policies: Annotated[list[PolicyPattern], NoWayBack("patterns; each table has the policies that result")] = []
    """Policies by table-name pattern. Later patterns override earlier patterns; table policies override both."""
    maintenance: Annotated[
        MaintenanceSpec | None, WayBack("drift.acceptance.warehouse_edits:accept_task_queue"), NoWayBack(_IN_KUBERNETES)
    ] = None
    quota: Annotated[QuotaSpec | None, NoWayBack(_IN_KUBERNETES)] = None
    """Limits for the sum of all pods. Default: the environment's `kubernetes.quota`, else what units and jobs need."""
    limits: Annotated[TenantLimitsSpec | None, NoWayBack("rules about data, evaluated outside the server")] = None
    """Limits of all warehouses together, and of computing units."""
    checks: Annotated[list[CheckEntry], NoWayBack("rules about data, evaluated outside the server")] = []
    """Assertions about the tenant's data. `lakewright check` and `lakewright drift` evaluate them."""
    drift: Annotated[DriftRules, NoWayBack("rules about reports, evaluated outside the server")] = DriftRules()
    """Rules about drift, in addition to the environment's rules."""

    @model_validator(mode="wrap")
    @classmethod
    def _whole(cls, raw: Any, handler: ModelWrapValidatorHandler[TenantSpec]) -> TenantSpec:
        """Report problems of single values and of combinations of values together."""
        mistakes = [_cross_check(path, message) for path, message in cross_checks(raw)]
        try:
            spec = handler(raw)
        except ValidationError as error:
            if not mistakes:
                raise
            value_errors = [restate(details) for details in error.errors(include_url=False, include_context=False)]
            mistakes = value_errors + mistakes
        else:
            if not mistakes:
                unshared = find_sharing_mistakes(spec.warehouses, spec.tables, spec.grants, spec.policies)
                mistakes = [_cross_check(path, message) for path, message in unshared]
                lost_backups = find_backup_mistakes(spec.maintenance, spec.tables, spec.policies)
                mistakes += [_cross_check(path, message) for path, message in lost_backups]
                need = sum_amounts(spec.computing_units, spec.maintenance)
                small = quota_mistakes(spec.quota, None, need)
                mistakes += [_cross_check(("quota", name), message) for name, message in small]
            if not mistakes:
                return spec
        raise ValidationError.from_exception_data("TenantSpec", mistakes)

    def find_storage_name(self, warehouse: WarehouseSpec) -> str:
        """Return the name of a warehouse's storage: the named storage, or the only storage."""
        return warehouse.storage or next(iter(self.storage))

    def find_key_prefix(self, warehouse: WarehouseSpec) -> str:
        """Return the key prefix of a warehouse by the spec. The tenant's record has the real prefix."""
        return warehouse.key_prefix or default_key_prefix(self.name, warehouse.renamed_from or warehouse.name)

    def find_earlier_name(self, name: str) -> str | None:
        """Return the earlier name of a warehouse that the spec renames."""
        return next((warehouse.renamed_from for warehouse in self.warehouses if warehouse.name == name), None)

    def list_earlier_names(self, part: TableSpec | ViewSpec) -> list[str]:
        """Return the earlier names of a table or view: before its rename, its warehouse's, or both."""
        names = [part.path, *([parse_table_name(part.renamed_from)] if part.renamed_from else [])]
        if earlier := self.find_earlier_name(part.path.warehouse):
            names += [name._replace(warehouse=earlier) for name in names]
        return [str(name) for name in names if name != part.path]

    def adopts(self, part: WarehouseSpec | TableSpec | ViewSpec) -> bool:
        """Return whether an existing warehouse (with its role and namespaces), table or view is adopted.

        A warehouse is adopted with its declared tables and views.
        """
        is_inside = not isinstance(part, WarehouseSpec)
        return bool(self.adopt or part.adopt or (is_inside and self.find_warehouse(part.path.warehouse).adopt))

    @property
    def adopts_roles(self) -> bool:
        """Return whether existing roles are adopted: with the tenant, or with a warehouse in a project of its own.

        An archived or retained warehouse also keeps the roles of other warehouses, if the spec no longer needs them.
        """
        return bool(self.adopt) or (not self.shares_project and any(warehouse.adopt for warehouse in self.warehouses))

    def end_adoptions(self, now: datetime) -> TenantSpec:
        """Return the spec with permissions to adopt that are true or false, as they are in force."""

        def end(parts: Sequence[WarehouseSpec | TableSpec | ViewSpec]) -> list[WarehouseSpec | TableSpec | ViewSpec]:
            return [part.model_copy(update={"adopt": is_adopting(part.adopt, now)}) for part in parts]

        parts = {"warehouses": end(self.warehouses), "tables": end(self.tables), "views": end(self.views)}
        return self.model_copy(update={"adopt": is_adopting(self.adopt, now), **parts})

    def find_warehouse(self, name: str) -> WarehouseSpec:
        """Return the declared warehouse of a name."""
        return next(warehouse for warehouse in self.warehouses if warehouse.name == name)

    def find_deletion(self, table: TableSpec) -> Deletion:
        """Return what happens to a table that is no longer declared: its own setting, or its warehouse's."""
        return table.deletion or self.find_warehouse(table.path.warehouse).data_deletion

    @property
    def project_id(self) -> str:
        """Id of the tenant's project in Lakekeeper."""
        default = DEFAULT_PROJECT_ID if self.shares_project else self.name
        return (self.project and self.project.id) or default

    @property
    def shares_project(self) -> bool:
        """Whether the project also contains warehouses of other tenants or programs."""
        return self.project is not None and self.project.shared

    @property
    def enforces_compute(self) -> bool:
        """Whether no computing unit is started while the limit of compute is reached."""
        return self.limits is not None and self.limits.enforces_compute

    def qualify_role(self, role: str) -> str:
        """Return the name of a role on the server, which contains the tenant's name in a shared project."""
        return f"{self.name}-{role}" if self.shares_project else role

    @property
    def project_name(self) -> str:
        """Display name of the tenant's project in Lakekeeper."""
        return (self.project and self.project.name) or self.name

    @property
    def warehouse_names(self) -> list[str]:
        """Names of the warehouses, in their order."""
        return [warehouse.name for warehouse in self.warehouses]
