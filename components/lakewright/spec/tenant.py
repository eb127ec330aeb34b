"""TenantSpec: the whole description of a tenant, version 1."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from lakewright_spark.policies.model import PolicyPattern
from pydantic import AfterValidator, BeforeValidator, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from lakewright.names.types import ComputingUnitName, Deletion, TenantName
from lakewright.spec.checks.cross_checks import cross_checks
from lakewright.spec.computing_unit import ComputingUnitSpec
from lakewright.spec.grant import GrantSpec
from lakewright.spec.maintenance import MaintenanceSpec
from lakewright.spec.sharing_checks import sharing_mistakes
from lakewright.spec.table import TableSpec
from lakewright.spec.warehouse import CatalogName, WarehouseSpec
from lakewright.storage.registry import StorageSpec
from lakewright.validation.problems import Path
from lakewright.validation.quantity import text_of_number
from lakewright.validation.strict_model import StrictModel, restated

_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def _label(value: str) -> str:
    if not _LABEL.fullmatch(value):
        raise ValueError("expected up to 63 letters, digits, `-`, `_` and `.`, the first and last a letter or digit")
    return value


def _environment(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
        raise ValueError("expected the NAME of a file environments/NAME.yaml")
    return value


def _cross_check(path: Path, message: str) -> InitErrorDetails:
    kind = PydanticCustomError("cross_check", "{message}", {"message": message})
    return InitErrorDetails(type=kind, loc=path, input=None)


Label = Annotated[str, BeforeValidator(text_of_number), AfterValidator(_label)]


class TenantSpec(StrictModel):
    """A tenant's whole way from storage to compute."""

    version: Literal[1]
    """Version of this format."""
    name: TenantName
    """Name of the tenant, and id of its project in Lakekeeper."""
    owner: Annotated[str, Field(min_length=1, max_length=256)]
    """Who answers for the tenant: an address or a team."""
    environment: Annotated[str, AfterValidator(_environment)]
    """What the tenant shares with others: the file environments/NAME.yaml."""
    adopt: bool = False
    """Take over objects that exist under this tenant's names and that this stack did not make, such as those that
    `deletion: retain` left. Without it they are refused. Remove it after the `up` that took them over."""
    labels: dict[Label, Label] = {}
    """Put on every AWS and Kubernetes object."""
    storage: Annotated[dict[ComputingUnitName, StorageSpec], Field(min_length=1)]
    """Where data lies, by name."""
    warehouses: Annotated[list[WarehouseSpec], Field(min_length=1)]
    dropped_warehouses: list[CatalogName] = []
    """Warehouses of `deletion: purge` that may leave this spec with their tables while other warehouses join it, and
    of `protect` that have left it and whose files need no protection any more."""
    computing_units: list[ComputingUnitSpec] = []
    grants: list[GrantSpec] = []
    tables: list[TableSpec] = []
    policies: list[PolicyPattern] = []
    """Of tables by pattern, whoever makes them: a later one wins over an earlier one, a table's own over all."""
    maintenance: MaintenanceSpec | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _whole(cls, raw: Any, handler: ModelWrapValidatorHandler[TenantSpec]) -> TenantSpec:
        """Both kinds of mistakes in one answer: of single values, and of values that do not fit together."""
        found = [_cross_check(path, message) for path, message in cross_checks(raw)]
        try:
            spec = handler(raw)
        except ValidationError as error:
            if not found:
                raise
            of_values = [restated(details) for details in error.errors(include_url=False, include_context=False)]
            found = of_values + found
        else:
            if not found:
                unshared = sharing_mistakes(spec.warehouses, spec.tables, spec.grants, spec.policies)
                found = [_cross_check(path, message) for path, message in unshared]
            if not found:
                return spec
        raise ValidationError.from_exception_data("TenantSpec", found)

    def storage_of(self, warehouse: WarehouseSpec) -> str:
        """The name of the storage that a warehouse lies on: its own word, or the only one there is."""
        return warehouse.storage or next(iter(self.storage))

    def prefix_of(self, warehouse: WarehouseSpec) -> str:
        """The prefix of all object keys of a warehouse, as far as the spec alone says; the tenant's record knows it."""
        return warehouse.key_prefix or f"{self.name}/{warehouse.renamed_from or warehouse.name}"

    def renamed(self, name: str) -> str | None:
        """The name that a warehouse had before, if the spec renames it."""
        return next((one.renamed_from for one in self.warehouses if one.name == name), None)

    def adopts(self, part: WarehouseSpec | TableSpec) -> bool:
        """Whether an existing warehouse (with its role and namespaces) or table is taken over."""
        return self.adopt or part.adopt

    def deletion_of(self, table: TableSpec) -> Deletion:
        """What becomes of a table that is not declared any more: its own word, or its warehouse's."""
        warehouse = next(one for one in self.warehouses if one.name == table.path.warehouse)
        return table.deletion or warehouse.deletion

    @property
    def warehouse_names(self) -> list[str]:
        return [warehouse.name for warehouse in self.warehouses]
