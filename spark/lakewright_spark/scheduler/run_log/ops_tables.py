"""Create, read and append to the tables of namespace `ops` without Spark."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast
from uuid import uuid4

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
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
from sqlalchemy.exc import SQLAlchemyError

from lakewright_spark.iceberg_values import COMMIT_RETRIES, METADATA_LIMITS, find_missing_limits
from lakewright_spark.maintenance.table.row_buffer import OpsTable
from lakewright_spark.policies.builtin import OPS


def create_if_missing(
    catalog: Catalog,
    name: str,
    schema: Schema,
    properties: Mapping[str, str],
    partitions: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
) -> Table:
    """Return the table, and create it if it is missing. Another process may create it at the same time.

    A table of an earlier release gets the limits of its metadata files.
    """
    if (table := find_table(catalog, name)) is not None:
        if missing := find_missing_limits(table.properties):
            return _set_properties(catalog, table, missing)
        return table
    with suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace((OPS,))
    try:
        return catalog.create_table((OPS, name), schema, partition_spec=partitions, properties=dict(properties))
    except TableAlreadyExistsError:
        return catalog.load_table((OPS, name))


def _set_properties(catalog: Catalog, table: Table, properties: Mapping[str, str]) -> Table:
    """Set properties that a write does not need, and return the table. The next call tries again after an error."""
    try:
        with table.transaction() as change:
            change.set_properties(dict(properties))
    except (RESTError, CommitFailedException, OSError, SQLAlchemyError):
        return catalog.load_table((OPS, table.name()[-1]))  # a commit without a response may have taken effect
    return table


def find_table(catalog: Catalog, name: str) -> Table | None:
    """Return the table, or None if it does not exist."""
    try:
        return catalog.load_table((OPS, name))
    except (NoSuchTableError, NoSuchNamespaceError):
        return None


# Rows of a new month replace none.
warnings.filterwarnings("ignore", "Delete operation did not match any records")


def overwrite(table: Table, rows: pa.Table, row_filter: str) -> None:
    """Replace the selected rows in one commit, also if none is selected.

    PyIceberg repeats an append after a commit of another writer, so both writers would add their rows. It repeats an
    overwrite only if no other commit has changed the selected rows.

    Raises:
        CommitFailedException, ValidationException: The table has changed since it was loaded.
    """
    table.overwrite(rows, row_filter)


ROWS_PER_PART = 250_000
"""About a day of 10,000 tables. A file with more rows is read as a whole."""


def read_parts(
    table: Table, row_filter: str | BooleanExpression, columns: tuple[str, ...], *, rows_per_part: int = ROWS_PER_PART
) -> Iterator[pa.Table]:
    """Yield the selected rows and columns in parts, in any order. Errors of PyIceberg are raised.

    Sixty days of runs on 10,000 tables took 4 GB as dictionaries.
    """
    scan = table.scan(row_filter, selected_fields=columns)
    reader = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
    tasks: list[FileScanTask] = []
    rows = 0
    for task in scan.plan_files():
        if tasks and rows + task.file.record_count > rows_per_part:
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
"""Iceberg types of Spark SQL's types in the columns of these tables."""
_PROPERTIES = {**COMMIT_RETRIES, **METADATA_LIMITS, "write.distribution-mode": "none"}


def append(catalog: Catalog, table: OpsTable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append the rows in one commit, and create the table if it is missing. Errors of PyIceberg are raised.

    Partition values are computed here, since PyIceberg needs another library to write partitions by day.
    """
    schema = build_schema(table)
    loaded = create_if_missing(catalog, table.name, schema, _PROPERTIES, build_partitions(table, schema))
    _update_partitions(loaded, table)
    with loaded.transaction() as change, change.update_snapshot().fast_append() as files:
        for file in write_file(loaded.io, loaded.metadata, iter(_write_tasks(loaded, rows))):
            files.append_data_file(file)


def _update_partitions(loaded: Table, table: OpsTable) -> None:
    """Change the partitions of a table that an earlier release created. Its files remain as they are."""
    expected_spec = build_partitions(table, loaded.schema())
    if _list_transforms(loaded.spec()) == _list_transforms(expected_spec):
        return
    with loaded.update_spec() as change:
        for field in loaded.spec().fields:
            change.remove_field(field.name)
        for field in expected_spec.fields:
            column = loaded.schema().find_column_name(field.source_id)
            change.add_field(cast(str, column), cast(Any, field).transform, field.name)


def _list_transforms(spec: PartitionSpec) -> list[tuple[int, str]]:
    return [(field.source_id, str(cast(Any, field).transform)) for field in spec.fields]


def build_schema(table: OpsTable) -> Schema:
    """Return the Iceberg schema of the table."""
    columns = [column.split() for column in table.columns.split(",")]
    fields = [NestedField(number, name, _TYPES[kind]) for number, (name, kind) in enumerate(columns, start=1)]
    return Schema(*fields)


def build_partitions(table: OpsTable, schema: Schema) -> PartitionSpec:
    """Return the Iceberg partition spec of the table: by day of a column, or by a column."""
    by_day = re.fullmatch(r"days\((\w+)\)", table.partition)
    column = by_day[1] if by_day else table.partition
    source = schema.find_field(column).field_id
    if by_day:
        return PartitionSpec(PartitionField(source, 1000, DayTransform(), f"{column}_day"))
    return PartitionSpec(PartitionField(source, 1000, IdentityTransform(), column))


def _write_tasks(table: Table, rows: Sequence[Mapping[str, Any]]) -> list[WriteTask]:
    """Return one file to write for each partition of the rows."""
    schema, spec = table.schema(), table.spec()
    by_partition: defaultdict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_partition[tuple(_value(field, schema, row) for field in spec.fields)].append(row)
    write = uuid4()
    tasks: list[WriteTask] = []
    for number, (values, partition_rows) in enumerate(by_partition.items()):
        columns = pa.Table.from_pylist(
            [{name: row[name] for name in schema.column_names} for row in partition_rows], _arrow(table)
        )
        pairs = zip(spec.fields, values, strict=True)
        key = PartitionKey([PartitionFieldValue(field, value) for field, value in pairs], spec, schema)
        tasks.append(WriteTask(write, number, schema, columns.to_batches(), partition_key=key if values else None))
    return tasks


def _value(field: PartitionField, schema: Schema, row: Mapping[str, Any]) -> Any:
    source = schema.find_field(field.source_id)
    value = row[source.name]
    return None if value is None else cast(Any, field).transform.transform(source.field_type)(value)


def _arrow(table: Table) -> pa.Schema:
    return table.schema().as_arrow()
