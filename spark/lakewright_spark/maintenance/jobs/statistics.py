"""Job `statistics`: record sizes of a table, its partitions and its commits as rows of tables in `ops`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from lakewright_spark.iceberg_values import to_instant
from lakewright_spark.maintenance.jobs.job import NIGHTLY, DueDecision, History, JobMetrics, MaintenanceJob, due_after
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable, SqlSession
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.maintenance.table.ops_tables import ensure_ops_table, keep_rows
from lakewright_spark.maintenance.table.recorded_commits import RecordedCommits, read_recorded_commits
from lakewright_spark.maintenance.table.row_buffer import OpsTable
from lakewright_spark.policies.builtin import COMMIT_STATISTICS, COMMITS_KEPT, PARTITION_STATISTICS, TABLE_STATISTICS
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.times import format_time

_COMMON = "table_name string, table_uuid string, collected_at timestamp"
TABLES = OpsTable(
    TABLE_STATISTICS,
    f"{_COMMON}, snapshot_id bigint, row_count bigint, data_files bigint, data_bytes bigint, delete_files bigint, "
    "delete_bytes bigint, all_files bigint, all_bytes bigint, snapshots bigint, oldest_snapshot_at timestamp, "
    "manifests bigint, metadata_files bigint",
    "days(collected_at)",
)
PARTITIONS = OpsTable(
    PARTITION_STATISTICS,
    f"{_COMMON}, spec_id int, partition string, row_count bigint, data_files bigint, data_bytes bigint, "
    "position_deletes bigint, equality_deletes bigint, last_updated_at timestamp",
    "days(collected_at)",
)
COMMITS = OpsTable(
    COMMIT_STATISTICS,
    f"{_COMMON}, snapshot_id bigint, parent_id bigint, committed_at timestamp, operation string, summary string",
    "days(committed_at)",
)


@dataclass(frozen=True, kw_only=True)
class StatisticsMetrics(JobMetrics):
    """Current size of the table, and the number of rows that were written for partitions and commits."""

    rows: int = 0
    data_files: int = 0
    data_bytes: int = 0
    all_bytes: int = 0
    """Bytes of every data and delete file that some snapshot refers to."""
    snapshots: int = 0
    partitions: int = 0
    commits: int = 0
    """Commits that no earlier run recorded."""


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> StatisticsMetrics:
    """Append a row for the table, for each partition, and for each commit since the last run."""
    del policy  # no policy is about statistics
    metadata = Metadata.read(opened)
    table = {"table_name": str(opened.table), "table_uuid": opened.uuid, "collected_at": now}
    partitions = _partitions(opened)
    whole = _table_row(opened, metadata, partitions)
    commits = _commits(metadata, now, RecordedCommits({}, {}) if dry_run else _read_recorded_commits(opened, metadata))
    if not dry_run:
        for rows, ops_table in (([whole], TABLES), (partitions, PARTITIONS), (commits, COMMITS)):
            keep_rows(ops_table, opened, [table | row for row in rows])
    return StatisticsMetrics(
        rows=whole["row_count"],
        data_files=whole["data_files"],
        data_bytes=whole["data_bytes"],
        all_bytes=whole["all_bytes"],
        snapshots=whole["snapshots"],
        partitions=len(partitions),
        commits=len(commits),
        dry_run=dry_run,
    )


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether the table changed since the last run, which is long enough ago."""
    last = history.succeeded.get("statistics")
    if last and facts.touched_at < last:
        return DueDecision(is_due=False, reason=f"untouched since {format_time(last)}")
    return due_after(NIGHTLY, "statistics", policies, history, now)


JOB = MaintenanceJob(
    name="statistics", run=run, is_due=is_due, read_only=True, ops_tables=(TABLES, PARTITIONS, COMMITS)
)

Row = dict[str, Any]


def _table_row(opened: IcebergTable, metadata: Metadata, partitions: list[Row]) -> Row:
    """Return the row of the table. Only files that are no longer current need a query of their own."""
    snapshots, java = metadata.snapshots, opened.java
    current = java.currentSnapshot()
    sums = {key: sum(row[key] for row in partitions) for key in ("row_count", "data_files", "data_bytes")}
    delete_files = sum(row["delete_files"] for row in partitions)
    delete_bytes = _sizes(opened, "delete_files")[1] if delete_files else 0
    current_files = (sums["data_files"] + delete_files, sums["data_bytes"] + delete_bytes)
    older_snapshots = [snapshot for snapshot in snapshots if current is None or snapshot.id != current.snapshotId()]
    all_files, all_bytes = _sizes(opened, "all_files") if older_snapshots else current_files
    return {
        "snapshot_id": current.snapshotId() if current is not None else None,
        **sums,
        "delete_files": delete_files,
        "delete_bytes": delete_bytes,
        "all_files": all_files,
        "all_bytes": all_bytes,
        "snapshots": len(snapshots),
        "oldest_snapshot_at": min((snapshot.committed_at for snapshot in snapshots), default=None),
        "manifests": current.allManifests(java.io()).size() if current is not None else 0,
        "metadata_files": len(metadata.document.get("metadata-log", [])) + 1,
    }


def _sizes(opened: IcebergTable, files: str) -> tuple[int, int]:
    """Return number and bytes of the distinct files of a metadata table."""
    session = cast(SqlSession, opened.spark)
    row = session.sql(
        "SELECT count(*) AS n, coalesce(sum(file_size_in_bytes), 0) AS size FROM "  # noqa: S608
        f"(SELECT DISTINCT file_path, file_size_in_bytes FROM {opened.metadata(files)})"
    ).collect()[0]
    return row.n, row.size


def _partitions(opened: IcebergTable) -> list[Row]:
    name = opened.metadata("partitions")
    # By the current spec or an earlier spec: files remain in the partition that they were written to.
    is_partitioned = not opened.jvm.org.apache.iceberg.Partitioning.partitionType(opened.java).fields().isEmpty()
    partition, spec = ("to_json(partition)", "spec_id") if is_partitioned else ("'{}'", "0")
    session = cast(SqlSession, opened.spark)
    rows = session.sql(
        f"SELECT {spec} AS spec_id, {partition} AS partition, record_count AS row_count, "  # noqa: S608
        "CAST(file_count AS bigint) AS data_files, total_data_file_size_in_bytes AS data_bytes, "
        "position_delete_record_count AS position_deletes, equality_delete_record_count AS equality_deletes, "
        # A number, since PySpark converts timestamps to the machine's time zone.
        "unix_millis(last_updated_at) AS last_updated_at, "
        f"position_delete_file_count + equality_delete_file_count AS delete_files FROM {name}"
    ).collect()
    partitions = [row.asDict() for row in rows]
    for row in partitions:
        at = row["last_updated_at"]
        row["last_updated_at"] = None if at is None else to_instant(at)
    return partitions


def _commits(metadata: Metadata, now: datetime, recorded_commits: RecordedCommits) -> list[Row]:
    """Return the rows of commits that are not recorded and that retention would not remove again."""
    uuid = metadata.opened.uuid
    return [
        {
            "snapshot_id": snapshot.id,
            "parent_id": snapshot.parent,
            "committed_at": snapshot.committed_at,
            "operation": summary.get("operation"),
            "summary": json.dumps({key: value for key, value in summary.items() if key != "operation"}),
        }
        for snapshot, summary in metadata.commits
        if not recorded_commits.has_commit(uuid, snapshot)
        and snapshot.committed_at > now - timedelta(days=COMMITS_KEPT)
    ]


def _read_recorded_commits(opened: IcebergTable, metadata: Metadata) -> RecordedCommits:
    """Return the commits that earlier runs recorded. A run on many tables reads them once."""
    if not metadata.snapshots:
        return RecordedCommits({}, {})
    warehouse = opened.table.warehouse
    commits = ensure_ops_table(COMMITS, opened.spark, warehouse)
    if opened.buffer is None:
        oldest = min(snapshot.committed_at for snapshot in metadata.snapshots)
        return read_recorded_commits(opened, commits, oldest=oldest)
    return opened.buffer.read_once(warehouse, COMMITS.name, lambda: read_recorded_commits(opened, commits))
