"""Close the open runs of dead runners in `ops.job_runs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException

from lakewright_spark.scheduler.claims import active_runners
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.job_runs import HISTORY_WINDOW
from lakewright_spark.scheduler.run_log.ops_tables import find_table
from lakewright_spark.scheduler.run_log.records import KILLED, RunRecord, RunState
from lakewright_spark.times import format_day

CLOSED_UNTIL = "lakewright.closed-until"
"""Property of `ops.job_runs`: the oldest day that may have open runs. On earlier days, every run has ended."""


def close_abandoned_runs(catalog: Catalog, warehouse: str, runner: str, now: datetime) -> list[RunRecord]:
    """Close the open runs of dead runners, and return them: as failed, or as cancelled if they were not begun.

    Runs of this runner and of holders of the lease or a claim remain open. Jobs of closed runs are still due. Days
    whose runs an earlier runner closed are not read again: a property of the table has the first open day.
    """
    alive = {runner, *active_runners(catalog, datetime.now(UTC))}
    table = find_table(catalog, job_runs.NAME)
    if table is None:
        return []
    closed: list[RunRecord] = []
    until = format_day(now)
    for day in _days(table.properties.get(CLOSED_UNTIL), now):
        open_runs = job_runs.list_open_runs(table, warehouse, day)
        if any(run.runner not in alive for run in open_runs):
            alive |= active_runners(catalog, datetime.now(UTC))  # includes runners that have started since
        dead = _close_runs([run for run in open_runs if run.runner not in alive], now)
        if dead:
            job_runs.append(catalog, dead, now)
        closed += dead
        if len(dead) < len(open_runs):  # open runs of active runners: a later runner has to read this day again
            until = min(until, day)
    if table.properties.get(CLOSED_UNTIL) != until:
        # If this conflicts, the days are read again next time.
        with suppress(CommitFailedException), table.refresh().transaction() as change:
            change.set_properties({CLOSED_UNTIL: until})
    return closed


def count_kills(
    catalog: Catalog, runs: Iterable[RunRecord], closed: Sequence[RunRecord], holders: Mapping[str, str], now: datetime
) -> dict[str, int]:
    """Return how many more deaths of runners each table may have caused: two for a table that is the only cause.

    A runner may die before it records that a run began. For tables of such runners, failed runs are recorded.

    Args:
        catalog: Catalog of the warehouse.
        runs: The first due run of each table.
        closed: Runs of dead runners that were closed.
        holders: Name of the dead runner by the UUID of the table.
        now: Instant (UTC) of the records.
    """
    killed = [run for run in closed if run.killed_runner]
    explained_runners = {run.runner for run in killed if run.is_suspect}
    recorded_tables = {run.table_uuid for run in killed}
    lost = [
        _fail_run(replace(run, id=uuid4().hex, runner=holder, state=RunState.RUNNING, started_at=now), now)
        for run in runs
        if (holder := holders.get(run.table_uuid)) is not None
        and holder not in explained_runners
        and run.table_uuid not in recorded_tables
    ]
    if lost:
        job_runs.append(catalog, lost, now)
    return {run.table_uuid: 1 + run.is_suspect for run in [*lost, *killed]}


def _days(closed_until: str | None, now: datetime) -> Iterator[str]:
    """Yield the days that may have open runs. A run may be queued on one day and end on the next."""
    first = now - HISTORY_WINDOW
    if closed_until is not None:
        first = max(first, datetime.fromisoformat(closed_until).replace(tzinfo=UTC) - timedelta(days=1))
    for number in range((now.date() - first.date()).days + 2):  # clocks differ between machines
        yield format_day(first + timedelta(days=number))


def _close_runs(runs: Sequence[RunRecord], now: datetime) -> list[RunRecord]:
    """Return the runs as failed, or as cancelled if they were not begun, or another table killed their runner."""
    explained_runners = {run.runner for run in runs if run.is_suspect and run.state is RunState.RUNNING}
    closed: list[RunRecord] = []
    for run in runs:
        if run.state is RunState.QUEUED:
            reason = f"not begun, or not recorded as begun: its runner {run.runner} died"
            closed.append(replace(run, state=RunState.CANCELLED, reason=reason))
        elif run.runner in explained_runners and not run.is_suspect:
            reason = f"lost: its runner {run.runner} died during a run on another table; the job runs again"
            closed.append(replace(run, state=RunState.CANCELLED, reason=reason, finished_at=now))
        else:
            closed.append(_fail_run(run, now))
    return closed


def _fail_run(run: RunRecord, now: datetime) -> RunRecord:
    reason = f"lost: its runner {run.runner} died; the job runs again if it is still due"
    return replace(run, state=RunState.FAILED, reason=reason, finished_at=now, metrics={**run.metrics, KILLED: True})
