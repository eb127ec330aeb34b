"""Limits of a tenant, a warehouse or a namespace on bytes, files and tables."""

from __future__ import annotations

from typing import Annotated

from lakewright_spark.catalog.limits import DataLimits, WarehouseLimits
from pydantic import Field

from lakewright.names.types import NamespacePath
from lakewright.validation.quantity import FileSize, parse_bytes
from lakewright.validation.strict_model import StrictModel

Count = Annotated[int, Field(ge=1)]


class LimitsSpec(StrictModel):
    """Limits that `usage` compares with what exists, with a warning from 80 % on. `quota` limits compute."""

    bytes: FileSize | None = None
    """Most bytes, such as `500GiB`: of live files, and of files that only older snapshots refer to."""
    files: Count | None = None
    """Most live files."""
    tables: Count | None = None
    """Most tables."""

    def build_limits(self) -> DataLimits:
        """Return the limits as jobs read them."""
        return DataLimits(bytes=parse_bytes(self.bytes) if self.bytes else None, files=self.files, tables=self.tables)


class WarehouseLimitsSpec(LimitsSpec):
    """Limits of a warehouse, and of namespaces in it."""

    namespaces: dict[NamespacePath, LimitsSpec] = {}
    """By namespace. The limits of a namespace include the namespaces below it."""

    def build_warehouse_limits(self) -> WarehouseLimits:
        """Return the limits as jobs read them."""
        namespaces = {name: limits.build_limits() for name, limits in self.namespaces.items()}
        return WarehouseLimits(**self.build_limits().model_dump(), namespaces=namespaces)
