"""TableArgs: the properties of a table, and whether a change of each updates or replaces the table."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ValidationInfo, model_validator
from typing_extensions import override

from lakewright.lakekeeper.api.catalog.namespaces import Path
from lakewright.lakekeeper.provider.inputs import (
    CreateOnly,
    Deletable,
    Replace,
    ServerKeeps,
    StateOnly,
    Update,
    has_unknown,
    tidy,
)
from lakewright.lakekeeper.table.schema.columns import OBSERVED, Columns, is_observed
from lakewright.lakekeeper.table.schema.layout import PartitionText, SortingText, layout_mistakes
from lakewright.lakekeeper.table.schema.properties import TableProperties
from lakewright.names.types import FormatVersion, NamespacePath, TableName, namespace_parts


def _strip_slash(location: str | None) -> str | None:
    return location.rstrip("/") if location else None


class TableArgs(Deletable):
    """Properties of a table."""

    warehouse_id: Annotated[str, Replace()]
    """Warehouse that the table is in."""
    namespace: Annotated[NamespacePath, Update(via="rename")]
    """Namespace that the table is in, with dots between its levels."""
    name: Annotated[TableName, Update(via="rename")]
    """Name of the table. A change renames the table in place."""
    columns: Annotated[Columns, Update(via="commit")]
    """The columns, in order."""
    identifier: Annotated[list[str], Update(via="commit")] = []
    """Columns that together identify a row, for engines that update rows. Iceberg does not enforce uniqueness."""
    partition_by: Annotated[list[PartitionText], Update(via="commit")] = []
    """Partition transforms: `days(at)`, `bucket(16, id) as shard`."""
    sort_by: Annotated[list[SortingText], Update(via="commit")] = []
    """Sort order: `at desc nulls last`."""
    properties: Annotated[TableProperties, Update(via="commit")] = {}
    """Declared table properties. Other properties, which engines and the server write, are not changed."""
    format_version: Annotated[FormatVersion | None, Update(via="commit"), ServerKeeps()] = None
    """Iceberg format version. It can only be raised."""
    location: Annotated[str | None, AfterValidator(_strip_slash), Replace(), ServerKeeps()] = None
    """Folder of the table, within the warehouse. If left out, the server chooses it."""
    protected: Annotated[bool | None, Update(via="protection"), ServerKeeps()] = None
    """Whether the server refuses to drop the table. If left out, the server keeps its value."""
    dropped_columns: Annotated[list[str], StateOnly()] = []
    """Paths of the columns that may be dropped. No other column is dropped."""
    undeclared_columns: Annotated[Literal["refuse", "keep"], StateOnly()] = "refuse"
    """Handling of columns that jobs added: `refuse` reports them as drift, `keep` ignores them."""
    dropped_files: Annotated[Literal["delete", "keep"], StateOnly()] = "delete"
    """Effect on the table's files when `deletion: purge` drops it."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over an existing table of this name, and change it to match the declaration."""

    @classmethod
    @override
    def from_state(cls, props: dict[str, Any]) -> Self:
        return cls.model_validate(tidy(props), extra="ignore", context=OBSERVED)

    @property
    def path(self) -> Path:
        """The namespace's levels, outermost first."""
        return tuple(namespace_parts(self.namespace))

    @property
    def full_name(self) -> str:
        """Namespace and name, with a dot between them."""
        return f"{self.namespace}.{self.name}"

    @model_validator(mode="after")
    def _fits_together(self, info: ValidationInfo) -> Self:
        if is_observed(info):
            return self
        parts = (self.columns, self.identifier, self.partition_by, self.sort_by, self.format_version)
        if any(has_unknown(part) for part in parts):
            return self
        mistakes = layout_mistakes(
            self.columns,
            identifier=self.identifier,
            partition_by=self.partition_by,
            sort_by=self.sort_by,
            format_version=self.format_version,
        )
        if problems := "; ".join(mistakes):
            raise ValueError(problems)
        return self
