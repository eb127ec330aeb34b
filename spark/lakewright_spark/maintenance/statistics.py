"""`statistics`: what a table, its partitions and its commits amount to, as rows of Iceberg tables in `ops`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from lakewright_spark.catalog_policies import TablePolicies
from lakewright_spark.maintenance.iceberg import IcebergTable, instant
from lakewright_spark.maintenance.job import Metrics
from lakewright_spark.maintenance.ops_tables import OpsTable
from lakewright_spark.table_identifier import TableIdentifier, literal

_OF = "table_name string, table_uuid string, collected_at timestamp"
TABLES = OpsTable(
    "table_statistics",
    f"{_OF}, snapshot_id bigint, row_count bigint, data_files bigint, data_bytes bigint, delete_files bigint, "
    "delete_bytes bigint, all_files bigint, all_bytes bigint, snapshots bigint, oldest_snapshot_at timestamp, "
    "manifests bigint, metadata_files bigint",
    "days(collected_at)",
)
PARTITIONS = OpsTable(
    "partition_statistics",
    f"{_OF}, spec_id int, partition string, row_count bigint, data_files bigint, data_bytes bigint, "
    "position_deletes bigint, equality_deletes bigint, last_updated_at timestamp",
    "days(collected_at)",
)
COMMITS = OpsTable(
    "commit_statistics",
    f"{_OF}, snapshot_id bigint, parent_id bigint, committed_at timestamp, operation string, summary string",
    "days(committed_at)",
)


@dataclass(frozen=True, kw_only=True)
class StatisticsMetrics(Metrics):
    """The table's present size, and how many rows were written beside its own."""

    rows: int = 0
    data_files: int = 0
    data_bytes: int = 0
    all_bytes: int = 0
    """Of every data and delete file that some snapshot refers to."""
    snapshots: int = 0
    partitions: int = 0
    commits: int = 0
    """Commits that no earlier run had recorded."""


def run(
    spark: SparkSession, table: TableIdentifier, policy: TablePolicies, *, dry_run: bool, now: datetime
) -> StatisticsMetrics:
    """Append a row for the table, one for each partition, and one for each commit since the last run."""
    del policy  # Nothing but the table itself decides.
    opened = IcebergTable.open(spark, table)
    of = f"{literal(str(table))} AS table_name, {literal(opened.uuid)} AS table_uuid, {instant(now)} AS collected_at"
    row = spark.sql(_table_query(opened, of)).cache()
    partitions = spark.sql(_partition_query(opened, of)).cache()
    try:
        known = COMMITS.make(spark, table.warehouse) if not dry_run else None
        commits = spark.sql(_commit_query(opened, of, known)).cache()
        try:
            found = row.collect()[0]
            metrics = StatisticsMetrics(
                rows=found.row_count,
                data_files=found.data_files,
                data_bytes=found.data_bytes,
                all_bytes=found.all_bytes,
                snapshots=found.snapshots,
                partitions=partitions.count(),
                commits=commits.count(),
                dry_run=dry_run,
            )
            if not dry_run:
                for frame, kept in ((row, TABLES), (partitions, PARTITIONS), (commits, COMMITS)):
                    if not frame.isEmpty():
                        frame.coalesce(1).writeTo(kept.make(spark, table.warehouse)).append()
            return metrics
        finally:
            commits.unpersist()
    finally:
        row.unpersist()
        partitions.unpersist()


def _table_query(opened: IcebergTable, of: str) -> str:
    files, snapshots = opened.metadata("files"), opened.metadata("snapshots")
    every = (
        f"SELECT DISTINCT file_path, file_size_in_bytes FROM {opened.metadata('all_data_files')} UNION "  # noqa: S608
        f"SELECT DISTINCT file_path, file_size_in_bytes FROM {opened.metadata('all_delete_files')}"
    )
    snapshot = opened.java.currentSnapshot()
    current = f"{snapshot.snapshotId()}L" if snapshot is not None else "CAST(NULL AS bigint)"
    return (
        f"SELECT {of}, {current} AS snapshot_id, f.*, a.*, s.*, m.*, l.* FROM "  # noqa: S608
        "(SELECT coalesce(sum(record_count) FILTER (WHERE content = 0), 0) AS row_count, "
        "count_if(content = 0) AS data_files, "
        "coalesce(sum(file_size_in_bytes) FILTER (WHERE content = 0), 0) AS data_bytes, "
        "count_if(content > 0) AS delete_files, "
        f"coalesce(sum(file_size_in_bytes) FILTER (WHERE content > 0), 0) AS delete_bytes FROM {files}) f, "
        f"(SELECT count(*) AS all_files, coalesce(sum(file_size_in_bytes), 0) AS all_bytes FROM ({every})) a, "
        f"(SELECT count(*) AS snapshots, min(committed_at) AS oldest_snapshot_at FROM {snapshots}) s, "
        f"(SELECT count(*) AS manifests FROM {opened.metadata('manifests')}) m, "
        f"(SELECT count(*) AS metadata_files FROM {opened.metadata('metadata_log_entries')}) l"
    )


def _partition_query(opened: IcebergTable, of: str) -> str:
    name = opened.metadata("partitions")
    parted = "partition" in opened.spark.table(name).columns
    partition, spec = ("to_json(partition)", "spec_id") if parted else ("'{}'", "0")
    return (
        f"SELECT {of}, {spec} AS spec_id, {partition} AS partition, record_count AS row_count, "  # noqa: S608
        "CAST(file_count AS bigint) AS data_files, total_data_file_size_in_bytes AS data_bytes, "
        "position_delete_record_count AS position_deletes, equality_delete_record_count AS equality_deletes, "
        f"last_updated_at FROM {name}"
    )


def _commit_query(opened: IcebergTable, of: str, known: str | None) -> str:
    query = (
        f"SELECT {of}, snapshot_id, parent_id, committed_at, operation, to_json(summary) AS summary "  # noqa: S608
        f"FROM {opened.metadata('snapshots')}"
    )
    if known is None:
        return query
    return (
        f"{query} WHERE snapshot_id NOT IN (SELECT snapshot_id FROM {known} WHERE table_uuid = {literal(opened.uuid)})"  # noqa: S608
    )
