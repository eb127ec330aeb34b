"""Histories of tables from `ops.job_runs` and the orphan candidates: what the rules for due jobs ask for."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from lakewright_spark.maintenance.jobs.job import Effect, Failures, History
from lakewright_spark.maintenance.registry import MAINTENANCE_JOBS
from lakewright_spark.policies.model import JOBS, JobName
from lakewright_spark.scheduler.run_log.job_runs import HISTORY_WINDOW, NAME, build_day_filter
from lakewright_spark.scheduler.run_log.ops_tables import find_table, read_parts
from lakewright_spark.scheduler.run_log.orphan_candidates import read_oldest_candidates
from lakewright_spark.scheduler.run_log.records import BASIS, KILLED, TIMED_OUT, RunState

EFFECTS_WINDOW = timedelta(days=14)
"""Age of the runs whose effects count for predictions."""
_NEVER = datetime.min.replace(tzinfo=UTC)


def load_histories(catalog: Catalog, now: datetime) -> Mapping[str, History]:
    """Return the earlier runs of maintenance jobs by table UUID. Tables without runs and candidates are left out."""
    succeeded: defaultdict[str, dict[JobName, datetime]] = defaultdict(dict)
    seconds: defaultdict[str, dict[JobName, float]] = defaultdict(dict)
    failures: Mapping[str, Mapping[JobName, Failures]] = {}
    first_due: Mapping[str, datetime] = {}
    effects: Mapping[str, Mapping[JobName, Effect]] = {}
    bases: Mapping[str, Mapping[JobName, Mapping[str, Any]]] = {}
    if (runs := find_table(catalog, NAME)) is not None:
        row_filter = f"{build_day_filter(now - HISTORY_WINDOW)} AND state = '{RunState.SUCCEEDED}'"
        for part in read_parts(runs, row_filter, ("table_uuid", "job", "started_at", "seconds")):
            # The last row of a group is that of its newest run.
            newest = (
                part.sort_by("started_at")
                .group_by(["table_uuid", "job"], use_threads=False)
                .aggregate([("started_at", "last"), ("seconds", "last")])
            )
            for uuid, job, at, took in _rows(newest, "table_uuid", "job", "started_at_last", "seconds_last"):
                # A restore is recorded as a run, but is no job of maintenance.
                if job in JOBS and at.astimezone(UTC) > succeeded[uuid].get(job, _NEVER):
                    succeeded[uuid][job], seconds[uuid][job] = at.astimezone(UTC), took or 0.0
        failures = _read_failures(runs, succeeded, now)
        first_due = _read_first_due(runs, now)
        effects, bases = _read_results(runs, now)
    oldest = read_oldest_candidates(catalog)
    return {
        uuid: History(
            succeeded[uuid],
            oldest.get(uuid),
            failures.get(uuid, {}),
            seconds[uuid],
            effects.get(uuid, {}),
            bases.get(uuid, {}),
            first_due.get(uuid),
        )
        for uuid in {**succeeded, **oldest, **failures, **first_due}
    }


def _read_first_due(runs: Table, now: datetime) -> Mapping[str, datetime]:
    """Return when the first run that was not begun was queued, by table UUID."""
    first: dict[str, datetime] = {}
    for part in read_parts(
        runs, f"{build_day_filter(now - HISTORY_WINDOW)} AND started_at IS NULL", ("table_uuid", "queued_at")
    ):
        oldest = part.group_by(["table_uuid"]).aggregate([("queued_at", "min")])
        for uuid, at in _rows(oldest, "table_uuid", "queued_at_min"):
            first[uuid] = min(at.astimezone(UTC), first.get(uuid, now))
    return first


def _read_results(
    runs: Table, now: datetime
) -> tuple[Mapping[str, Mapping[JobName, Effect]], Mapping[str, Mapping[JobName, Mapping[str, Any]]]]:
    """Return effect and basis of the last successful run of jobs that rewrite files, by table UUID and job."""
    newest: dict[tuple[str, JobName], tuple[datetime, str]] = {}
    names = "', '".join(job.name for job in MAINTENANCE_JOBS if job.predict or job.describe_basis)
    row_filter = f"{build_day_filter(now - HISTORY_WINDOW)} AND state = '{RunState.SUCCEEDED}' AND job IN ('{names}')"
    columns = ("table_uuid", "job", "started_at", "metrics")
    for part in read_parts(runs, row_filter, columns):
        for uuid, job, at, text in _rows(part, *columns):
            if (uuid, job) not in newest or at > newest[uuid, job][0]:
                newest[uuid, job] = at, text
    effects: defaultdict[str, dict[JobName, Effect]] = defaultdict(dict)
    bases: defaultdict[str, dict[JobName, Mapping[str, Any]]] = defaultdict(dict)
    for (uuid, job), (at, text) in newest.items():
        metrics = json.loads(text)
        if BASIS in metrics:
            bases[uuid][job] = metrics[BASIS]
        if at >= now - EFFECTS_WINDOW:
            rewritten = int(metrics.get("rewritten", 0))
            files = rewritten - int(metrics.get("added", 0))
            effects[uuid][job] = Effect(files, int(metrics.get("bytes", 0)), rewritten)
    return effects, bases


def _read_failures(
    runs: Table, succeeded: Mapping[str, Mapping[JobName, datetime]], now: datetime
) -> Mapping[str, Mapping[JobName, Failures]]:
    """Return the failures since the last success by table UUID and job. Cancelled runs count if they timed out."""
    failures: defaultdict[str, dict[JobName, Failures]] = defaultdict(dict)
    row_filter = (
        f"{build_day_filter(now - HISTORY_WINDOW)} AND started_at IS NOT NULL "
        f"AND state IN ('{RunState.FAILED}', '{RunState.CANCELLED}')"
    )
    names = ("table_uuid", "job", "state", "started_at", "finished_at", "metrics")
    for part in read_parts(runs, row_filter, names):
        for uuid, job, state, began, ended, text in _rows(part, *names):
            if job not in JOBS or began.astimezone(UTC) <= succeeded.get(uuid, {}).get(job, _NEVER):
                continue
            metrics = json.loads(text)
            if state != RunState.FAILED and not metrics.get(TIMED_OUT):
                continue
            earlier = failures[uuid].get(job, Failures(0, _NEVER))
            last = max(earlier.last, (ended or began).astimezone(UTC))
            failures[uuid][job] = Failures(earlier.count + 1, last, earlier.kills + bool(metrics.get(KILLED)))
    return failures


def _rows(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)
