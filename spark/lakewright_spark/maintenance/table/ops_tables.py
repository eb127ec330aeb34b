"""Tables that jobs keep for themselves, in the namespace `ops` of each warehouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, cast

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakewright_spark.catalog import COMMIT_RETRIES
from lakewright_spark.errors import NoSuchResultError
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.policies.builtin import OPS
from lakewright_spark.table_identifier import TableIdentifier, quoted


class RowBuffer(Protocol):
    """Takes rows of many tables, to be committed together."""

    def add(self, warehouse: str, kept: OpsTable, rows: Sequence[Mapping[str, Any]]) -> None: ...

    def forget_candidates(self, warehouse: str, table_uuid: str, until: datetime) -> None: ...


@dataclass(frozen=True)
class OpsTable:
    """Name, columns as Spark SQL has them, and the partition."""

    name: str
    columns: str
    partition: str

    def make(self, spark: SparkSession, warehouse: str) -> str:
        """Its name for Spark SQL; made if it is not there, and read anew: other runs write to it, too."""
        table = TableIdentifier(warehouse, (OPS,), self.name)
        try:
            IcebergTable.open(spark, table)
        except NoSuchResultError:
            properties = ", ".join(f"'{key}' = '{value}'" for key, value in COMMIT_RETRIES.items())
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(warehouse)}.{OPS}")
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {table.sql} ({self.columns}) USING iceberg "
                f"PARTITIONED BY ({self.partition}) "
                f"TBLPROPERTIES ({properties}, 'write.distribution-mode' = 'none')"
            )
        return table.sql

    def keep(self, opened: IcebergTable, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows about a table: to the buffer that it was opened with, else at once."""
        if opened.buffer is None:
            self.append(opened.spark, opened.table.warehouse, rows)
        elif rows:
            opened.buffer.add(opened.table.warehouse, self, rows)

    def append(self, spark: SparkSession, warehouse: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows in one commit; a row may have more than the table's columns."""
        if not rows:
            return
        schema = cast(StructType, StructType.fromDDL(self.columns))
        values = [tuple(row[name] for name in schema.names) for row in rows]
        spark.createDataFrame(values, schema).coalesce(1).writeTo(self.make(spark, warehouse)).append()
