"""Tables of a spec."""

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


def _normalize_table_name(text: str) -> str:
    name = parse_table_name(text)
    _TABLE_NAME.validate_python(name.name)
    return str(name)


class TableSpec(StrictModel):
    """A table that the stack creates, and changes in place if its data remains readable."""

    name: Annotated[str, AfterValidator(_normalize_table_name)]
    """WAREHOUSE.NAMESPACE.TABLE; quote a part that contains a dot."""
    renamed_from: Annotated[str, AfterValidator(_normalize_table_name)] | None = None
    """Earlier name in this spec, in the same warehouse. The table is renamed in place."""
    columns: Columns
    identifier: list[str] = []
    """Columns that identify rows, for engines that update rows."""
    partition_by: list[PartitionText] = []
    """Columns, or years(c), months(c), days(c), hours(c), bucket(n, c), truncate(n, c); `... as NAME` names it."""
    sort_by: list[SortingText] = []
    """Columns or transforms, each with `asc` or `desc`, `nulls first` or `nulls last`."""
    properties: TableProperties = {}
    """Table properties. Properties that engines set are kept."""
    format_version: FormatVersion | None = None
    """Version of the Iceberg table format; it can only be raised. Default: the warehouse's."""
    protected: bool | None = None
    """Lakekeeper's protection: the table cannot be dropped without force."""
    deletion: Deletion | None = None
    """Effect on the table when it is no longer declared. Default: the warehouse's `deletion`."""
    adopt: bool = False
    """Adopt an existing table of this name."""
    dropped_columns: list[str] = []
    """Columns that may be dropped. Other columns are never dropped."""
    undeclared_columns: Literal["refuse", "keep"] = "refuse"
    """Treatment of columns that jobs added: report them as drift, or keep them."""
    policies: TablePolicies = TablePolicies()
    """Policies of the table, stored in its properties. They override `policies` by pattern."""

    @property
    def path(self) -> QualifiedName:
        """Parsed name."""
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
            mistakes = [
                *mistakes,
                "`renamed_from` must be in the same warehouse: tables cannot move between warehouses",
            ]
        if message := "; ".join([*mistakes, *self._policy_mistakes()]):
            raise ValueError(message)
        return self

    def _policy_mistakes(self) -> list[str]:
        mistakes = [f"`{name}` belongs in `policies`" for name in sorted(self.properties) if name.startswith(PREFIX)]
        mistakes += self.policies.column_mistakes([path for path, _, _ in paths(self.columns)])
        if self.policies.retention is None:
            return mistakes
        columns = {column.name: str(column.type) for column in self.columns}
        partitions = [parse_partition(text) for text in self.partition_by]
        layout = [(partition.column, partition.transform) for partition in partitions]
        return [*mistakes, *retention_mistakes(self.policies.retention, columns, layout)]
