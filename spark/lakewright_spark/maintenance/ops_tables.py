"""Tables that jobs keep for themselves, in the namespace `ops` of each warehouse."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakewright_spark.catalog import COMMIT_RETRIES
from lakewright_spark.table_identifier import TableIdentifier, quoted

OPS = "ops"


@dataclass(frozen=True)
class OpsTable:
    """Name, columns as Spark SQL has them, and the partition."""

    name: str
    columns: str
    partition: str

    def make(self, spark: SparkSession, warehouse: str) -> str:
        """Its name for Spark SQL; made if it is not there, and read anew: other runs write to it, too."""
        sql = TableIdentifier(warehouse, (OPS,), self.name).sql
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in COMMIT_RETRIES.items())
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(warehouse)}.{OPS}")
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {sql} ({self.columns}) USING iceberg PARTITIONED BY ({self.partition}) "
            f"TBLPROPERTIES ({properties}, 'write.distribution-mode' = 'none')"
        )
        spark.catalog.refreshTable(sql)
        return sql
