"""Job `refs`: create declared branches and tags, set their retention, and remove what is no longer declared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakewright_spark.maintenance.jobs.job import DueDecision, History, JobMetrics, MaintenanceJob
from lakewright_spark.maintenance.table.declared_refs import (
    CREATED_REFS,
    RefChanges,
    compare_refs,
    read_created_refs,
    to_milliseconds,
)
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.maintenance.table.ref_commits import lock_refs, remove_ref
from lakewright_spark.maintenance.table.removed_refs import REMOVED_REFS, record_removed_refs
from lakewright_spark.policies.model import RefPolicy, TablePolicies


@dataclass(frozen=True, kw_only=True)
class RefsMetrics(JobMetrics):
    """Names of the branches and tags by change."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unmerged: tuple[str, ...] = ()
    """Branches that are no longer declared, but have commits that `main` does not have."""

    @property
    def failure(self) -> str | None:
        """Return which branches have to be dropped by a user."""
        if not self.unmerged:
            return None
        return (
            f"branch {', '.join(self.unmerged)} is no longer declared and has commits that main does not have, so it "
            "was kept; publish or drop it in Spark"
        )


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> RefsMetrics:
    """Change the branches and tags in one commit. A new branch or tag is at the current snapshot.

    Raises:
        PolicyRefusedError: A declared branch is a tag, or the other way round.
    """
    ref_policies = policy.refs or {}

    def commit(transaction: Any) -> RefChanges:
        changes = _compare(opened, ref_policies, now)
        if changes:
            _commit(opened, transaction, ref_policies, changes, now)
        return changes

    changes = _compare(opened, ref_policies, now)
    if changes and not dry_run:
        changes = opened.run_transaction(commit)  # branches may have moved since the table was opened
    return RefsMetrics(
        created=changes.created,
        changed=changes.changed,
        removed=changes.removed,
        unmerged=changes.unmerged,
        reason=_explain(changes),
        dry_run=dry_run,
    )


def _explain(changes: RefChanges) -> str:
    """Return why some branches and tags are not as declared."""
    reasons = [f"no snapshot is young enough for {', '.join(changes.waiting)}"] if changes.waiting else []
    if changes.last is not None:
        reasons.append(f"{changes.last} is the table's last branch or tag, which Lakekeeper does not remove")
    return "; ".join(reasons)


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether the branches and tags are not as declared."""
    del history  # the metadata is enough
    created = read_created_refs(facts.properties)
    if not (policies.refs or created):
        return DueDecision(is_due=False, reason="no declared branches and tags")
    changes = compare_refs(
        policies.refs or {}, facts.refs, facts.snapshots, current=facts.snapshot, created=created, now=now
    )
    return DueDecision(bool(changes), changes.describe())


JOB = MaintenanceJob(name="refs", run=run, is_due=is_due, primary_only=True)


def _compare(opened: IcebergTable, ref_policies: Mapping[str, RefPolicy], now: datetime) -> RefChanges:
    metadata, snapshot = Metadata.read(opened), opened.java.currentSnapshot()
    current = snapshot.snapshotId() if snapshot is not None else None
    created = read_created_refs(metadata.properties)
    return compare_refs(ref_policies, metadata.refs, metadata.snapshots, current=current, created=created, now=now)


def _commit(
    opened: IcebergTable, transaction: Any, ref_policies: Mapping[str, RefPolicy], changes: RefChanges, now: datetime
) -> None:
    metadata = Metadata.read(opened)
    live_refs = {ref.name: ref for ref in metadata.refs}
    created = read_created_refs(metadata.properties)
    lock_refs(transaction, [live_refs[name] for name in changes.removed])
    change = transaction.manageSnapshots()
    for name in changes.removed:
        change = remove_ref(change, live_refs[name])
    for name in changes.changed:
        # Iceberg cannot unset a retention.
        change = remove_ref(change, live_refs[name])
        change = _create(change, name, ref_policies[name], live_refs[name].snapshot)
    for name in changes.created:
        change = _create(change, name, ref_policies[name], opened.java.currentSnapshot().snapshotId())
    change.commit()
    names = sorted((created | {*changes.created}) - {*changes.removed, *changes.forgotten})
    if names != sorted(created):
        properties = transaction.updateProperties()
        properties = properties.set(CREATED_REFS, json.dumps(names)) if names else properties.remove(CREATED_REFS)
        if removed := [live_refs[name] for name in changes.removed]:
            record = record_removed_refs(metadata.properties, removed, metadata.snapshots, now)
            properties = properties.set(REMOVED_REFS, record)
        properties.commit()
    transaction.commitTransaction()


def _create(change: Any, name: str, policy: RefPolicy, snapshot: int) -> Any:
    create = change.createBranch if policy.type == "branch" else change.createTag
    change = create(name, snapshot)
    if policy.max_age is not None:
        change = change.setMaxRefAgeMs(name, to_milliseconds(policy.max_age))
    if policy.min_snapshots is not None:
        change = change.setMinSnapshotsToKeep(name, policy.min_snapshots)
    if policy.max_snapshot_age is not None:
        change = change.setMaxSnapshotAgeMs(name, to_milliseconds(policy.max_snapshot_age))
    return change
