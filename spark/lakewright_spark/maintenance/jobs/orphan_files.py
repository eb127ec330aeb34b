"""Job `orphan-files`: find files that no snapshot refers to, and record them as candidates. It deletes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakewright_spark.errors import SharedLocationError
from lakewright_spark.maintenance.jobs.job import WEEKLY, DueDecision, History, JobMetrics, MaintenanceJob, due_after
from lakewright_spark.maintenance.table.candidates import (
    CANDIDATES,
    age_limit,
    compute_once,
    find_unreferenced_files,
    has_no_unreferenced_files,
    read_candidates,
    record_candidates,
)
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.policies.model import TablePolicies


@dataclass(frozen=True, kw_only=True)
class OrphanFilesMetrics(JobMetrics):
    """Current candidates, and how many of them this run found."""

    candidates: int = 0
    new: int = 0


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> OrphanFilesMetrics:
    """Record unreferenced files older than the policy's age, which is at least a day, or three for replicas."""
    if opened.keeps_garbage:
        return OrphanFilesMetrics(state="SKIPPED", reason="the table has gc.enabled=false", dry_run=dry_run)
    try:
        return _find_orphans(opened, policy, dry_run=dry_run, now=now)
    except SharedLocationError as error:
        return OrphanFilesMetrics(state="SKIPPED", reason=str(error), dry_run=dry_run)


def _find_orphans(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> OrphanFilesMetrics:
    limit, listing = age_limit(policy, now), policy.orphan_files.listing if policy.orphan_files else None
    if listing is None and has_no_unreferenced_files(opened, limit):
        return OrphanFilesMetrics(dry_run=dry_run)
    with find_unreferenced_files(opened, limit, listing) as unreferenced:
        candidates = unreferenced.count()
        if dry_run:
            return OrphanFilesMetrics(candidates=candidates, new=candidates, dry_run=True)
        if not candidates:
            return OrphanFilesMetrics()
        with compute_once(unreferenced.join(read_candidates(opened), "file_path", "left_anti")) as new_files:
            return OrphanFilesMetrics(candidates=candidates, new=record_candidates(opened, new_files, now))


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether the last run is long enough ago."""
    if facts.keeps_garbage:
        return DueDecision(is_due=False, reason="gc.enabled=false")
    return due_after(WEEKLY, "orphan-files", policies, history, now)


JOB = MaintenanceJob(
    name="orphan-files",
    run=run,
    is_due=is_due,
    read_only=True,
    owns_location=True,
    needs_listing=True,
    deletes_files=True,
    ops_tables=(CANDIDATES,),
    every=WEEKLY,
)
