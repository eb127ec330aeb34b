"""`snapshot-expiration`: forget snapshots by age, then by number; what branches and tags keep stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import SparkSession

from lakewright_spark.catalog_policies import TablePolicies
from lakewright_spark.maintenance.expirable import Ref, Snapshot, expiring, steps
from lakewright_spark.maintenance.iceberg import IcebergTable, instant
from lakewright_spark.maintenance.job import Metrics
from lakewright_spark.table_identifier import TableIdentifier


@dataclass(frozen=True, kw_only=True)
class SnapshotExpirationMetrics(Metrics):
    """Snapshots that went, and the files that went with them."""

    snapshots: int = 0
    data_files: int = 0
    delete_files: int = 0
    manifests: int = 0
    """And manifest lists."""
    files_left: bool = False
    """Whether the files of the snapshots stay, for orphan-files to find."""


def run(
    spark: SparkSession, table: TableIdentifier, policy: TablePolicies, *, dry_run: bool, now: datetime
) -> SnapshotExpirationMetrics:
    """Forget snapshots past the policy's age (default: three days), then those beyond its number of versions."""
    opened = IcebergTable.open(spark, table)
    if opened.keeps_garbage:
        return SnapshotExpirationMetrics(state="SKIPPED", reason="the table has gc.enabled=false", dry_run=dry_run)
    snapshots, refs = _history(opened)
    taken = expiring(snapshots, refs, policy.history, now)
    # A backup lives in files that only old snapshots refer to, and a storage that may not be deleted from keeps all.
    leaves = not opened.deletes_files or bool(policy.retention and policy.retention.backup)
    found = SnapshotExpirationMetrics(snapshots=len(taken), files_left=leaves, dry_run=dry_run)
    if dry_run or not taken:
        return found
    for age, retained in steps(policy.history):
        found = _expired(opened, found, now - age, retained)
    return found


def _expired(
    opened: IcebergTable, found: SnapshotExpirationMetrics, before: datetime, retained: int
) -> SnapshotExpirationMetrics:
    if found.files_left:
        expiring = opened.java.expireSnapshots().expireOlderThan(int(before.timestamp() * 1000))
        expiring.retainLast(retained).cleanExpiredFiles(False).commit()
        return found
    row = opened.call("expire_snapshots", older_than=instant(before), retain_last=str(retained)).collect()[0]
    return replace(
        found,
        data_files=found.data_files + row.deleted_data_files_count,
        delete_files=found.delete_files
        + row.deleted_position_delete_files_count
        + row.deleted_equality_delete_files_count,
        manifests=found.manifests + row.deleted_manifest_files_count + row.deleted_manifest_lists_count,
    )


def _history(opened: IcebergTable) -> tuple[list[Snapshot], list[Ref]]:
    # Epochs, since Python's own conversion of a timestamp takes the machine's zone.
    rows = opened.spark.sql(
        f"SELECT snapshot_id, parent_id, unix_millis(committed_at) AS at FROM {opened.metadata('snapshots')}"  # noqa: S608
    ).collect()
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    snapshots = [Snapshot(row.snapshot_id, row.parent_id, epoch + timedelta(milliseconds=row.at)) for row in rows]
    refs = [
        Ref(
            row["name"],
            row["type"],
            row["snapshot_id"],
            max_age=_span(row["max_reference_age_in_ms"]),
            min_snapshots=row["min_snapshots_to_keep"],
            max_snapshot_age=_span(row["max_snapshot_age_in_ms"]),
        )
        for row in opened.spark.sql(f"SELECT * FROM {opened.metadata('refs')}").collect()  # noqa: S608
    ]
    return snapshots, refs


def _span(milliseconds: int | None) -> timedelta | None:
    return None if milliseconds is None else timedelta(milliseconds=milliseconds)
