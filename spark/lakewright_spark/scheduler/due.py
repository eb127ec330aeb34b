"""Which jobs a table is due for, from its policies, its metadata and what earlier runs did. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from lakewright_spark.maintenance.jobs.compaction import LARGEST, SMALLEST
from lakewright_spark.maintenance.switches import reason_to_skip
from lakewright_spark.maintenance.table.expirable import expiring
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.history_rules import HistoryRules
from lakewright_spark.policies.model import JOBS, CompactionPolicy, Job, StagedFilesPolicy, TablePolicies

BY_LOCATION: frozenset[Job] = frozenset({"orphan-files", "staged-files"})
"""Jobs that take every file under a table's location for the table's own."""
PAUSE = timedelta(hours=16)
"""After a success, until a job is due again by time alone: OpenHouse's, so that each nightly run has it."""

MANIFESTS_WORTH_IT = 10
"""Manifests from which on a reader gains more than a rewriting costs: each is a small file to open.

Metadata does not say how many there are. They are at most as many as data and delete files together.
"""

Verdict = Literal["due", "held", "not due"]


@dataclass(frozen=True)
class Decision:
    """What to do about one job of one table, and why. `held`: a switch, a lock or a running execution forbids it."""

    job: Job
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class History:
    """What is remembered of a table."""

    succeeded: Mapping[Job, datetime] = field(default_factory=dict[Job, datetime])
    """When the last run of a job that succeeded began."""
    oldest_candidate: datetime | None = None
    """When the first of its orphan candidates that are still there was found."""


def decide(
    facts: TableFacts,
    policies: TablePolicies,
    history: History,
    now: datetime,
    *,
    jobs: Collection[Job] = JOBS,
    busy: str | None = None,
) -> list[Decision]:
    """What is to be done about the table, job by job in the order in which they have to run.

    `busy` says why files are not to be replaced now, as while an execution still writes the table. Raises
    PolicyRefusedError for a property of Iceberg's that cannot be read.
    """
    found: list[Decision] = []
    for job in JOBS:
        if job not in jobs:
            continue
        due, reason = _RULES[job](facts, policies, history, now)
        held = reason_to_skip(job, policies, now) or (busy if job == "compaction" else None)
        found.append(
            Decision(job, "held", held) if due and held else Decision(job, "due" if due else "not due", reason)
        )
    return found


_Answer = tuple[bool, str]


def _retention(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> _Answer:
    if policies.retention is None:
        return False, "no retention policy"
    if facts.snapshot is None:
        return False, "no rows"
    pause = timedelta(hours=1) if policies.retention.unit == "hour" else PAUSE
    return _by_time("retention", history, now, pause)


def _snapshot_expiration(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> _Answer:
    del history  # The snapshots that are there say all.
    if facts.keeps_garbage:
        return False, "gc.enabled=false"
    rules = HistoryRules.of(facts.properties, policies.history)
    taken = expiring(facts.snapshots, facts.refs, rules, now)
    return bool(taken), f"{len(taken)} of {len(facts.snapshots)} snapshots are past the table's history"


def _orphan_files(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> _Answer:
    del policies  # It tells the age of files, which only the job looks at.
    if facts.keeps_garbage:
        return False, "gc.enabled=false"
    return _by_time("orphan-files", history, now, PAUSE)


def _staged_files(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> _Answer:
    if facts.keeps_garbage:
        return False, "gc.enabled=false"
    if history.oldest_candidate is None:
        return False, "no candidates"
    days = (policies.staged_files or StagedFilesPolicy()).older_than_days
    due = history.oldest_candidate <= now - timedelta(days=days)
    return due, f"the oldest candidate was found {history.oldest_candidate:%Y-%m-%d %H:%M}, {days} days are to pass"


def _compaction(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> _Answer:
    del now
    if facts.snapshot is None:
        return False, "no rows"
    policy = policies.compaction or CompactionPolicy()
    target, files, size = int(policy.target_file_size), facts.data_files, facts.data_bytes
    if files is not None and size is not None:
        if files < policy.min_input_files and size <= LARGEST * target:
            return False, f"{files} data files, {policy.min_input_files} are worth it"
        if policy.strategy == "bin-pack" and files and SMALLEST * target <= size / files <= target:
            return False, f"{files} data files of {size // files} bytes each are of the wanted size"
    return _by_change("compaction", facts, history)


def _rewrite_manifests(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> _Answer:
    del policies
    if facts.snapshot is None:
        return False, "no rows"
    if facts.data_files is not None and facts.delete_files is not None:
        files = facts.data_files + facts.delete_files
        if files < MANIFESTS_WORTH_IT:
            return False, f"{files} data and delete files are in fewer than {MANIFESTS_WORTH_IT} manifests"
    changed = _by_change("rewrite-manifests", facts, history)
    if not changed[0]:
        return changed
    last = history.succeeded.get("rewrite-manifests")
    if last and facts.snapshots and min(one.committed_at for one in facts.snapshots) <= last:
        # All commits since then are known, and each adds a manifest or two.
        commits = sum(one.committed_at > last for one in facts.snapshots)
        if commits < MANIFESTS_WORTH_IT:
            return False, f"{commits} commits since {last:%Y-%m-%d %H:%M}, {MANIFESTS_WORTH_IT} are worth it"
    return _by_time("rewrite-manifests", history, now, PAUSE)


def _statistics(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> _Answer:
    del policies
    last = history.succeeded.get("statistics")
    if last and facts.touched_at < last:
        return False, f"untouched since {last:%Y-%m-%d %H:%M}"
    return _by_time("statistics", history, now, PAUSE)


def _by_time(job: Job, history: History, now: datetime, pause: timedelta) -> _Answer:
    last = history.succeeded.get(job)
    if last is None:
        return True, "no earlier run"
    return now - last >= pause, f"last run {last:%Y-%m-%d %H:%M}"


def _by_change(job: Job, facts: TableFacts, history: History) -> _Answer:
    last = history.succeeded.get(job)
    if last is None:
        return True, "no earlier run"
    if facts.changed_at is None or facts.changed_at < last:
        return False, f"unchanged since {last:%Y-%m-%d %H:%M}"
    return True, f"changed {facts.changed_at:%Y-%m-%d %H:%M}"


_RULES: Mapping[Job, Callable[[TableFacts, TablePolicies, History, datetime], _Answer]] = {
    "retention": _retention,
    "snapshot-expiration": _snapshot_expiration,
    "orphan-files": _orphan_files,
    "staged-files": _staged_files,
    "compaction": _compaction,
    "rewrite-manifests": _rewrite_manifests,
    "statistics": _statistics,
}
