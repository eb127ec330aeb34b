"""Stand-ins of workers for tests of the supervisor: each runs in a thread of its own and starts no Spark job."""

from __future__ import annotations

import dataclasses
import queue
import threading
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Any

from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.table_worker import Event, TableWork
from lakewright_spark.table_identifier import TableIdentifier

NOW = datetime(2026, 11, 22, 2, tzinfo=UTC)


class StubWorker(ABC):
    """A worker that reports the begin and the end of each run of a table, up to the first failure."""

    def __init__(self, spark: Any, work: TableWork, slot: int, events: queue.SimpleQueue[Event], *_: Any) -> None:
        self.spark, self.work, self.slot, self.events = spark, work, slot, events
        self.stop, self.ended = threading.Event(), threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    @abstractmethod
    def end(self, run: RunRecord) -> RunRecord:
        """Wait until a run has ended; return it with its state."""

    def _run(self) -> None:
        worker: Any = self
        for run in self.work.runs:
            began = dataclasses.replace(run, state=RunState.RUNNING, started_at=NOW)
            self.events.put(Event("began", worker, began))
            ended = dataclasses.replace(self.end(began), finished_at=NOW)
            self.events.put(Event("ended", worker, ended))
            if ended.state is RunState.FAILED:
                break
        self.ended.set()
        self.events.put(Event("left", worker))


def build_work(name: str, **settings: Any) -> TableWork:
    """Return one run of compaction on a table, with `job_settings` by job."""
    table = TableIdentifier("local", ("sales",), name)
    run = RunRecord(runner="us", table=table, table_uuid=f"uuid-{name}", job="compaction", queued_at=NOW)
    policies = TablePolicies.model_validate({"job_settings": settings} if settings else {})
    return TableWork(table, policies, (run,))
