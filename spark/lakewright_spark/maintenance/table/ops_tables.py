"""Create the tables of namespace `ops` and append rows to them, with Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakewright_spark.errors import NoSuchResultError
from lakewright_spark.iceberg_values import COMMIT_RETRIES, METADATA_LIMITS, find_missing_limits
from lakewright_spark.maintenance.table.iceberg import IcebergTable, SqlSession
from lakewright_spark.maintenance.table.row_buffer import OpsTable
from lakewright_spark.policies.builtin import OPS
from lakewright_spark.table_identifier import TableIdentifier, quote_name


def ensure_ops_table(table: OpsTable, spark: SparkSession, warehouse: str) -> str:
    """Create the table if it is missing, refresh Spark's copy of it, and return its name for Spark SQL.

    A table of an earlier release gets the limits of its metadata files.
    """
    identifier = TableIdentifier(warehouse, (OPS,), table.name)
    try:
        opened = IcebergTable.open_kept(spark, identifier)  # refreshes it: other runs write to it as well
    except NoSuchResultError:
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in {**COMMIT_RETRIES, **METADATA_LIMITS}.items())
        session = cast(SqlSession, spark)
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote_name(warehouse)}.{OPS}")
        session.sql(
            f"CREATE TABLE IF NOT EXISTS {identifier.sql} ({table.columns}) USING iceberg "
            f"PARTITIONED BY ({table.partition}) "
            f"TBLPROPERTIES ({properties}, 'write.distribution-mode' = 'none')"
        )
    else:
        if missing := find_missing_limits(opened.to_dict(opened.java.properties())):
            change = opened.java.updateProperties()
            for key, value in missing.items():
                change = change.set(key, value)
            try:
                change.commit()
            except Py4JJavaError:  # rows can be written without these properties; the next call tries again
                IcebergTable.open(spark, identifier)
    return identifier.sql


def keep_rows(table: OpsTable, opened: IcebergTable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows about an opened table: to its buffer, or in a commit if it has none."""
    if opened.buffer is None:
        append_rows(table, opened.spark, opened.table.warehouse, rows)
    elif rows:
        opened.buffer.add(opened.table.warehouse, table, rows)


def append_rows(table: OpsTable, spark: SparkSession, warehouse: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows in one commit. Keys without a column in the table are ignored."""
    if not rows:
        return
    schema = cast(StructType, StructType.fromDDL(table.columns))
    values = [tuple(row[name] for name in schema.names) for row in rows]
    frame = cast(SqlSession, spark).createDataFrame(values, schema)
    frame.coalesce(1).writeTo(ensure_ops_table(table, spark, warehouse)).append()
