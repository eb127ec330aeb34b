"""Job `rewrite-manifests`: group the table's manifests by partition, so that readers open fewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakewright_spark.maintenance.jobs.job import (
    NIGHTLY,
    DueDecision,
    History,
    JobMetrics,
    MaintenanceJob,
    due_after,
    due_after_change,
)
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable, iterate
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.times import format_time

MIN_MANIFESTS = 2
"""A single manifest cannot be grouped better."""

WORTHWHILE_MANIFESTS = 10
"""Number of manifests from which on readers gain more than the rewrite costs: each is a small file to open.

Metadata does not hold the number. It is at most that of data and delete files.
"""


_TARGET, _TARGET_DEFAULT = "commit.manifest.target-size-bytes", 8 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class RewriteManifestsMetrics(JobMetrics):
    """Manifests before and after."""

    rewritten: int = 0
    added: int = 0


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> RewriteManifestsMetrics:
    """Rewrite the manifests of the current snapshot; older snapshots keep theirs."""
    del policy, now  # no policy is about manifests
    current = opened.java.currentSnapshot()
    manifests = list(iterate(current.allManifests(opened.java.io()))) if current is not None else []
    if len(manifests) < MIN_MANIFESTS:
        return RewriteManifestsMetrics(dry_run=dry_run)
    if len(manifests) < MIN_MANIFESTS * (ideal := _ideal_count(opened, manifests)):
        reason = f"{len(manifests)} manifests have the target size: their content needs at least {ideal}"
        # Skipped runs are not in the history: the table would be due again at once.
        return RewriteManifestsMetrics(reason=reason, dry_run=dry_run)
    if dry_run:
        return RewriteManifestsMetrics(rewritten=len(manifests), dry_run=True)
    if _fit_in_one(opened, manifests):
        one_group = opened.find_class("com.google.common.base.Functions").constant("all")
        summary = opened.commit(opened.java.rewriteManifests().clusterBy(one_group))
        replaced, created = summary.get("manifests-replaced", len(manifests)), summary.get("manifests-created", 1)
        return RewriteManifestsMetrics(rewritten=int(replaced), added=int(created))
    row = opened.call("rewrite_manifests", use_caching="false").collect()[0]
    return RewriteManifestsMetrics(rewritten=row.rewritten_manifests_count, added=row.added_manifests_count)


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether rows changed since the last run, and there may be enough manifests to rewrite."""
    if facts.snapshot is None:
        return DueDecision(is_due=False, reason="no rows")
    if facts.data_files is not None and facts.delete_files is not None:
        files = facts.data_files + facts.delete_files
        if files < WORTHWHILE_MANIFESTS:
            return DueDecision(
                is_due=False, reason=f"{files} data and delete files are in fewer than {WORTHWHILE_MANIFESTS} manifests"
            )
    changed = due_after_change("rewrite-manifests", facts, history)
    if not changed.is_due:
        return changed
    last = history.succeeded.get("rewrite-manifests")
    if last and facts.snapshots and min(snapshot.committed_at for snapshot in facts.snapshots) <= last:
        # All commits since then are known, and each adds a manifest or two.
        commits = sum(snapshot.committed_at > last for snapshot in facts.snapshots)
        if commits < WORTHWHILE_MANIFESTS:
            reason = f"{commits} commits since {format_time(last)}; a rewrite needs {WORTHWHILE_MANIFESTS}"
            return DueDecision(is_due=False, reason=reason)
    return due_after(NIGHTLY, "rewrite-manifests", policies, history, now)


JOB = MaintenanceJob(name="rewrite-manifests", run=run, is_due=is_due, primary_only=True)


def _ideal_count(opened: IcebergTable, manifests: Sequence[Any]) -> int:
    """Return how many manifests of the target size are needed; deletes and partition specs have separate manifests."""
    sizes: Counter[tuple[str, int]] = Counter()
    for manifest in manifests:
        sizes[manifest.content().toString(), manifest.partitionSpecId()] += manifest.length()
    return sum(-(-size // _target(opened)) for size in sizes.values())


def _target(opened: IcebergTable) -> int:
    return int(opened.java.properties().get(_TARGET) or _TARGET_DEFAULT)


def _fit_in_one(opened: IcebergTable, manifests: Sequence[Any]) -> bool:
    """Return whether one manifest can hold all files, which needs no sorting and no Spark job."""
    spec = opened.java.spec().specId()
    return sum(manifest.length() for manifest in manifests) <= _target(opened) and all(
        manifest.content().toString() == "DATA" and manifest.partitionSpecId() == spec for manifest in manifests
    )
