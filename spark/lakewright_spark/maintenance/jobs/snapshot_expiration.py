"""`snapshot-expiration`: forget snapshots by age, then by number; what branches and tags keep stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from py4j.protocol import Py4JError, Py4JJavaError

from lakewright_spark.maintenance.switches import Metrics
from lakewright_spark.maintenance.table.backups import manifests
from lakewright_spark.maintenance.table.expirable import Step, steps
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line, instant
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.policies.history_rules import HistoryRules
from lakewright_spark.policies.model import TablePolicies

_NO_SNAPSHOT = -1
"""As Iceberg itself writes that there is none."""


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


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> SnapshotExpirationMetrics:
    """Forget snapshots by the table's properties, the policy and Iceberg's defaults; see `HistoryRules`."""
    if opened.keeps_garbage:
        return SnapshotExpirationMetrics(state="SKIPPED", reason="the table has gc.enabled=false", dry_run=dry_run)
    metadata = Metadata.of(opened)
    rules = HistoryRules.of(metadata.properties, policy.history)
    wanted = steps(metadata.snapshots, metadata.refs, rules, now)
    taken = sum(len(step.taken) for step in wanted)
    # A backup lives in files that only old snapshots refer to, and a storage that may not be deleted from keeps all.
    leaves = not opened.deletes_files or bool(policy.retention and policy.retention.backup)
    leaves = leaves or (taken > 0 and _may_have_backups(opened))
    found = SnapshotExpirationMetrics(snapshots=taken, files_left=leaves, dry_run=dry_run)
    if dry_run or not taken:
        return found
    here = leaves or (metadata.small and not metadata.has_deletes)
    for step in wanted:
        found = _expired_here(opened, found, step) if here else _expired_by_spark(opened, found, step)
    return found


def _may_have_backups(opened: IcebergTable) -> bool:
    """Return whether a backup may refer to files of expired snapshots."""
    try:
        return bool(manifests(opened))
    except Py4JError:
        # Remote signing of Lakekeeper before 0.14 signs no listings, and not every storage lists.
        return True


def _expired_here(opened: IcebergTable, found: SnapshotExpirationMetrics, step: Step) -> SnapshotExpirationMetrics:
    """In this process, since a small table's manifests are read before a Spark job is planned."""
    expiring = opened.java.expireSnapshots().expireOlderThan(int(step.older_than.timestamp() * 1000))
    expiring = expiring.retainLast(step.retain_last)
    if step.named:
        for snapshot in step.taken:
            expiring = expiring.expireSnapshotId(snapshot)
    if found.files_left:
        expiring.cleanExpiredFiles(False).commit()
        return found
    # Naming a snapshot makes Iceberg compare what is reachable before and after, as its procedure does; else it leaves
    # files that a snapshot removed until that one goes, too. One of those that go would go even if meanwhile a branch
    # has come that keeps it: name none that there is.
    expiring = expiring.expireSnapshotId(_NO_SNAPSHOT)
    # Takes the files' names instead of deleting each; the storage deletes them by the thousand.
    names = opened.jvm.java.util.stream.Stream.builder()
    expiring.deleteWith(names).commit()
    files = names.build().toList()
    try:
        opened.java.io().deleteFiles(files)
    except Py4JJavaError as error:
        # The snapshots are gone all the same: Iceberg's procedure goes on then, too.
        why = f"some of {files.size()} files could not be deleted, and are orphan-files' to find: {first_line(error)}"
        return replace(found, files_left=True, reason=why)
    paths, folder = opened.texts(files), opened.metadata_folder
    manifests = sum(path.startswith(folder) and path.endswith(".avro") for path in paths)
    data = sum(not path.startswith(folder) for path in paths)
    return replace(found, data_files=found.data_files + data, manifests=found.manifests + manifests)


def _expired_by_spark(opened: IcebergTable, found: SnapshotExpirationMetrics, step: Step) -> SnapshotExpirationMetrics:
    older_than, retain_last = instant(step.older_than), str(step.retain_last)
    ids = {"snapshot_ids": f"array({', '.join(f'{one}L' for one in sorted(step.taken))})"} if step.named else {}
    row = opened.call("expire_snapshots", older_than=older_than, retain_last=retain_last, **ids).collect()[0]
    return replace(
        found,
        data_files=found.data_files + row.deleted_data_files_count,
        delete_files=found.delete_files
        + row.deleted_position_delete_files_count
        + row.deleted_equality_delete_files_count,
        manifests=found.manifests + row.deleted_manifest_files_count + row.deleted_manifest_lists_count,
    )
