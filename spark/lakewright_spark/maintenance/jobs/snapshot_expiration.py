"""Job `snapshot-expiration`: expire snapshots by age, then by number, unless branches or tags keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from lakewright_spark.maintenance.jobs.job import DueDecision, History, JobMetrics, MaintenanceJob
from lakewright_spark.maintenance.table.backups import list_manifests
from lakewright_spark.maintenance.table.expiration import (
    ExpirationStep,
    Ref,
    find_expired_snapshots,
    plan_expiration,
)
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line, instant_sql
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.maintenance.table.ref_commits import lock_refs, remove_ref
from lakewright_spark.maintenance.table.removed_refs import (
    REMOVED_REFS,
    find_expiration_obstacle,
    find_overdue_refs,
    read_removed_refs,
    record_removed_refs,
)
from lakewright_spark.policies.history_rules import HistoryRules
from lakewright_spark.policies.model import TablePolicies

_NO_SNAPSHOT = -1
"""Iceberg's value for "no snapshot"."""


@dataclass(frozen=True, kw_only=True)
class SnapshotExpirationMetrics(JobMetrics):
    """Expired snapshots and their deleted files."""

    snapshots: int = 0
    data_files: int = 0
    delete_files: int = 0
    manifests: int = 0
    """Manifests and manifest lists."""
    removed_refs: tuple[str, ...] = ()
    """Branches and tags past their age. Their snapshots expire one longest run later, since readers may use them."""
    files_left: bool = False
    """Whether files of the snapshots remain, for `orphan-files` to find."""


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> SnapshotExpirationMetrics:
    """Expire snapshots by the table's properties, the policy and Iceberg's defaults; see `HistoryRules`."""
    if opened.keeps_garbage:
        return SnapshotExpirationMetrics(state="SKIPPED", reason="the table has gc.enabled=false", dry_run=dry_run)
    metadata = Metadata.read(opened)
    rules = HistoryRules.resolve(metadata.properties, policy.history)
    overdue_refs = find_overdue_refs(metadata.snapshots, metadata.refs, rules.max_ref_age, now)
    if obstacle := find_expiration_obstacle(metadata.refs, overdue_refs):
        return SnapshotExpirationMetrics(state="SKIPPED", reason=obstacle, dry_run=dry_run)
    if overdue_refs and not dry_run:
        overdue_refs = _remove_refs(opened, overdue_refs, now)
        metadata = Metadata.read(opened)
    refs = [ref for ref in metadata.refs if ref not in overdue_refs]
    removed_refs = read_removed_refs(metadata.properties) | {ref.snapshot: now for ref in overdue_refs}
    steps = plan_expiration(metadata.snapshots, refs, rules, now, removed_refs)
    expired = sum(len(step.expired) for step in steps)
    # Only old snapshots refer to the files of a backup. A session that must not delete files leaves all of them.
    keeps_files = not opened.deletes_files or bool(policy.retention and policy.retention.backup)
    keeps_files = keeps_files or (expired > 0 and _may_have_backups(opened))
    metrics = SnapshotExpirationMetrics(
        snapshots=expired,
        removed_refs=tuple(ref.name for ref in overdue_refs),
        files_left=keeps_files,
        dry_run=dry_run,
    )
    if dry_run or not expired:
        return metrics
    # Iceberg refuses the ID of `_expire_in_process` if no snapshot is left, as after a replacement without rows.
    in_process = keeps_files or (bool(refs) and metadata.is_small and not metadata.has_deletes)
    for step in steps:
        metrics = _expire_in_process(opened, metrics, step) if in_process else _expire_with_spark(opened, metrics, step)
    return metrics


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether there are snapshots to expire."""
    del history  # the metadata is enough
    if facts.keeps_garbage:
        return DueDecision(is_due=False, reason="gc.enabled=false")
    rules = HistoryRules.resolve(facts.properties, policies.history)
    overdue_refs = find_overdue_refs(facts.snapshots, facts.refs, rules.max_ref_age, now)
    if obstacle := find_expiration_obstacle(facts.refs, overdue_refs):
        return DueDecision(is_due=False, reason=obstacle)
    refs = [ref for ref in facts.refs if ref not in overdue_refs]
    removed_refs = read_removed_refs(facts.properties) | {ref.snapshot: now for ref in overdue_refs}
    expired = find_expired_snapshots(facts.snapshots, refs, rules, now, removed_refs)
    reason = f"{len(expired)} of {len(facts.snapshots)} snapshots are past the table's history"
    if overdue_refs:
        reason = f"{reason}; past their age: {', '.join(ref.name for ref in overdue_refs)}"
    return DueDecision(bool(expired or overdue_refs), reason)


JOB = MaintenanceJob(name="snapshot-expiration", run=run, is_due=is_due, primary_only=True, deletes_files=True)


def _remove_refs(opened: IcebergTable, overdue_refs: Sequence[Ref], now: datetime) -> list[Ref]:
    """Remove branches and tags, record when, in one commit, and return them. Branches and tags that moved are left."""

    def remove(transaction: Any) -> list[Ref]:
        metadata = Metadata.read(opened)
        removed = [ref for ref in metadata.refs if ref in overdue_refs]
        if not removed:
            return []
        lock_refs(transaction, removed)
        change = transaction.manageSnapshots()
        for ref in removed:
            change = remove_ref(change, ref)
        change.commit()
        record = record_removed_refs(metadata.properties, removed, metadata.snapshots, now)
        transaction.updateProperties().set(REMOVED_REFS, record).commit()
        transaction.commitTransaction()
        return removed

    return opened.run_transaction(remove)


def _may_have_backups(opened: IcebergTable) -> bool:
    """Return whether a backup may refer to files of expired snapshots."""
    try:
        return bool(list_manifests(opened))
    except Py4JError:
        # Lakekeeper before 0.14 does not sign listings, and some storage cannot list.
        return True


def _expire_in_process(
    opened: IcebergTable, metrics: SnapshotExpirationMetrics, step: ExpirationStep
) -> SnapshotExpirationMetrics:
    """Expire without Spark: reading the manifests of a small table is faster than planning a Spark job."""
    expiring = opened.java.expireSnapshots().expireOlderThan(int(step.older_than.timestamp() * 1000))
    expiring = expiring.retainLast(step.retain_last)
    if step.is_explicit:
        for snapshot in step.expired:
            expiring = expiring.expireSnapshotId(snapshot)
    if metrics.files_left:
        expiring.cleanExpiredFiles(not metrics.files_left).commit()
        return metrics
    # With an explicit ID, Iceberg compares reachable files before and after, as its procedure does. Otherwise it keeps
    # files that a snapshot removed until that snapshot expires. An existing ID would expire even if a new branch keeps
    # it, so this ID does not exist.
    expiring = expiring.expireSnapshotId(_NO_SNAPSHOT)
    # Collect the names instead of deleting file by file; the storage deletes them in batches.
    names = opened.find_class("java.util.stream.Stream").builder()
    expiring.deleteWith(names).commit()
    if opened.keeps_garbage:
        # Iceberg checks this only before it reads the table again to commit. A migration that began in between has
        # the expired snapshots in another catalog.
        why = "gc.enabled=false was set during the job, so the files of the expired snapshots remain"
        return replace(metrics, files_left=True, reason=why)
    files = names.build().toList()
    try:
        opened.java.io().deleteFiles(files)
    except Py4JJavaError as error:
        # The snapshots are expired. Iceberg's procedure continues as well.
        why = f"some of {files.size()} files could not be deleted and are left to orphan-files: {first_line(error)}"
        return replace(metrics, files_left=True, reason=why)
    paths, folder = opened.to_strings(files), opened.metadata_folder
    manifests = sum(path.startswith(folder) and path.endswith(".avro") for path in paths)
    data = sum(not path.startswith(folder) for path in paths)
    return replace(metrics, data_files=metrics.data_files + data, manifests=metrics.manifests + manifests)


def _expire_with_spark(
    opened: IcebergTable, metrics: SnapshotExpirationMetrics, step: ExpirationStep
) -> SnapshotExpirationMetrics:
    opened.refresh()
    if opened.keeps_garbage:
        # The procedure checks the metadata that Spark has cached. A migration that began in between has the snapshots
        # in another catalog.
        why = "gc.enabled=false was set during the job, so the remaining snapshots and their files were not expired"
        return replace(metrics, snapshots=metrics.snapshots - len(step.expired), reason=why)
    older_than, retain_last = instant_sql(step.older_than), str(step.retain_last)
    ids = (
        {"snapshot_ids": f"array({', '.join(f'{snapshot}L' for snapshot in sorted(step.expired))})"}
        if step.is_explicit
        else {}
    )
    # Otherwise the driver holds the names of all files to delete.
    call = opened.call("expire_snapshots", older_than=older_than, retain_last=retain_last, stream_results="true", **ids)
    row = call.collect()[0]
    return replace(
        metrics,
        data_files=metrics.data_files + row.deleted_data_files_count,
        delete_files=metrics.delete_files
        + row.deleted_position_delete_files_count
        + row.deleted_equality_delete_files_count,
        manifests=metrics.manifests + row.deleted_manifest_files_count + row.deleted_manifest_lists_count,
    )
