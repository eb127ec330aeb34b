"""Tables of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from lakewright_spark.policies.model import PREFIX, TablePolicies
from lakewright_spark.policies.retention_rules import retention_mistakes
from pydantic import AfterValidator, TypeAdapter, ValidationError, model_validator

from lakewright.field_map.marks import NotExpressibleError, NoWayBack, Sets
from lakewright.lakekeeper.table.schema.columns import Columns, paths
from lakewright.lakekeeper.table.schema.layout import PartitionText, SortingText, layout_mistakes, parse_partition
from lakewright.lakekeeper.table.schema.properties import TableProperties, property_mistakes
from lakewright.names.table_name import QualifiedName, parse_table_name
from lakewright.names.types import Deletion, FormatVersion, TableName
from lakewright.spec.adoption import Adoption
from lakewright.validation.strict_model import StrictModel

_TABLE_NAME = TypeAdapter[str](TableName)
_USUAL_FORMAT = 2
_RENAMED_OUTSIDE = "the table was renamed outside the stack: rename it back, or declare `renamed_from`"
_ENGINE_PROPERTIES: Mapping[str, str | None] = {
    "owner": None,
    "created-at": None,
    "write.parquet.compression-codec": "zstd",
    "commit.retry.num-retries": None,
}
"""Properties that engines write to each table, with the value that they write; None for any value."""


def _normalize_table_name(text: str) -> str:
    name = parse_table_name(text)
    _TABLE_NAME.validate_python(name.name)
    return str(name)


def _read_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties to declare: neither policies, nor what engines and the server write themselves."""
    return {
        key: value
        for key, value in properties.items()
        if not key.startswith(PREFIX)
        and not (key in _ENGINE_PROPERTIES and _ENGINE_PROPERTIES[key] in (None, value))
        and not [*property_mistakes({key: value})]
    }


def _read_policies(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the policies among the properties of a table."""
    policy_properties = {key: value for key, value in properties.items() if key.startswith(PREFIX)}
    try:
        policies = TablePolicies.from_properties(policy_properties)
    except (ValueError, ValidationError) as error:
        raise NotExpressibleError(f"its policies cannot be read: {' '.join(str(error).split())}") from None
    return policies.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


class TableSpec(StrictModel):
    """A table that the stack creates, and changes in place if its data remains readable."""

    refused_properties: ClassVar[Mapping[str, str]] = {"namespace": _RENAMED_OUTSIDE}
    """Properties of `Table` that the wiring derives from `name`, with what `drift --accept` says."""

    name: Annotated[
        str,
        AfterValidator(_normalize_table_name),
        Sets("name", to_args=lambda name: parse_table_name(name).name, reads="full_name", refusal=_RENAMED_OUTSIDE),
    ]
    """WAREHOUSE.NAMESPACE.TABLE; quote a part that contains a dot."""
    renamed_from: Annotated[
        Annotated[str, AfterValidator(_normalize_table_name)] | None, NoWayBack("servers do not keep earlier names")
    ] = None
    """Earlier name in this spec, in the same warehouse. The table is renamed in place. Its namespace can change only on
    servers without OpenFGA, unless an administrator renames the table and then runs `lakekeeper openfga reconcile`."""
    columns: Annotated[
        Columns,
        Sets("columns", to_args=lambda columns: [column.model_dump(exclude_none=True) for column in columns]),
    ]
    identifier: Annotated[list[str], Sets("identifier")] = []
    """Columns that identify rows, for engines that update rows."""
    partition_by: Annotated[list[PartitionText], Sets("partition_by")] = []
    """Columns, or years(c), months(c), days(c), hours(c), bucket(n, c), truncate(n, c); `... as NAME` names it."""
    sort_by: Annotated[list[SortingText], Sets("sort_by")] = []
    """Columns or transforms, each with `asc` or `desc`, `nulls first` or `nulls last`."""
    properties: Annotated[TableProperties, Sets("properties", from_live=_read_properties)] = {}
    """Table properties. Properties that engines set are kept."""
    format_version: Annotated[
        FormatVersion | None, Sets("format_version", is_usual=lambda version: version == _USUAL_FORMAT)
    ] = None
    """Version of the Iceberg table format; it can only be raised. Default: the warehouse's."""
    protected: Annotated[bool | None, Sets("protected", is_usual=lambda protected: not protected)] = None
    """Lakekeeper's protection: the table cannot be dropped without force."""
    deletion: Annotated[
        Deletion | None, Sets("deletion"), NoWayBack("a decision about later deletions; the server does not have it")
    ] = None
    """Effect on the table when it is no longer declared. Default: the warehouse's `deletion`."""
    dropped_files: Annotated[
        Literal["delete", "keep"],
        Sets("dropped_files", to_args=lambda files: None if files == "delete" else files),
        NoWayBack("a decision about later deletions; the server does not have it"),
    ] = "delete"
    """Effect on the files of the table when `deletion: purge` drops it. A purge of its warehouse deletes them."""
    adopt: Annotated[
        Adoption, Sets("adopt", to_args=bool), NoWayBack("it applies only while the stack takes the table over")
    ] = False
    """Adopt an existing table of this name, as `adopt` of its warehouse does; `{until: DAY}` permits it for a time."""
    dropped_columns: Annotated[
        list[str], Sets("dropped_columns"), NoWayBack("a permission for a later change; the server does not have it")
    ] = []
    """Columns that may be dropped. Other columns are never dropped."""
    undeclared_columns: Annotated[
        Literal["refuse", "keep"],
        Sets("undeclared_columns"),
        NoWayBack("a rule of the stack about drift; the server does not have it"),
    ] = "refuse"
    """Treatment of columns that jobs added: report them as drift, or keep them."""
    policies: Annotated[
        TablePolicies,
        Sets("properties", to_args=lambda policies: policies.properties(), from_live=_read_policies),
    ] = TablePolicies()
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
