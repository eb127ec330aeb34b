"""The worker thread of a table: runs its jobs in order, in a Spark pool, each under a tag for cancellation."""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewright_spark.errors import LakewrightSparkError, NoSuchResultError
from lakewright_spark.maintenance.job_runner import PlannedTable, run_job
from lakewright_spark.maintenance.jobs.job import JobMetrics
from lakewright_spark.maintenance.table.iceberg import SharedTable
from lakewright_spark.maintenance.table.row_buffer import RowBuffer
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.scheduler.prediction import compute_gb_hours
from lakewright_spark.scheduler.run_log.records import (
    GB_HOURS,
    KILLED,
    PLAN,
    PREDICTED,
    RESTORE,
    SUSPECT,
    RunRecord,
    RunState,
)
from lakewright_spark.table_identifier import TableIdentifier

POOL = "spark.scheduler.pool"
OUT_OF_MEMORY = "OutOfMemoryError"
"""Name of Java's error in the reason of a failed run."""


@dataclass(frozen=True)
class TableWork:
    """Runs of one table, in run order."""

    table: TableIdentifier
    policies: TablePolicies
    runs: tuple[RunRecord, ...]
    planned: Callable[[RunRecord], PlannedTable] | None = None
    """Returns the values that a job checks before it begins."""
    buffer: RowBuffer | None = None
    """Collects rows of the tables of `ops`."""
    runs_alone: bool = False
    """Whether the table kills runners, so that no other table is in work at the same time."""
    is_suspect: bool = False
    """Whether the table may kill the runner. One such table at a time is in work, beside other tables: if the runner
    dies, this table is the cause."""

    @property
    def seconds(self) -> float:
        """Predicted duration of the runs."""
        return sum(run.metrics.get(PREDICTED, {}).get("seconds", 0.0) for run in self.runs)

    def mark_runs(self) -> TableWork:
        """Return the work whose runs say that the table may kill the runner."""
        runs = (dataclasses.replace(run, metrics={**run.metrics, SUSPECT: True}) for run in self.runs)
        return dataclasses.replace(self, runs=tuple(runs))

    @property
    def uuid(self) -> str:
        """UUID of the table."""
        return self.runs[0].table_uuid


@dataclass(frozen=True)
class Event:
    """Event of a worker thread. `left`: the thread has ended, and the remaining runs were not begun."""

    kind: Literal["began", "ended", "left"]
    worker: TableWorker
    run: RunRecord | None = None


@dataclass(eq=False)
class TableWorker:
    """Runs the jobs of a table; `stop` keeps it from beginning another run."""

    spark: SparkSession
    work: TableWork
    slot: int
    """Number of the worker's Spark pool, which gets a fair share of the executors."""
    events: queue.SimpleQueue[Event]
    clock: Callable[[], datetime]
    dry_run: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the thread has ended."""

    def __post_init__(self) -> None:
        """Prepare the table for its jobs."""
        self._shared = SharedTable(self.spark, self.work.table, self.work.buffer)

    def start(self) -> None:
        """Start the thread."""
        # A daemon thread: a call that never returns must not keep the process alive.
        InheritableThread(target=self._run, name=f"{self.work.table}", daemon=True, session=self.spark).start()

    def _run(self) -> None:
        try:
            for run in self.work.runs:
                if self.stop.is_set():
                    break
                began = dataclasses.replace(run, state=RunState.RUNNING, started_at=self.clock())
                self.events.put(Event("began", self, began))
                ended = self._run_job(began)
                self.events.put(Event("ended", self, _end(ended, self.clock())))
            with suppress(Py4JError, PySparkException, ConnectionError):  # the JVM may have ended
                self._shared.close()
        finally:
            self.ended.set()
            self.events.put(Event("left", self))

    def _run_job(self, run: RunRecord) -> RunRecord:
        assert run.started_at
        assert run.job not in (PLAN, RESTORE)
        try:
            with self._tag_job(run):
                metrics = run_job(
                    run.job,
                    self.spark,
                    run.table,
                    self.work.policies,
                    dry_run=self.dry_run,
                    now=run.started_at,
                    planned=self.work.planned(run) if self.work.planned else None,
                    shared=self._shared,
                )
        except NoSuchResultError as error:
            return dataclasses.replace(
                run, state=RunState.SKIPPED, reason=f"the table no longer exists: {error}", error=error
            )
        except LakewrightSparkError as error:
            return self._fail(run, str(error), error)
        except Exception as error:  # noqa: BLE001  # any error: it must not affect other tables
            reason = (str(error).strip().splitlines() or [""])[0]
            return self._fail(run, f"{type(error).__name__}: {reason}")
        fields = _to_fields(metrics)
        return dataclasses.replace(run, **{**fields, "metrics": {**run.metrics, **fields["metrics"]}})

    def _fail(self, run: RunRecord, reason: str, error: LakewrightSparkError | None = None) -> RunRecord:
        self._shared.forget()
        failed = dataclasses.replace(run, state=RunState.FAILED, reason=reason, error=error)
        if not is_alive(self.spark):
            self.stop.set()
            why = f"Spark's JVM ended during this run; it may have run out of memory ({reason})"
            return dataclasses.replace(failed, reason=why, metrics={**run.metrics, KILLED: True})
        if OUT_OF_MEMORY in reason:
            return dataclasses.replace(failed, metrics={**run.metrics, KILLED: True})
        return failed

    @contextmanager
    def _tag_job(self, run: RunRecord) -> Generator[None, None, None]:
        context = self.spark.sparkContext
        context.setLocalProperty(POOL, f"maintenance-{self.slot}")
        context.setLocalProperty("spark.job.description", str(run))
        # Not a job group: Iceberg's actions set their own groups but leave tags alone.
        context.addJobTag(run.id)
        try:
            yield
        finally:
            with suppress(Py4JError, ConnectionError):  # the JVM may have ended
                context.removeJobTag(run.id)


def is_alive(spark: SparkSession) -> bool:
    """Return whether the session's JVM responds."""
    java: Any = spark.sparkContext._jsc  # pyright: ignore[reportPrivateUsage]
    try:
        return java is not None and not java.sc().isStopped()
    except (Py4JError, ConnectionError):
        return False


def _end(run: RunRecord, now: datetime) -> RunRecord:
    """Return a run that ended now, with its actual cost beside the predicted cost."""
    ended = dataclasses.replace(run, finished_at=now)
    if PREDICTED not in run.metrics:
        return ended
    return dataclasses.replace(ended, metrics={**run.metrics, GB_HOURS: round(compute_gb_hours(ended.seconds or 0), 6)})


def _to_fields(metrics: JobMetrics) -> dict[str, Any]:
    """Return state, reason and metrics of a run whose job completed."""
    numbers = dataclasses.asdict(metrics)
    state, reason = RunState(numbers.pop("state")), numbers.pop("reason")
    if metrics.failure:
        state, reason = RunState.FAILED, metrics.failure
        if OUT_OF_MEMORY in reason:
            numbers[KILLED] = True
    return {"state": state, "reason": reason, "metrics": numbers}
