"""When a job became due: the due rule, asked about earlier states of the table. Pure functions.

A job is due by its cadence, by the age of snapshots, or by changes of the table. The time since its last success says
nothing about an idle table, whose job became due an hour ago.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from lakewright_spark.maintenance.jobs.job import DueDecision, History, MaintenanceJob, due_after
from lakewright_spark.maintenance.table.expiration import Ref
from lakewright_spark.maintenance.table.facts import TableFacts, format_unreadable
from lakewright_spark.policies.model import TablePolicies

PRECISION = timedelta(hours=1)
"""A time is found at most this much too late, in 14 steps for a year."""
_MAIN = "main"


def decide_due(
    job: MaintenanceJob, facts: TableFacts, policies: TablePolicies, history: History, now: datetime
) -> DueDecision:
    """Return whether a job is due by its rule and by the cadence of the policies, if Spark can read the table."""
    if job.reads_columns and facts.unreadable_types:
        return DueDecision(is_due=False, reason=format_unreadable(facts.unreadable_types))
    decision = job.is_due(facts, policies, history, now)
    if decision.is_due and (every := policies.every(job.name)):
        return due_after(every, job.name, policies, history, now)
    return decision


def find_due_since(
    job: MaintenanceJob, facts: TableFacts, policies: TablePolicies, history: History, now: datetime
) -> datetime:
    """Return when a job that is due now became due (UTC), at most `PRECISION` too late.

    The time is not before the job's last success, or before the oldest known snapshot or due run of the table.
    """
    oldest = min((snapshot.committed_at for snapshot in facts.snapshots), default=facts.touched_at)
    start = history.succeeded.get(job.name) or min(oldest, history.first_due or oldest)

    def was_due(at: datetime) -> bool:
        return decide_due(job, restore_facts(facts, at), policies, history, at).is_due

    return _find_first(was_due, start, now)


def _find_first(is_true: Callable[[datetime], bool], start: datetime, end: datetime) -> datetime:
    """Return the first time at which a condition is true that remains true until the end."""
    if start >= end or is_true(start):
        return min(start, end)
    while end - start > PRECISION:
        middle = start + (end - start) / 2
        start, end = (start, middle) if is_true(middle) else (middle, end)
    return end


def restore_facts(facts: TableFacts, at: datetime) -> TableFacts:
    """Return the facts as of an earlier time, as far as the table still has its snapshots.

    Before the oldest snapshot, whose parents have expired, the table counts as changed: a check must not miss a wait.
    Rewrites are no changes, or the commit of each compaction would count as a reason for another.
    """
    newer = [commit for commit in facts.additions if commit.committed_at > at]
    files, size = facts.data_files, facts.data_bytes
    earlier_facts = replace(
        facts,
        data_files=None if files is None else max(files - sum(commit.files for commit in newer), 0),
        data_bytes=None if size is None else max(size - sum(commit.bytes for commit in newer), 0),
        additions=tuple(commit for commit in facts.additions if commit.committed_at <= at),
    )
    snapshots = tuple(snapshot for snapshot in facts.snapshots if snapshot.committed_at <= at)
    oldest = next(iter(facts.snapshots), None)
    if not snapshots and oldest is not None and oldest.parent is not None and not oldest.is_rewrite:
        return replace(earlier_facts, changed_at=at, touched_at=at)
    newest = max(snapshots, key=lambda snapshot: snapshot.committed_at, default=None)
    existing = {snapshot.id for snapshot in snapshots}
    refs = [ref for ref in facts.refs if ref.snapshot in existing and ref.name != _MAIN]
    if newest is not None:
        main = next((ref for ref in facts.refs if ref.name == _MAIN), Ref(_MAIN, "BRANCH", newest.id))
        refs.append(main if main.snapshot in existing else replace(main, snapshot=newest.id))
    last_change = max((snapshot.committed_at for snapshot in snapshots if not snapshot.is_rewrite), default=None)
    return replace(
        earlier_facts,
        snapshots=snapshots,
        refs=tuple(refs),
        snapshot=newest.id if newest and facts.snapshot is not None else None,
        changed_at=facts.changed_at if facts.changed_at is None or facts.changed_at <= at else last_change,
        touched_at=min(facts.touched_at, newest.committed_at if newest else at),
    )
