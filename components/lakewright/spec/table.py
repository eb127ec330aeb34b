"""A table that the stack makes in one of its warehouses."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from lakewright_spark.policies.model import PREFIX, TablePolicies
from lakewright_spark.policies.retention_rules import retention_mistakes
from pydantic import AfterValidator, TypeAdapter, model_validator

from lakewright.lakekeeper.table.schema.columns import Columns, paths
from lakewright.lakekeeper.table.schema.layout import PartitionText, SortingText, layout_mistakes, parse_partition
from lakewright.lakekeeper.table.schema.properties import TableProperties
from lakewright.names.table_name import QualifiedName, parse_table_name
from lakewright.names.types import Deletion, FormatVersion, TableName
from lakewright.validation.strict_model import StrictModel

_TABLE_NAME = TypeAdapter[str](TableName)


def _qualified(text: str) -> str:
    name = parse_table_name(text)
    _TABLE_NAME.validate_python(name.name)
    return str(name)


class TableSpec(StrictModel):
    """A table that the stack makes, and changes in place as far as its data stays readable."""

    name: Annotated[str, AfterValidator(_qualified)]
    """WAREHOUSE.NAMESPACE.TABLE; a part with a dot in it stands in quotes."""
    renamed_from: Annotated[str, AfterValidator(_qualified)] | None = None
    """The name that it had in this spec, in the same warehouse: the table is renamed in place."""
    columns: Columns
    identifier: list[str] = []
    """Columns that together tell rows apart, for engines that update rows."""
    partition_by: list[PartitionText] = []
    """Columns, or years(c), months(c), days(c), hours(c), bucket(n, c), truncate(n, c); `... as NAME` names it."""
    sort_by: list[SortingText] = []
    """Columns or transforms, each with `asc` or `desc`, `nulls first` or `nulls last`."""
    properties: TableProperties = {}
    """What engines write beside them is left alone."""
    format_version: FormatVersion | None = None
    """Version of Iceberg's table format; it can be raised, never lowered. Default: the warehouse's."""
    protected: bool | None = None
    """Lakekeeper's own protection: nobody drops the table without force."""
    deletion: Deletion | None = None
    """What becomes of the table when it is not declared any more. Default: the warehouse's `deletion`."""
    adopt: bool = False
    """Take over a table of this name that exists, although this stack did not make it."""
    dropped_columns: list[str] = []
    """Columns that may be dropped; no other ever is."""
    undeclared_columns: Literal["refuse", "keep"] = "refuse"
    """What to do about columns that jobs added: show them as drift, or leave them alone."""
    policies: TablePolicies = TablePolicies()
    """The table's own, which win over those of `policies` by pattern; kept as its properties."""

    @property
    def path(self) -> QualifiedName:
        """Where it is."""
        return parse_table_name(self.name)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        mistakes = layout_mistakes(
            self.columns,
            identifier=self.identifier,
            partition_by=self.partition_by,
            sort_by=self.sort_by,
            format_version=self.format_version,
        )
        if self.renamed_from and parse_table_name(self.renamed_from).warehouse != self.path.warehouse:
            mistakes = [*mistakes, "`renamed_from` must be in the same warehouse: a table cannot leave it"]
        if told := "; ".join([*mistakes, *self._policy_mistakes()]):
            raise ValueError(told)
        return self

    def _policy_mistakes(self) -> list[str]:
        own = [f"`{name}` is for `policies` to say" for name in sorted(self.properties) if name.startswith(PREFIX)]
        own += self.policies.column_mistakes([path for path, _, _ in paths(self.columns)])
        if self.policies.retention is None:
            return own
        columns = {column.name: str(column.type) for column in self.columns}
        partitions = [parse_partition(text) for text in self.partition_by]
        layout = [(one.column, one.transform) for one in partitions]
        return [*own, *retention_mistakes(self.policies.retention, columns, layout)]
