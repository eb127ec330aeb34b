"""PartitionSizes: size and last change of each partition of a table, and their rows in `ops.partition_statistics`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lakewright_spark.iceberg_values import to_instant
from lakewright_spark.maintenance.table.iceberg import IcebergTable, instant_sql
from lakewright_spark.maintenance.table.ops_tables import ensure_ops_table, keep_rows
from lakewright_spark.maintenance.table.row_buffer import OpsTable
from lakewright_spark.policies.builtin import PARTITION_STATISTICS

COMMON_COLUMNS = "table_name string, table_uuid string, collected_at timestamp"
"""The first columns of each table of statistics."""
PARTITIONS = OpsTable(
    PARTITION_STATISTICS,
    f"{COMMON_COLUMNS}, spec_id int, partition string, row_count bigint, data_files bigint, data_bytes bigint, "
    "position_deletes bigint, equality_deletes bigint, last_updated_at timestamp",
    "days(collected_at)",
)
ALL_PARTITIONS = timedelta(days=14)
"""The first run of each such period records all partitions of a table. Rows of partitions are kept for 30 days."""
MAX_ROWS = 10_000
"""Partitions of a table that pass through this process. Spark writes larger numbers itself."""
_SUMS = ("row_count", "data_files", "data_bytes", "delete_files")
_LAST_CHANGE = "last_updated_at"


class PartitionSizes:
    """The partitions of an opened table, by all its partition specs. Iceberg reads each manifest once."""

    def __init__(self, opened: IcebergTable) -> None:
        """Prepare the query."""
        self._opened = opened
        # By the current spec or an earlier spec: files remain in the partition that they were written to.
        is_partitioned = not opened.jvm.org.apache.iceberg.Partitioning.partitionType(opened.java).fields().isEmpty()
        partition, spec = ("to_json(partition)", "spec_id") if is_partitioned else ("'{}'", "0")
        self._frame = opened.read_metadata("partitions").selectExpr(
            f"{spec} AS spec_id",
            f"{partition} AS partition",
            "record_count AS row_count",
            "CAST(file_count AS bigint) AS data_files",
            "total_data_file_size_in_bytes AS data_bytes",
            "position_delete_record_count AS position_deletes",
            "equality_delete_record_count AS equality_deletes",
            # A number, since PySpark converts timestamps to the machine's time zone.
            f"unix_millis({_LAST_CHANGE}) AS {_LAST_CHANGE}",
            "CAST(position_delete_file_count + equality_delete_file_count AS bigint) AS delete_files",
        )
        self._rows = self._collect_rows()

    def _collect_rows(self) -> list[dict[str, Any]] | None:
        """Return the rows; None if they are too many."""
        rows = self._frame.limit(MAX_ROWS + 1).collect()
        return [row.asDict() for row in rows] if len(rows) <= MAX_ROWS else None

    def sum(self) -> dict[str, int]:
        """Return the sums of rows, files and bytes over all partitions."""
        if self._rows is not None:
            return {name: sum(row[name] for row in self._rows) for name in _SUMS}
        return self._frame.agg(*(f.sum(name).alias(name) for name in _SUMS)).collect()[0].asDict()

    def record(self, table: Mapping[str, Any], since: datetime | None, *, dry_run: bool) -> int:
        """Append a row for each partition that changed since an instant (UTC), and return their number.

        Args:
            table: Values of the common columns.
            since: None records all partitions.
            dry_run: Whether to append nothing.
        """
        limit = 0 if since is None else int(since.timestamp() * 1000)
        if self._rows is None:
            return self._record_with_spark(table, limit, dry_run=dry_run)
        changed = [row for row in self._rows if row[_LAST_CHANGE] is None or row[_LAST_CHANGE] >= limit]
        if not dry_run:
            rows = [{**table, **row, _LAST_CHANGE: _to_time(row[_LAST_CHANGE])} for row in changed]
            keep_rows(PARTITIONS, self._opened, rows)
        return len(changed)

    def _record_with_spark(self, table: Mapping[str, Any], limit: int, *, dry_run: bool) -> int:
        at = f.col(_LAST_CHANGE)
        changed: DataFrame = self._frame.where(at.isNull() | (at >= limit)).cache()
        try:
            if (number := changed.count()) and not dry_run:
                values = {
                    "table_name": f.lit(table["table_name"]),
                    "table_uuid": f.lit(table["table_uuid"]),
                    "collected_at": f.expr(instant_sql(table["collected_at"])),
                    _LAST_CHANGE: f.timestamp_millis(at),
                }
                names = [column.split()[0] for column in PARTITIONS.columns.split(",")]
                rows = changed.select(*(values.get(name, f.col(name)).alias(name) for name in names))
                name = ensure_ops_table(PARTITIONS, self._opened.spark, self._opened.table.warehouse)
                rows.coalesce(1).writeTo(name).append()
            return number
        finally:
            changed.unpersist()


def _to_time(millis: int | None) -> datetime | None:
    return None if millis is None else to_instant(millis)
