"""Job `statistics`: record sizes of a table, its partitions and its commits as rows of tables in `ops`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lakewright_spark.maintenance.jobs.job import NIGHTLY, DueDecision, History, JobMetrics, MaintenanceJob, due_after
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.maintenance.table.ops_tables import ensure_ops_table, keep_rows
from lakewright_spark.maintenance.table.partition_sizes import (
    ALL_PARTITIONS,
    COMMON_COLUMNS,
    PARTITIONS,
    PartitionSizes,
)
from lakewright_spark.maintenance.table.recorded_commits import RecordedCommits, read_recorded_commits
from lakewright_spark.maintenance.table.row_buffer import OpsTable
from lakewright_spark.policies.builtin import COMMIT_STATISTICS, COMMITS_KEPT, TABLE_STATISTICS
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.times import format_time

TABLES = OpsTable(
    TABLE_STATISTICS,
    f"{COMMON_COLUMNS}, snapshot_id bigint, row_count bigint, data_files bigint, data_bytes bigint, "
    "delete_files bigint, delete_bytes bigint, all_files bigint, all_bytes bigint, snapshots bigint, "
    "oldest_snapshot_at timestamp, manifests bigint, metadata_files bigint",
    "days(collected_at)",
)
COMMITS = OpsTable(
    COMMIT_STATISTICS,
    f"{COMMON_COLUMNS}, snapshot_id bigint, parent_id bigint, committed_at timestamp, operation string, summary string",
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
    """Append a row for the table, for each partition that changed, and for each commit since the last run."""
    del policy  # no policy is about statistics
    metadata = Metadata.read(opened)
    table = {"table_name": str(opened.table), "table_uuid": opened.uuid, "collected_at": now}
    recorded_commits = RecordedCommits({}, {}) if dry_run else _read_recorded_commits(opened, metadata)
    with PartitionSizes(opened) as partitions:
        whole = _table_row(opened, metadata, partitions.sum())
        since = recorded_commits.find_changes_since(opened.uuid, now, ALL_PARTITIONS)
        number = partitions.record(table, since, dry_run=dry_run)
    commits = _commits(metadata, now, recorded_commits)
    if not dry_run:
        for rows, ops_table in (([whole], TABLES), (commits, COMMITS)):
            keep_rows(ops_table, opened, [table | row for row in rows])
    return StatisticsMetrics(
        rows=whole["row_count"],
        data_files=whole["data_files"],
        data_bytes=whole["data_bytes"],
        all_bytes=whole["all_bytes"],
        snapshots=whole["snapshots"],
        partitions=number,
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
    name="statistics",
    run=run,
    is_due=is_due,
    read_only=True,
    reads_columns=True,
    ops_tables=(TABLES, PARTITIONS, COMMITS),
)

Row = dict[str, Any]


def _table_row(opened: IcebergTable, metadata: Metadata, sums: Row) -> Row:
    """Return the row of the table. Only files that are no longer current need a query of their own."""
    snapshots, java = metadata.snapshots, opened.java
    current = java.currentSnapshot()
    sums = dict(sums)
    delete_files = sums.pop("delete_files")
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
    distinct = opened.read_metadata(files).select("file_path", "file_size_in_bytes").distinct()
    row = distinct.selectExpr("count(*) AS n", "coalesce(sum(file_size_in_bytes), 0) AS size").collect()[0]
    return row.n, row.size


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
    oldest = min(snapshot.committed_at for snapshot in metadata.snapshots) if opened.buffer is None else None

    def read() -> RecordedCommits:
        return read_recorded_commits(opened, ensure_ops_table(COMMITS, opened.spark, warehouse), oldest=oldest)

    return read() if opened.buffer is None else opened.buffer.read_once(warehouse, COMMITS.name, read)
