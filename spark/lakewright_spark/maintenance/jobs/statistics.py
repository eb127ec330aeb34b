"""`statistics`: what a table, its partitions and its commits amount to, as rows of Iceberg tables in `ops`."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lakewright_spark.iceberg_time import instant_of
from lakewright_spark.maintenance.switches import Metrics
from lakewright_spark.maintenance.table.iceberg import IcebergTable, instant
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.maintenance.table.ops_tables import OpsTable
from lakewright_spark.policies.builtin import COMMIT_STATISTICS, COMMITS_KEPT, PARTITION_STATISTICS, TABLE_STATISTICS
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.table_identifier import literal

_OF = "table_name string, table_uuid string, collected_at timestamp"
TABLES = OpsTable(
    TABLE_STATISTICS,
    f"{_OF}, snapshot_id bigint, row_count bigint, data_files bigint, data_bytes bigint, delete_files bigint, "
    "delete_bytes bigint, all_files bigint, all_bytes bigint, snapshots bigint, oldest_snapshot_at timestamp, "
    "manifests bigint, metadata_files bigint",
    "days(collected_at)",
)
PARTITIONS = OpsTable(
    PARTITION_STATISTICS,
    f"{_OF}, spec_id int, partition string, row_count bigint, data_files bigint, data_bytes bigint, "
    "position_deletes bigint, equality_deletes bigint, last_updated_at timestamp",
    "days(collected_at)",
)
COMMITS = OpsTable(
    COMMIT_STATISTICS,
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


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> StatisticsMetrics:
    """Append a row for the table, one for each partition, and one for each commit since the last run."""
    del policy  # Nothing but the table itself decides.
    metadata = Metadata.of(opened)
    of = {"table_name": str(opened.table), "table_uuid": opened.uuid, "collected_at": now}
    partitions = _partitions(opened)
    whole = _whole(opened, metadata, partitions)
    commits = _commits(metadata, now, _known(opened, metadata) if not dry_run else frozenset())
    if not dry_run:
        for rows, kept in (([whole], TABLES), (partitions, PARTITIONS), (commits, COMMITS)):
            kept.keep(opened, [of | row for row in rows])
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


Row = dict[str, Any]


def _whole(opened: IcebergTable, metadata: Metadata, partitions: list[Row]) -> Row:
    """The row of the table. Its metadata and partitions say all but the bytes of files that are no longer current."""
    snapshots, java = metadata.snapshots, opened.java
    current = java.currentSnapshot()
    sums = {key: sum(row[key] for row in partitions) for key in ("row_count", "data_files", "data_bytes")}
    delete_files = sum(row["delete_files"] for row in partitions)
    delete_bytes = _sizes(opened, "delete_files")[1] if delete_files else 0
    every = (sums["data_files"] + delete_files, sums["data_bytes"] + delete_bytes)
    others = [one for one in snapshots if current is None or one.id != current.snapshotId()]
    all_files, all_bytes = _sizes(opened, "all_files") if others else every
    return {
        "snapshot_id": current.snapshotId() if current is not None else None,
        **sums,
        "delete_files": delete_files,
        "delete_bytes": delete_bytes,
        "all_files": all_files,
        "all_bytes": all_bytes,
        "snapshots": len(snapshots),
        "oldest_snapshot_at": min((one.committed_at for one in snapshots), default=None),
        "manifests": current.allManifests(java.io()).size() if current is not None else 0,
        "metadata_files": len(metadata.document.get("metadata-log", [])) + 1,
    }


def _sizes(opened: IcebergTable, files: str) -> tuple[int, int]:
    """Number and bytes of the different files of a metadata table."""
    row = opened.spark.sql(
        "SELECT count(*) AS n, coalesce(sum(file_size_in_bytes), 0) AS size FROM "  # noqa: S608
        f"(SELECT DISTINCT file_path, file_size_in_bytes FROM {opened.metadata(files)})"
    ).collect()[0]
    return row.n, row.size


def _partitions(opened: IcebergTable) -> list[Row]:
    name = opened.metadata("partitions")
    # By this one or by one before it: files stay in the partition that they were written to.
    parted = not opened.jvm.org.apache.iceberg.Partitioning.partitionType(opened.java).fields().isEmpty()
    partition, spec = ("to_json(partition)", "spec_id") if parted else ("'{}'", "0")
    rows = opened.spark.sql(
        f"SELECT {spec} AS spec_id, {partition} AS partition, record_count AS row_count, "  # noqa: S608
        "CAST(file_count AS bigint) AS data_files, total_data_file_size_in_bytes AS data_bytes, "
        "position_delete_record_count AS position_deletes, equality_delete_record_count AS equality_deletes, "
        # As a number, since Python's own conversion of a timestamp takes the machine's zone.
        "unix_millis(last_updated_at) AS last_updated_at, "
        f"position_delete_file_count + equality_delete_file_count AS delete_files FROM {name}"
    ).collect()
    found = [row.asDict() for row in rows]
    for row in found:
        at = row["last_updated_at"]
        row["last_updated_at"] = None if at is None else instant_of(at)
    return found


def _commits(metadata: Metadata, now: datetime, known: Collection[int]) -> list[Row]:
    """Return the rows of commits that are neither known nor so old that retention has removed them again."""
    return [
        {
            "snapshot_id": one.id,
            "parent_id": one.parent,
            "committed_at": one.committed_at,
            "operation": summary.get("operation"),
            "summary": json.dumps({key: value for key, value in summary.items() if key != "operation"}),
        }
        for one, summary in metadata.commits
        if one.id not in known and one.committed_at > now - timedelta(days=COMMITS_KEPT)
    ]


def _known(opened: IcebergTable, metadata: Metadata) -> frozenset[int]:
    """Commits that earlier runs recorded."""
    if not metadata.snapshots:
        return frozenset()
    oldest = min(one.committed_at for one in metadata.snapshots)
    rows = opened.spark.sql(
        f"SELECT snapshot_id FROM {COMMITS.make(opened.spark, opened.table.warehouse)} "  # noqa: S608
        # The day is the partition: what older snapshots were is not read again.
        f"WHERE committed_at >= {instant(oldest)} AND table_uuid = {literal(opened.uuid)}"
    ).collect()
    return frozenset(row.snapshot_id for row in rows)
