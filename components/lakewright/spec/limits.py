"""Limits of a tenant, a warehouse or a namespace on data and compute, and whether they are enforced."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from lakewright_spark.catalog.limits import DataLimits, TenantLimits, WarehouseLimits
from pydantic import Field, model_validator

from lakewright.names.grant_names import Principal
from lakewright.names.types import NamespacePath
from lakewright.validation.documents import as_mapping
from lakewright.validation.quantity import FileSize, parse_bytes
from lakewright.validation.strict_model import StrictModel

Count = Annotated[int, Field(ge=1)]


class LimitsSpec(StrictModel):
    """Limits that `usage` compares with what exists, with a warning from 80 % on."""

    bytes: FileSize | None = None
    """Most bytes, such as `500GiB`: of live files, and of files that only older snapshots refer to."""
    files: Count | None = None
    """Most live files."""
    tables: Count | None = None
    """Most tables."""
    enforce: bool = False
    """Whether `lakewright enforce-limits` suspends grants of `create` and `modify` while a limit is reached."""
    exempt: list[Principal] = []
    """Principals whose grants are never suspended, as `user:IDP~SUBJECT` or `role:NAME`, such as the identity of a
    clean-up job. Roles WAREHOUSE-maintainer are always exempt."""

    @model_validator(mode="after")
    def _check_enforcement(self) -> Self:
        if self.exempt and not self.enforce:
            raise ValueError("expected `exempt` with `enforce: true` only")
        if self.enforce and not self._has_limit:
            raise ValueError(f"expected a limit of {self._quantities} with `enforce: true`")
        return self

    _quantities: ClassVar[str] = "`bytes`, `files` or `tables`"

    @property
    def limits_data(self) -> bool:
        """Whether there is a limit on bytes, files or tables."""
        return not (self.bytes is None and self.files is None and self.tables is None)

    @property
    def _has_limit(self) -> bool:
        return self.limits_data

    def build_limits(self) -> DataLimits:
        """Return the limits as jobs read them."""
        return DataLimits(bytes=parse_bytes(self.bytes) if self.bytes else None, files=self.files, tables=self.tables)


class TenantLimitsSpec(LimitsSpec):
    """Limits of all warehouses together, and of computing units. `quota` limits the pods that run at the same time."""

    _quantities: ClassVar[str] = "`bytes`, `files`, `tables` or `compute`"

    compute: Count | None = None
    """Most hours of computing units in a UTC month, as `ops.compute_usage` records them. With `enforce`, no unit is
    started while the limit is reached."""

    @property
    def _has_limit(self) -> bool:
        return self.limits_data or self.compute is not None

    @property
    def enforces_compute(self) -> bool:
        """Whether no computing unit is started while the limit is reached."""
        return self.enforce and self.compute is not None

    def build_tenant_limits(self) -> TenantLimits:
        """Return the limits as jobs read them."""
        return TenantLimits(**self.build_limits().model_dump(), compute=self.compute)


class NamespaceLimitsSpec(LimitsSpec):
    """Limits of a namespace, with the namespaces below it."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_compute(cls, values: object) -> object:
        if "compute" in as_mapping(values):
            raise ValueError(
                "expected `compute` in the limits of a warehouse or of the tenant: computing units use warehouses, and"
                " hours belong to no namespace"
            )
        return values


class WarehouseLimitsSpec(LimitsSpec):
    """Limits of a warehouse, and of namespaces in it."""

    _quantities: ClassVar[str] = "`bytes`, `files` or `tables` (`compute` of a warehouse is reported, and not enforced)"

    compute: Count | None = None
    """Most hours in a UTC month of computing units whose default warehouse it is. `usage` reports them; `enforce` needs
    the limit of the tenant, as no quota of Kubernetes can tell the units of a namespace apart."""
    namespaces: dict[NamespacePath, NamespaceLimitsSpec] = {}
    """By namespace. The limits of a namespace include the namespaces below it."""

    def build_warehouse_limits(self) -> WarehouseLimits:
        """Return the limits as jobs read them."""
        namespaces = {name: limits.build_limits() for name, limits in self.namespaces.items()}
        return WarehouseLimits(**self.build_limits().model_dump(), compute=self.compute, namespaces=namespaces)
