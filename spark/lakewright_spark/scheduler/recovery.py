"""Runs that a runner left behind when it died: whoever holds the lease after it says so in `ops.job_runs`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pyiceberg.catalog import Catalog

from lakewright_spark.scheduler import job_runs
from lakewright_spark.scheduler.history import REMEMBERED
from lakewright_spark.scheduler.records import RunRecord, RunState


def close_runs_of_the_dead(catalog: Catalog, warehouse: str, runner: str, now: datetime) -> list[RunRecord]:
    """Runs that have not ended, of any runner but this one, are failed or were never begun; those that it closed.

    Only for the holder of the lease: nobody else runs anything then. What they were to do is due as before.
    """
    closed = [
        _closed(run, now)
        for run in job_runs.runs(catalog, warehouse, now - REMEMBERED)
        if not run.state.ended and run.runner != runner
    ]
    if closed:
        job_runs.append(catalog, closed, now)
    return closed


def _closed(run: RunRecord, now: datetime) -> RunRecord:
    if run.state is RunState.QUEUED:
        reason = f"not begun, or not recorded as begun: its runner {run.runner} died"
        return replace(run, state=RunState.CANCELLED, reason=reason)
    reason = f"lost: its runner {run.runner} died; what is still due is done again"
    return replace(run, state=RunState.FAILED, reason=reason, finished_at=now)
