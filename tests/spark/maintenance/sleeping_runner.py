"""A runner of many tables in its own process, whose jobs sleep. Arguments: configuration, namespace, seconds of a job.

It prints `TABLE STATE` for each change of a run.
"""

from __future__ import annotations

import dataclasses
import queue
import re
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.runner import MaintenanceRunner
from lakewright_spark.scheduler.supervisor import Limits
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.scheduler.table_worker import Event, TableWork

LEASE = timedelta(seconds=15)
PARALLEL = 2


class SleepingWorker:
    """A worker whose jobs sleep."""

    def __init__(self, spark: object, work: TableWork, slot: int, events: queue.SimpleQueue[Event], *_: object) -> None:
        del spark
        self.work, self.slot, self.events = work, slot, events
        self.stop, self.ended = threading.Event(), threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        worker: Any = self
        for run in self.work.runs:
            began = dataclasses.replace(run, state=RunState.RUNNING, started_at=datetime.now(UTC))
            self.events.put(Event("began", worker, began))
            time.sleep(float(sys.argv[3]))
            ended = dataclasses.replace(began, state=RunState.SUCCEEDED, finished_at=datetime.now(UTC))
            self.events.put(Event("ended", worker, ended))
        self.ended.set()
        self.events.put(Event("left", worker))


def print_state(run: RunRecord) -> None:
    print(run.table.name, run.state.value, flush=True)


if __name__ == "__main__":
    session: Any = object()
    outcome = MaintenanceRunner(
        CatalogConfig.load(Path(sys.argv[1])),
        Filters(re.compile(sys.argv[2]), None, ("statistics",)),
        Limits(parallel=PARALLEL),
        session=session,
        lease_life=LEASE,
        record_every=1.0,
        observers=[print_state],
        start_worker=SleepingWorker,
    ).run()
    if error := outcome.error():
        sys.exit(str(error))
