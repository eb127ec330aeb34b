"""Tables of the namespace `ops` that the scheduler reads and writes without Spark."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan, write_file
from pyiceberg.partitioning import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionFieldValue,
    PartitionKey,
    PartitionSpec,
)
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table, WriteTask
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, PrimitiveType, StringType, TimestamptzType

from lakewright_spark.catalog import COMMIT_RETRIES
from lakewright_spark.maintenance.table.ops_tables import OpsTable
from lakewright_spark.policies.builtin import OPS


def made(
    catalog: Catalog,
    name: str,
    schema: Schema,
    properties: Mapping[str, str],
    partitions: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
) -> Table:
    """The table as it is now, made if it is not there; somebody else may make it at the same time."""
    if (table := found(catalog, name)) is not None:
        return table
    with suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace((OPS,))
    try:
        return catalog.create_table((OPS, name), schema, partition_spec=partitions, properties=dict(properties))
    except TableAlreadyExistsError:
        return catalog.load_table((OPS, name))


def found(catalog: Catalog, name: str) -> Table | None:
    """The table if it is there."""
    try:
        return catalog.load_table((OPS, name))
    except (NoSuchTableError, NoSuchNamespaceError):
        return None


ROWS_AT_ONCE = 250_000
"""About a day of 10,000 tables; a file with more rows is read as a whole."""


def parts(
    table: Table, wanted: str | BooleanExpression, columns: tuple[str, ...], *, rows_at_once: int = ROWS_AT_ONCE
) -> Iterator[pa.Table]:
    """Yield the wanted rows with these columns alone, in any order. Raises what PyIceberg raises."""
    scan = table.scan(wanted, selected_fields=columns)
    reader = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
    tasks: list[FileScanTask] = []
    rows = 0
    for task in scan.plan_files():
        if tasks and rows + task.file.record_count > rows_at_once:
            yield reader.to_table(tasks)
            tasks, rows = [], 0
        tasks.append(task)
        rows += task.file.record_count
    if tasks:
        yield reader.to_table(tasks)


_TYPES: Mapping[str, PrimitiveType] = {
    "string": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "timestamp": TimestamptzType(),
}
"""Spark SQL's types in the columns of these tables."""
_PROPERTIES = {**COMMIT_RETRIES, "write.distribution-mode": "none"}


def append(catalog: Catalog, kept: OpsTable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add the rows in one commit; the table is made if it is not there. Raises what PyIceberg raises.

    PyIceberg writes no partitions by day itself without a library of its own, so their values are computed here.
    """
    schema = schema_of(kept)
    table = made(catalog, kept.name, schema, _PROPERTIES, partitions_of(kept, schema))
    with table.transaction() as change, change.update_snapshot().fast_append() as files:
        for file in write_file(table.io, table.metadata, iter(_tasks(table, rows))):
            files.append_data_file(file)


def schema_of(kept: OpsTable) -> Schema:
    """Return the columns as Iceberg has them."""
    columns = [column.split() for column in kept.columns.split(",")]
    fields = [NestedField(number, name, _TYPES[kind]) for number, (name, kind) in enumerate(columns, start=1)]
    return Schema(*fields)


def partitions_of(kept: OpsTable, schema: Schema) -> PartitionSpec:
    """Return the partitions as Iceberg has them: by day of a column, or by a column itself."""
    by_day = re.fullmatch(r"days\((\w+)\)", kept.partition)
    column = by_day[1] if by_day else kept.partition
    source = schema.find_field(column).field_id
    if by_day:
        return PartitionSpec(PartitionField(source, 1000, DayTransform(), f"{column}_day"))
    return PartitionSpec(PartitionField(source, 1000, IdentityTransform(), column))


def _tasks(table: Table, rows: Sequence[Mapping[str, Any]]) -> list[WriteTask]:
    """Return one file to write for each partition that the rows are in."""
    schema, spec = table.schema(), table.spec()
    by_partition: defaultdict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_partition[tuple(_value(field, schema, row) for field in spec.fields)].append(row)
    write = uuid4()
    tasks: list[WriteTask] = []
    for number, (values, of) in enumerate(by_partition.items()):
        columns = pa.Table.from_pylist([{name: row[name] for name in schema.column_names} for row in of], _arrow(table))
        pairs = zip(spec.fields, values, strict=True)
        key = PartitionKey([PartitionFieldValue(field, value) for field, value in pairs], spec, schema)
        tasks.append(WriteTask(write, number, schema, columns.to_batches(), partition_key=key if values else None))
    return tasks


def _value(field: PartitionField, schema: Schema, row: Mapping[str, Any]) -> Any:
    source = schema.find_field(field.source_id)
    value = row[source.name]
    return None if value is None else field.transform.transform(source.field_type)(value)


def _arrow(table: Table) -> pa.Schema:
    return table.schema().as_arrow()
