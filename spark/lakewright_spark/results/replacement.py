"""Replaces the rows of a result, and its columns if they differ, in one commit: readers see the old rows until then."""

from __future__ import annotations

import time

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ServiceUnavailableError, ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.update import AssertCurrentSchemaId, UpdatesAndRequirements, UpdateTableMetadata
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

from lakewright_spark.migration.fence import keep_fence
from lakewright_spark.results.columns import TIMESTAMP
from lakewright_spark.results.tables import PROPERTIES

ATTEMPTS = 5
WAIT_SECONDS = 0.2
"""Wait before the second attempt; it doubles before each later attempt."""

_REFUSED_BY_DATABASE = "duplicate key value violates unique constraint"
"""Text in the 503 response of Lakekeeper 0.13.3 to a commit whose schema id another commit took meanwhile.

Its database has rolled the transaction back. Other 503 responses may follow a commit that was done."""

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
        CommitFailedException, ValidationException: Another writer changed the table at each of ATTEMPTS attempts.
        ServiceUnavailableError: The server is down, or refused each attempt because of other commits.
    """
    for attempt in range(ATTEMPTS):
        try:
            with table.transaction() as change:
                _replace(change, table, rows)
        except (CommitFailedException, ValidationException, ServiceUnavailableError) as error:
            is_conflict = not isinstance(error, ServiceUnavailableError) or _REFUSED_BY_DATABASE in str(error)
            if attempt == ATTEMPTS - 1 or not is_conflict:
                raise
            time.sleep(WAIT_SECONDS * 2**attempt)
            table.refresh()
        else:
            return


def _replace(change: Transaction, table: Table, rows: pa.Table) -> None:
    change.set_properties(keep_fence(PROPERTIES, table.properties))
    if not _has_columns(table.schema(), rows.schema):
        with change.update_schema(allow_incompatible_changes=True) as update:
            for column in table.schema().fields:
                update.delete_column(column.name)
            for field in rows.schema:
                update.add_column((field.name,), _TYPES[field.type])
    else:
        _RequireColumns(change, table.schema().schema_id).commit()
    # Also for a table without files: without a delete, a commit that conflicts with another commit adds its rows to the
    # other rows. `overwrite` does the same, and warns of a delete that removes no file.
    with change.update_snapshot().delete() as deletion:
        deletion.delete_by_predicate(AlwaysTrue())
    change.append(rows)


class _RequireColumns(UpdateTableMetadata["_RequireColumns"]):
    """Fail the commit if another commit has changed the columns since, which PyIceberg does not check by itself."""

    def __init__(self, change: Transaction, schema: int) -> None:
        super().__init__(change)
        self._schema = schema

    def _commit(self) -> UpdatesAndRequirements:
        return (), (AssertCurrentSchemaId.model_validate({"current-schema-id": self._schema}),)


def _has_columns(schema: Schema, expected_columns: pa.Schema) -> bool:
    columns = [(field.name, field.field_type) for field in schema.fields]
    return columns == [(field.name, _TYPES[field.type]) for field in expected_columns]
