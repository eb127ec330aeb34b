"""Nights of maintenance on generated tables: the real plans, order, back-off, queue, supervisor and run log.

Only Spark is simulated: a job takes a given time of a simulated clock, and one table may kill the JVM. With `by_name`,
tables have their turn by name, as in earlier releases.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import queue
import random
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.policies.model import JobName
from lakewright_spark.scheduler.outcome import MaintenanceOutcome
from lakewright_spark.scheduler.plan import WarehousePlan, order_plans
from lakewright_spark.scheduler.planning import MaintenancePlanner
from lakewright_spark.scheduler.run_log.ops_buffer import OpsBuffer
from lakewright_spark.scheduler.run_log.recorder import Recorder
from lakewright_spark.scheduler.run_log.records import KILLED, RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Control, Limits, Supervisor
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.scheduler.table_worker import Event, TableWork
from lakewright_spark.scheduler.work_queue import WorkQueue
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.types import LongType, NestedField

from benchmarks.measure import read_peak_mib

CONFIG = CatalogConfig(
    kind="jdbc",
    tenant="bench",
    uri="sqlite:////unused.db",
    warehouses=[CatalogWarehouse(name="many", location="s3://unused/many")],
)
FIRST_NIGHT = datetime(2026, 11, 1, 2, tzinfo=UTC)
DAY = timedelta(days=1)
JOBS: tuple[JobName, ...] = ("compaction", "statistics")
PARALLEL = 8
MiB = 2**20
SMALLEST_FILES = 5
LONGEST_SHARE = 1 / 8
"""Most of a night that one job takes. Nights of few tables are minutes long here; real time limits are short parts."""


class SimulatedClock:
    """A clock that only its owner moves."""

    def __init__(self) -> None:
        self.now = FIRST_NIGHT

    def __call__(self) -> datetime:
        return self.now

    def seconds(self) -> float:
        return self.now.timestamp()


class SimulatedEvents(queue.SimpleQueue[Event]):
    """Events that happen at times of the clock. Waiting for the next event moves the clock."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.clock, self.heap, self.number = clock, list[tuple[datetime, int, Event]](), itertools.count()

    def add(self, at: datetime, event: Event) -> None:
        heapq.heappush(self.heap, (at, next(self.number), event))

    def get(self, block: bool = True, timeout: float | None = None) -> Event:  # noqa: FBT001, FBT002  # as in queue
        del block  # it always does
        soon = self.clock.now + timedelta(seconds=timeout or 0)
        # Nothing happens before the next event, except that a time limit passes.
        until = soon if not self.heap else min(self.heap[0][0], soon + timedelta(minutes=1))
        self.clock.now = max(self.clock.now, until)
        return self.get_nowait()

    def get_nowait(self) -> Event:
        while self.heap and self.heap[0][0] <= self.clock.now:
            event = heapq.heappop(self.heap)[2]
            if not isinstance(event, PlannedEnd):
                return event
            worker: Any = event.worker
            if (ended := worker.end(event)) is not None:
                return ended
        raise queue.Empty


class SimulatedSpark:
    """A session whose JVM can die."""

    def __init__(self) -> None:
        self.is_dead = False
        self.workers: list[SimulatedWorker] = []
        self.sparkContext = self._jsc = self

    def sc(self) -> SimulatedSpark:
        return self

    def isStopped(self) -> bool:  # noqa: N802  # as in Spark
        if self.is_dead:
            raise ConnectionError("the JVM has ended")
        return False

    def statusTracker(self) -> SimulatedSpark:  # noqa: N802  # as in Spark
        return self

    def getJobIdsForTag(self, tag: str) -> list[int]:  # noqa: N802  # as in Spark
        del tag
        return []

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802  # as in Spark
        for worker in self.workers:
            worker.cancel(tag)


@dataclasses.dataclass(eq=False)
class SimulatedWorker:
    """A worker whose jobs take simulated time."""

    nights: SimulatedNights
    spark: SimulatedSpark
    work: TableWork
    slot: int
    events: SimulatedEvents
    remaining: list[RunRecord] = dataclasses.field(default_factory=list[RunRecord])
    run: RunRecord | None = None

    def __post_init__(self) -> None:
        self.stop, self.ended = threading.Event(), threading.Event()
        self.remaining = list(self.work.runs)
        self.spark.workers.append(self)

    def start(self) -> None:
        self._begin(self.nights.clock.now)

    def _begin(self, at: datetime) -> None:
        worker: Any = self
        if not self.remaining or self.stop.is_set():
            self.run = None
            self.spark.workers.remove(self)
            self.ended.set()
            self.events.add(at, Event("left", worker))
            return
        self.run = dataclasses.replace(self.remaining.pop(0), state=RunState.RUNNING, started_at=at)
        self.events.add(at, Event("began", worker, self.run))
        dies = self.run.table.name == self.nights.killer and self.run.job == "compaction"
        seconds = 30.0 if dies else self.nights.seconds(self.run)
        self.events.add(at + timedelta(seconds=seconds), PlannedEnd("ended", worker, self.run, dies=dies))

    def end(self, event: PlannedEnd) -> Event | None:
        """Return the event of a run that ends now; None if it ended before."""
        if event.run is not self.run or self.run is None:
            return None
        if event.dies:
            self.spark.is_dead = True
            for other in list(self.spark.workers):
                other.fail()
            return None
        ended = self._to_ended(RunState.SUCCEEDED, {})
        self._begin(self.nights.clock.now)
        return ended

    def fail(self) -> None:
        self.stop.set()
        self._end_early({KILLED: True})

    def cancel(self, tag: str) -> None:
        if self.run and self.run.id == tag:
            self._end_early({})

    def _end_early(self, metrics: dict[str, Any]) -> None:
        if self.run:
            self.events.add(self.nights.clock.now, self._to_ended(RunState.FAILED, metrics))
            self._begin(self.nights.clock.now)

    def _to_ended(self, state: RunState, metrics: dict[str, Any]) -> Event:
        worker: Any = self
        assert self.run
        metrics = {**self.run.metrics, **metrics}
        run = dataclasses.replace(self.run, state=state, finished_at=self.nights.clock.now, metrics=metrics)
        return Event("ended", worker, run)


@dataclasses.dataclass(frozen=True)
class PlannedEnd(Event):
    """The planned end of a run."""

    dies: bool = False


class GeneratedCatalog(SqlCatalog):
    """A catalog whose tables are generated when they are loaded, and that stores the tables of `ops`."""

    def __init__(self, folder: str, tables: int, clock: SimulatedClock) -> None:
        super().__init__("many", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/files")
        self.names = [f"t{number:05d}" for number in range(tables)]
        self.clock = clock
        self.template = _build_metadata()
        self.file_io = load_file_io({}, "file:///")

    def list_namespaces(self, namespace: Any = ()) -> list[tuple[str, ...]]:
        return [] if namespace else [("sales",)]

    def list_tables(self, namespace: Any) -> list[tuple[str, ...]]:
        del namespace
        return [("sales", name) for name in self.names]

    def load_table(self, identifier: Any) -> Table:
        if next(iter(identifier)) != "sales":
            return super().load_table(identifier)
        number = int(identifier[1][1:])
        metadata = self.template.model_copy(update={"table_uuid": UUID(int=number + 1)})
        changed = int((self.clock.now - timedelta(hours=1)).timestamp() * 1000)
        summary = _build_summary(files=SMALLEST_FILES + number * 7919 % 200)
        current = metadata.snapshots[0].model_copy(update={"timestamp_ms": changed, "summary": summary})
        metadata = metadata.model_copy(update={"snapshots": [current], "last_updated_ms": changed})
        return Table(("sales", identifier[1]), metadata, "file:///metadata.json", self.file_io, self)


def _build_summary(files: int) -> Any:
    from pyiceberg.table.snapshots import Operation, Summary  # noqa: PLC0415

    totals = {"total-data-files": str(files), "total-files-size": str(files * 4 * MiB), "total-delete-files": "0"}
    return Summary(Operation.APPEND, **totals)


def _build_metadata() -> TableMetadataV2:
    """Return the metadata of a table that was created long ago, with one snapshot."""
    schema = Schema(NestedField(1, "number", LongType()))
    return TableMetadataV2.model_validate(
        {
            "format-version": 2,
            "table-uuid": str(UUID(int=1)),
            "location": "s3://bucket/sales/t",
            "last-sequence-number": 1,
            "last-updated-ms": 0,
            "last-column-id": 1,
            "schemas": [schema.model_dump(by_alias=True)],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "last-partition-id": 999,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {},
            "current-snapshot-id": 7,
            "snapshots": [
                {
                    "snapshot-id": 7,
                    "sequence-number": 1,
                    "timestamp-ms": 0,
                    "manifest-list": "s3://bucket/sales/t/metadata/list.avro",
                    "summary": {"operation": "append"},
                }
            ],
            "refs": {"main": {"type": "branch", "snapshot-id": 7}},
        }
    )


class SimulatedNights:
    """Nights of one tenant. `capacity` is the share of all work for which a night has time."""

    def __init__(
        self, folder: str, tables: int, *, capacity: float = 0.3, killer: str | None = None, by_name: bool = False
    ) -> None:
        self.clock, self.killer, self.by_name = SimulatedClock(), killer, by_name
        self.catalog = GeneratedCatalog(folder, tables, self.clock)
        self.tables = tables
        chance = random.Random(24)
        self.costs = {name: min(600.0, chance.lognormvariate(3, 1)) for name in self.catalog.names}
        self.length = self._compute_length(capacity)
        while (longest := self.length.total_seconds() * LONGEST_SHARE) < max(self.costs.values()) - 1:
            self.costs = {name: min(longest, seconds) for name, seconds in self.costs.items()}
            self.length = self._compute_length(capacity)
        self.nights: dict[str, list[int]] = defaultdict(list)
        """Numbers of the nights in which a table's jobs all succeeded."""
        self.spark_deaths: list[int] = []
        self.seconds_of_nights: list[float] = []

    def _compute_length(self, capacity: float) -> timedelta:
        return timedelta(seconds=(sum(self.costs.values()) + self.tables) * capacity / PARALLEL)

    def seconds(self, run: RunRecord) -> float:
        return self.costs[run.table.name] if run.job == "compaction" else 1.0

    def simulate(self, nights: int) -> None:
        for number in range(nights):
            self.clock.now = FIRST_NIGHT + number * DAY
            began = time.process_time()
            self._simulate_night(number)
            self.seconds_of_nights.append(time.process_time() - began)

    def _simulate_night(self, number: int) -> None:
        now, control = self.clock.now, Control()
        limits = Limits(PARALLEL, deadline=now + self.length)
        planner = MaintenancePlanner(CONFIG, Filters(jobs=JOBS), "bench", limits, control, None, dry_run=False)
        outcome = MaintenanceOutcome("bench")
        plans = order_plans([self._plan(planner, outcome, now)], now)
        works = planner.build_works(plans, OpsBuffer(CONFIG, {"many": self.catalog}), now)
        if self.by_name:
            works.sort(key=lambda work: work.table.name)
        recorder = Recorder(CONFIG, {"many": self.catalog}, self.clock)
        waiting, succeeded = WorkQueue(works), defaultdict[str, set[str]](set)

        def observe(run: RunRecord) -> None:
            if run.state is RunState.SUCCEEDED:
                succeeded[run.table.name].add(run.job)

        for work in works:
            for run in work.runs:
                recorder(run)

        deaths = -1
        why_stopped = None
        while not waiting.is_done and why_stopped is None:
            deaths += 1
            spark: Any = SimulatedSpark()
            events = SimulatedEvents(self.clock)
            start: Any = lambda spark, work, slot, events, *_: SimulatedWorker(self, spark, work, slot, events)  # noqa: E731
            supervisor = Supervisor(
                spark,
                limits,
                control,
                [recorder, observe],
                self.clock,
                timer=self.clock.seconds,
                start_worker=start,
                events=events,
            )
            supervisor.run(waiting)
            why_stopped = supervisor.why_stopped
        self.spark_deaths.append(deaths)
        assert recorder.close() == []
        for name, jobs in succeeded.items():
            if jobs == set(JOBS):
                self.nights[name].append(number)

    def _plan(self, planner: MaintenancePlanner, outcome: MaintenanceOutcome, now: datetime) -> WarehousePlan:
        return planner.plan_warehouse("many", self.catalog, outcome, None, now)

    def find_gaps(self) -> dict[str, int]:
        """Return the longest time between two maintenances of each table, in nights, from the first night on."""
        gaps: dict[str, int] = {}
        for name in self.catalog.names:
            done = [-1, *self.nights[name], len(self.seconds_of_nights) - 1]
            gaps[name] = max(later - earlier for earlier, later in itertools.pairwise(done))
        return gaps

    def list_shares(self) -> list[float]:
        """Return the percentage of the tables that had their turn by the end of each night."""
        first = [nights[0] for nights in self.nights.values() if nights]
        return [
            100 * sum(night <= number for night in first) / self.tables for number in range(len(self.seconds_of_nights))
        ]


@dataclasses.dataclass(frozen=True)
class SimulatedResult:
    """Measurements of nights in a process of their own."""

    killer: str | None
    gaps: Mapping[str, int]
    shares: Sequence[float]
    seconds: float
    """Processor time of a night, on average."""
    deaths: int
    """Number of times that Spark died."""
    peak_mib: float
    """Most memory of the process."""


def simulate(tables: int, nights: int, *, killer: str | None = None, by_name: bool = False) -> SimulatedResult:
    """Simulate nights in this process, and return the measurements."""
    with tempfile.TemporaryDirectory(prefix="lakewright-nights-") as folder:
        simulated = SimulatedNights(folder, tables, killer=killer, by_name=by_name)
        simulated.simulate(nights)
    peak = read_peak_mib()
    return SimulatedResult(
        killer,
        simulated.find_gaps(),
        simulated.list_shares(),
        sum(simulated.seconds_of_nights) / nights,
        sum(simulated.spark_deaths),
        peak,
    )
