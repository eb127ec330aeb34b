"""The worker thread of a table: runs its jobs in order, in a Spark pool, each under a tag for cancellation."""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from lakewright_spark.errors import LakewrightSparkError, NoSuchResultError
from lakewright_spark.maintenance.job_runner import PlannedTable, run_job
from lakewright_spark.maintenance.jobs.job import JobMetrics
from lakewright_spark.maintenance.table.row_buffer import RowBuffer
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.scheduler.run_log.records import PLAN, RESTORE, RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier

POOL = "spark.scheduler.pool"


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
                self.events.put(Event("ended", self, dataclasses.replace(ended, finished_at=self.clock())))
        finally:
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
                    buffer=self.work.buffer,
                )
        except NoSuchResultError as error:
            return dataclasses.replace(
                run, state=RunState.SKIPPED, reason=f"the table no longer exists: {error}", error=error
            )
        except LakewrightSparkError as error:
            return dataclasses.replace(run, state=RunState.FAILED, reason=str(error), error=error)
        except Exception as error:  # noqa: BLE001  # any error: it must not affect other tables
            reason = (str(error).strip().splitlines() or [""])[0]
            return dataclasses.replace(run, state=RunState.FAILED, reason=f"{type(error).__name__}: {reason}")
        return dataclasses.replace(run, **_to_fields(metrics))

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
            context.removeJobTag(run.id)


def _to_fields(metrics: JobMetrics) -> dict[str, Any]:
    """Return state, reason and metrics of a run whose job completed."""
    numbers = dataclasses.asdict(metrics)
    state, reason = RunState(numbers.pop("state")), numbers.pop("reason")
    if metrics.failure:
        state, reason = RunState.FAILED, metrics.failure
    return {"state": state, "reason": reason, "metrics": numbers}
