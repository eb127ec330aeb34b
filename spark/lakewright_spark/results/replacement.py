"""Replaces the rows of a result, and its columns if they differ, in one commit: readers see the old rows until then."""

from __future__ import annotations

import time

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from lakewright_spark.results.columns import TIMESTAMP
from lakewright_spark.results.tables import PROPERTIES

ATTEMPTS = 5
WAIT_SECONDS = 0.2
"""Before the second attempt, and twice as long before each later one."""

_TYPES: dict[pa.DataType, IcebergType] = {
    pa.string(): StringType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.bool_(): BooleanType(),
    TIMESTAMP: TimestampType(),
    pa.binary(): BinaryType(),
}


def replace_rows(table: Table, rows: pa.Table) -> None:
    """Commit `rows` in place of all rows of the table. The table keeps its UUID.

    `rows` has the columns that `columns.readable_schema` made. Snapshot expiration, or the drop of the table, frees the
    old files.

    Raises:
        CommitFailedException, ValidationException: Others changed the table at each of ATTEMPTS attempts.
    """
    for attempt in range(ATTEMPTS):
        try:
            with table.transaction() as change:
                _replace(change, table, rows)
        except (CommitFailedException, ValidationException):
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(WAIT_SECONDS * 2**attempt)
            table.refresh()
        else:
            return


def _replace(change: Transaction, table: Table, rows: pa.Table) -> None:
    change.set_properties(dict(PROPERTIES))
    if not _has_columns(table.schema(), rows.schema):
        with change.update_schema(allow_incompatible_changes=True) as update:
            for column in table.schema().fields:
                update.delete_column(column.name)
            for field in rows.schema:
                update.add_column((field.name,), _TYPES[field.type])
    # Without files there is nothing to delete, and PyIceberg would warn of that.
    change.overwrite(rows, overwrite_filter=AlwaysTrue() if _has_files(table) else AlwaysFalse())


def _has_columns(schema: Schema, wanted: pa.Schema) -> bool:
    found = [(field.name, field.field_type) for field in schema.fields]
    return found == [(field.name, _TYPES[field.type]) for field in wanted]


def _has_files(table: Table) -> bool:
    snapshot = table.current_snapshot()
    return snapshot is not None and (snapshot.summary is None or snapshot.summary["total-data-files"] != "0")
