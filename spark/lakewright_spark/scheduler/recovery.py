"""Runs that a runner left behind when it died: the next runner says so in `ops.job_runs`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException

from lakewright_spark.scheduler.lease import holders
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.job_runs import REMEMBERED
from lakewright_spark.scheduler.run_log.ops_tables import found
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState

CLOSED_UNTIL = "lakewright.closed-until"
"""Property of `ops.job_runs`: the oldest day that may have open runs; on earlier days, every run has ended."""


def close_runs_of_the_dead(catalog: Catalog, warehouse: str, runner: str, now: datetime) -> list[RunRecord]:
    """Close runs that have not ended and return them: they failed, or were never begun.

    Runs of this runner and of those that hold the lease or a claim are left alone. What the others were to do is due as
    before. Days whose runs an earlier runner has closed are not read again: a property of the table says which.
    """
    alive = {runner, *holders(catalog, datetime.now(UTC))}
    table = found(catalog, job_runs.NAME)
    if table is None:
        return []
    closed: list[RunRecord] = []
    until = f"{now:%Y-%m-%d}"
    for day in _days(table.properties.get(CLOSED_UNTIL), now):
        left = job_runs.open_runs(table, warehouse, day)
        if any(run.runner not in alive for run in left):
            alive |= holders(catalog, datetime.now(UTC))  # who has come since, and entered a run
        dead = [_closed(run, now) for run in left if run.runner not in alive]
        if dead:
            job_runs.append(catalog, dead, now)
        closed += dead
        if len(dead) < len(left):  # runs of the living: whoever comes after their death has to read this day again
            until = min(until, day)
    if table.properties.get(CLOSED_UNTIL) != until:
        # A commit that loses leaves the days to be read once more.
        with suppress(CommitFailedException), table.refresh().transaction() as change:
            change.set_properties({CLOSED_UNTIL: until})
    return closed


def _days(closed_until: str | None, now: datetime) -> Iterator[str]:
    """Yield the days whose runs may be open. A run is queued on one day and may end on the next."""
    first = now - REMEMBERED
    if closed_until is not None:
        first = max(first, datetime.fromisoformat(closed_until).replace(tzinfo=UTC) - timedelta(days=1))
    for number in range((now.date() - first.date()).days + 2):  # clocks differ: tomorrow may have begun elsewhere
        yield f"{first + timedelta(days=number):%Y-%m-%d}"


def _closed(run: RunRecord, now: datetime) -> RunRecord:
    if run.state is RunState.QUEUED:
        reason = f"not begun, or not recorded as begun: its runner {run.runner} died"
        return replace(run, state=RunState.CANCELLED, reason=reason)
    reason = f"lost: its runner {run.runner} died; what is still due is done again"
    return replace(run, state=RunState.FAILED, reason=reason, finished_at=now)
