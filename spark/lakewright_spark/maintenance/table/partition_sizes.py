"""PartitionSizes: size and last change of each partition of a table, and their rows in `ops.partition_statistics`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lakewright_spark.iceberg_values import to_instant
from lakewright_spark.maintenance.table.iceberg import IcebergTable, instant_sql, iterate
from lakewright_spark.maintenance.table.ops_tables import ensure_ops_table, keep_rows
from lakewright_spark.maintenance.table.rewrite_estimate import read_number
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
MAX_FILES = 10_000
"""Data and delete files of a table whose partitions pass through the driver. Executors read larger tables."""
_SUMS = ("row_count", "data_files", "data_bytes", "delete_files")
_LAST_CHANGE = "last_updated_at"


class PartitionSizes:
    """The partitions of an opened table, by all its partition specs. Iceberg reads each manifest once.

    The metadata table `partitions` has all partitions in the memory of the driver. A table with many files may have
    many partitions, so executors sum its files, unless the column of an earlier partition field was dropped.
    """

    def __init__(self, opened: IcebergTable) -> None:
        """Read the partitions of a table with few files, and prepare the query of a larger table."""
        self._opened = opened
        self._rows: list[dict[str, Any]] | None = None
        self._frame: DataFrame | None = None
        if has_few_files(opened):
            rows = read_partitions(opened).limit(MAX_FILES + 1).collect()
            self._rows = [row.asDict() for row in rows] if len(rows) <= MAX_FILES else None
        if self._rows is None:  # the summary of a commit may be wrong
            read = read_partitions if _has_partitions_of_dropped_columns(opened) else sum_files_by_partition
            self._frame = read(opened).cache()

    def __enter__(self) -> PartitionSizes:
        """Return the partitions."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release Spark's memory."""
        if self._frame is not None:
            self._frame.unpersist()

    def sum(self) -> dict[str, int]:
        """Return the sums of rows, files and bytes over all partitions."""
        if self._frame is None:
            return {name: sum(row[name] for row in self._rows or ()) for name in _SUMS}
        sums = self._frame.agg(*(f.coalesce(f.sum(name), f.lit(0)).alias(name) for name in _SUMS))
        return sums.collect()[0].asDict()

    def record(self, table: Mapping[str, Any], since: datetime | None, *, dry_run: bool) -> int:
        """Append a row for each partition that changed since an instant (UTC), and return their number.

        Args:
            table: Values of the common columns.
            since: None records all partitions.
            dry_run: Whether to append nothing.
        """
        limit = 0 if since is None else int(since.timestamp() * 1000)
        if self._frame is not None:
            at = f.col(_LAST_CHANGE)
            return self._append(table, self._frame.where(at.isNull() | (at >= limit)), dry_run=dry_run)
        changed = [row for row in self._rows or () if row[_LAST_CHANGE] is None or row[_LAST_CHANGE] >= limit]
        if not dry_run:
            rows = [{**table, **row, _LAST_CHANGE: _to_time(row[_LAST_CHANGE])} for row in changed]
            keep_rows(PARTITIONS, self._opened, rows)
        return len(changed)

    def _append(self, table: Mapping[str, Any], changed: DataFrame, *, dry_run: bool) -> int:
        if (number := changed.count()) and not dry_run:
            values = {
                "table_name": f.lit(table["table_name"]),
                "table_uuid": f.lit(table["table_uuid"]),
                "collected_at": f.expr(instant_sql(table["collected_at"])),
                _LAST_CHANGE: f.timestamp_millis(f.col(_LAST_CHANGE)),
            }
            names = [column.split()[0] for column in PARTITIONS.columns.split(",")]
            rows = changed.select(*(values.get(name, f.col(name)).alias(name) for name in names))
            name = ensure_ops_table(PARTITIONS, self._opened.spark, self._opened.table.warehouse)
            rows.coalesce(1).writeTo(name).append()
        return number


def has_few_files(opened: IcebergTable) -> bool:
    """Return whether the table is known to have few files, and so at most as many partitions."""
    current = opened.java.currentSnapshot()
    if current is None:
        return True
    summary = opened.to_dict(current.summary())  # Iceberg requires no summary
    numbers = [read_number(summary, f"total-{kind}-files") for kind in ("data", "delete")]
    return sum(MAX_FILES + 1 if number is None else number for number in numbers) <= MAX_FILES


def _has_partitions_of_dropped_columns(opened: IcebergTable) -> bool:
    """Return whether a column of an earlier spec was dropped.

    Iceberg 1.12 cannot read the metadata table `entries` then: it has no source for the field of the partition.
    """
    fields = opened.find_class("org.apache.iceberg.Partitioning").partitionType(opened.java)
    return any(
        fields.field(field.fieldId()) is None for spec in opened.list_specs() for field in iterate(spec.fields())
    )


def read_partitions(opened: IcebergTable) -> DataFrame:
    """Return the rows of the metadata table `partitions`."""
    partition, spec = ("to_json(partition)", "spec_id") if _is_partitioned(opened) else ("'{}'", "0")
    return opened.read_metadata("partitions").selectExpr(
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


def sum_files_by_partition(opened: IcebergTable) -> DataFrame:
    """Return the rows of the metadata table `partitions`, from the files of the current snapshot.

    Like Iceberg, this takes the partition spec of the partition's last change, and no last change of expired snapshots.
    """
    is_partitioned = _is_partitioned(opened)
    partition = f.col("data_file.partition") if is_partitioned else f.lit(None)
    spec_id = f.col("data_file.spec_id") if is_partitioned else f.lit(0)
    content, rows = f.col("data_file.content"), f.col("data_file.record_count")
    snapshots = opened.read_metadata("snapshots").select("snapshot_id", f.unix_millis("committed_at").alias("at"))
    files = opened.read_metadata("entries").where(f.col("status") != _DELETED)
    files = files.join(f.broadcast(snapshots), "snapshot_id", "left").select(
        partition.alias("partition"),
        spec_id.alias("spec_id"),
        # A partition without a field and a partition with a null in it differ.
        _count_fields(opened, spec_id).alias("fields"),
        content.alias("content"),
        rows.alias("rows"),
        f.col("data_file.file_size_in_bytes").alias("size"),
        "at",
    )

    def add(value: Column, *kinds: int) -> Column:
        return f.sum(f.when(f.col("content").isin(*kinds), value).otherwise(0))

    rows, file = f.col("rows"), f.lit(1)
    sums = files.groupBy("partition", "fields").agg(
        f.coalesce(f.max_by("spec_id", "at"), f.lit(0)).alias("spec_id"),
        add(rows, _DATA).alias("row_count"),
        add(file, _DATA).cast("bigint").alias("data_files"),
        add(f.col("size"), _DATA).alias("data_bytes"),
        add(rows, _POSITION_DELETES).alias("position_deletes"),
        add(rows, _EQUALITY_DELETES).alias("equality_deletes"),
        f.max("at").alias(_LAST_CHANGE),
        add(file, _POSITION_DELETES, _EQUALITY_DELETES).cast("bigint").alias("delete_files"),
    )
    name = f.to_json("partition") if is_partitioned else f.lit("{}")
    return sums.withColumn("partition", name).drop("fields")


_DATA, _POSITION_DELETES, _EQUALITY_DELETES = 0, 1, 2
"""Content of a file: Iceberg's values."""
_DELETED = 2
"""Status of a file that the snapshot removed: Iceberg's value."""


def _is_partitioned(opened: IcebergTable) -> bool:
    """Return whether the current spec or an earlier spec has partitions: files remain in the partition of theirs."""
    return not opened.find_class("org.apache.iceberg.Partitioning").partitionType(opened.java).fields().isEmpty()


def _count_fields(opened: IcebergTable, spec_id: Column) -> Column:
    """Return the number of partition fields of a spec."""
    counts = {spec.specId(): spec.fields().size() for spec in opened.list_specs()}
    return f.create_map(*(f.lit(value) for pair in counts.items() for value in pair))[spec_id]


def _to_time(millis: int | None) -> datetime | None:
    return None if millis is None else to_instant(millis)
