"""The thread of one table: its jobs one after the other, in a Spark pool, each under a tag by which it is cancelled."""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from lakewright_spark.errors import LakewrightSparkError, NoSuchResultError
from lakewright_spark.maintenance import registry as jobs
from lakewright_spark.maintenance.switches import Metrics
from lakewright_spark.maintenance.table.ops_tables import RowBuffer
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.scheduler.run_log.records import PLAN, RESTORE, RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier

POOL = "spark.scheduler.pool"


@dataclass(frozen=True)
class TableWork:
    """Runs of one table, in the order in which they have to come."""

    table: TableIdentifier
    policies: TablePolicies
    runs: tuple[RunRecord, ...]
    planned: Callable[[RunRecord], jobs.Planned] | None = None
    """What a job looks at again before it begins."""
    buffer: RowBuffer | None = None
    """Takes what jobs keep in `ops`."""

    @property
    def uuid(self) -> str:
        """The table's."""
        return self.runs[0].table_uuid


@dataclass(frozen=True)
class Event:
    """What a thread tells the supervisor. `left`: it has ended; runs that it did not begin were not run."""

    what: Literal["began", "ended", "left"]
    worker: TableThread
    run: RunRecord | None = None


@dataclass(eq=False)
class TableThread:
    """Runs what is to be done about a table; `stop` keeps it from beginning another run."""

    spark: SparkSession
    work: TableWork
    slot: int
    """Of those that run at once; its pool gets a fair share of the executors."""
    events: queue.SimpleQueue[Event]
    clock: Callable[[], datetime]
    dry_run: bool = False
    stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        # A daemon: a call that never comes back must not keep the process from ending.
        InheritableThread(target=self._run, name=f"{self.work.table}", daemon=True, session=self.spark).start()

    def _run(self) -> None:
        try:
            for run in self.work.runs:
                if self.stop.is_set():
                    break
                began = dataclasses.replace(run, state=RunState.RUNNING, started_at=self.clock())
                self.events.put(Event("began", self, began))
                ended = self._ended(began)
                self.events.put(Event("ended", self, dataclasses.replace(ended, finished_at=self.clock())))
        finally:
            self.events.put(Event("left", self))

    def _ended(self, run: RunRecord) -> RunRecord:
        assert run.started_at
        assert run.job not in (PLAN, RESTORE)
        try:
            with self._tagged(run):
                metrics = jobs.run(
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
            return dataclasses.replace(run, state=RunState.SKIPPED, reason=f"it is gone: {error}", error=error)
        except LakewrightSparkError as error:
            return dataclasses.replace(run, state=RunState.FAILED, reason=str(error), error=error)
        except Exception as error:  # noqa: BLE001  # one table's trouble, of whatever kind, is not the others'
            reason = (str(error).strip().splitlines() or [""])[0]
            return dataclasses.replace(run, state=RunState.FAILED, reason=f"{type(error).__name__}: {reason}")
        return dataclasses.replace(run, **_fields_of(metrics))

    @contextmanager
    def _tagged(self, run: RunRecord) -> Iterator[None]:
        context = self.spark.sparkContext
        context.setLocalProperty(POOL, f"maintenance-{self.slot}")
        context.setLocalProperty("spark.job.description", str(run))
        # Not a job group: Iceberg's actions set groups of their own, tags they leave as they are.
        context.addJobTag(run.id)
        try:
            yield
        finally:
            context.removeJobTag(run.id)


def _fields_of(metrics: Metrics) -> dict[str, Any]:
    """State, reason and numbers of a run whose job came to its end."""
    numbers = dataclasses.asdict(metrics)
    state, reason = RunState(numbers.pop("state")), numbers.pop("reason")
    if metrics.failure:
        state, reason = RunState.FAILED, metrics.failure
    return {"state": state, "reason": reason, "metrics": numbers}
