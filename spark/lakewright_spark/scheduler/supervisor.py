"""Runs the work of many tables at once, watches over it, and tells what becomes of each run."""

from __future__ import annotations

import dataclasses
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from pyspark.sql import SparkSession

from lakewright_spark.scheduler.claims import ClaimedTables
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.table_worker import Event, TableThread, TableWork

TICK = 0.5
"""Seconds between two looks at time-outs, the deadline and who wants it to stop."""
ANSWER = 20.0
"""Seconds that a cancelled run has to come back in; then it is left to itself."""


class Observer(Protocol):
    """Is told of each run whenever its state changes, always on the same thread."""

    def __call__(self, run: RunRecord) -> None: ...


@dataclass(frozen=True)
class Limits:
    """How much at once, and how long."""

    parallel: int = 4
    """Tables at the same time."""
    task_timeout: timedelta = timedelta(minutes=15)
    """For one run: OpenHouse's."""
    grace: timedelta = timedelta(seconds=120)
    """What runs when the process is told to end has so long until it is cancelled: OpenHouse's."""
    deadline: datetime | None = None
    """No run begins after this instant, and those that still run are cancelled."""


@dataclass
class Control:
    """How others tell the supervisor to stop: set from signal handlers and other threads."""

    ended: threading.Event = field(default_factory=threading.Event)
    """All work, after the grace."""
    at_once: threading.Event = field(default_factory=threading.Event)
    """No grace any more."""
    lost: dict[str, str] = field(default_factory=dict[str, str])
    """Warehouse -> why its work has to stop at once."""
    claimed: ClaimedTables = field(default_factory=ClaimedTables)
    """Tables that are left to others."""
    listen: Callable[[], None] = lambda: None
    """Called once Spark has started, which takes SIGINT for itself."""


@dataclass
class _Active:
    """A table that is worked on."""

    thread: TableThread
    waiting: deque[RunRecord]
    run: RunRecord | None = None
    began: float = 0.0
    cancelled: str | None = None
    """Why the present run is cancelled."""
    asked: bool = False
    """Whether the table was claimed, so that the thread begins no other run."""
    give_up: float = 0.0


@dataclass
class Supervisor:
    """One use only. `clock` is what ages and records are told by; time-outs go by the machine's steady clock."""

    spark: SparkSession
    limits: Limits
    control: Control
    observers: Sequence[Observer]
    clock: Callable[[], datetime]
    dry_run: bool = False
    why_stopped: str | None = None
    """Why not all of the work was begun or brought to its end; None if it was."""

    def __post_init__(self) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._active: dict[TableThread, _Active] = {}
        self._claimed: list[TableWork] = []
        """What is left of tables that were claimed while they were worked on."""
        self._cancel_all_at: float | None = None

    def run(self, works: Iterable[TableWork]) -> None:
        """Returns when each run has ended, or was given up."""
        waiting = deque(works)
        while waiting or self._active or self._claimed:
            self._settle_claims(waiting)
            self._watch(waiting)
            while waiting and len(self._active) < self.limits.parallel:
                self._start(waiting.popleft())
            self._listen()

    def _start(self, work: TableWork) -> None:
        if self.control.claimed.begin(work.uuid):
            self._claimed.append(work)
            return
        slot = min(set(range(self.limits.parallel)) - {one.thread.slot for one in self._active.values()})
        thread = TableThread(self.spark, work, slot, self._events, self.clock, self.dry_run)
        self._active[thread] = _Active(thread, deque(work.runs))
        thread.start()

    def _listen(self) -> None:
        try:
            event = self._events.get(timeout=TICK)
            while True:
                # One that was given up may still say something: what became of it is told already.
                if active := self._active.get(event.worker):
                    self._heard(active, event)
                event = self._events.get_nowait()
        except queue.Empty:
            return

    def _heard(self, active: _Active, event: Event) -> None:
        if event.what == "left":
            del self._active[event.worker]
            self.control.claimed.end(event.worker.work.uuid)
            if active.asked and active.waiting:
                self._claimed.append(dataclasses.replace(event.worker.work, runs=tuple(active.waiting)))
                return
            self._drop(active.waiting, active.cancelled or self.why_stopped or "its thread ended")
            return
        assert event.run
        run = event.run
        if event.what == "began":
            active.waiting.popleft()
            active.run, active.began, active.cancelled = run, time.monotonic(), None
        else:
            active.run = None
            if active.cancelled and run.state is not RunState.SUCCEEDED:
                run = dataclasses.replace(run, state=RunState.CANCELLED, reason=active.cancelled)
        self._tell(run)

    def _watch(self, waiting: deque[TableWork]) -> None:
        now = time.monotonic()
        deadline = self.limits.deadline
        if deadline and self.clock() >= deadline and self._cancel_all_at is None:
            self._stop(f"the deadline, {deadline:%Y-%m-%d %H:%M:%S} UTC, passed", at=now)
        if self.control.ended.is_set() and self._cancel_all_at is None:
            self._stop("the process was told to end", at=now + self.limits.grace.total_seconds())
        if self.control.at_once.is_set() and self.why_stopped:
            self._cancel_all_at = now
        lost = dict(self.control.lost)
        for works in (waiting, self._claimed):
            for work in [one for one in works if self.why_stopped or one.table.warehouse in lost]:
                works.remove(work)
                self._drop(work.runs, lost.get(work.table.warehouse) or self.why_stopped or "")
        for active in list(self._active.values()):
            if self.control.claimed.claimant(active.thread.work.uuid):
                active.asked = True
                active.thread.stop.set()  # once its present run has ended, the table is given up
            warehouse = active.thread.work.table.warehouse
            if warehouse in lost:
                active.thread.stop.set()
                self._cancel(active, lost[warehouse], now)
            elif self.why_stopped:
                active.thread.stop.set()
                if self._cancel_all_at is not None and now >= self._cancel_all_at:
                    self._cancel(active, self.why_stopped, now)
            if active.run and now - active.began > self.limits.task_timeout.total_seconds():
                self._cancel(active, f"it passed its time-out of {self.limits.task_timeout}", now)

    def _settle_claims(self, waiting: deque[TableWork]) -> None:
        """Leave tables that were given up, and take up those whose claim was withdrawn before."""
        for work in list(self._claimed):
            holder = self.control.claimed.claimant(work.uuid)
            if holder and not self.control.claimed.is_given_up(work.uuid):
                continue  # the heartbeat reads the claim again and gives the table up, or forgets the claim
            self._claimed.remove(work)
            if holder:
                self._leave(work.runs, holder)
            else:
                waiting.appendleft(work)

    def _stop(self, why: str, at: float) -> None:
        self.why_stopped, self._cancel_all_at = why, at

    def _cancel(self, active: _Active, why: str, now: float) -> None:
        """Once more at every look: a job of several Spark jobs has begun its next one meanwhile."""
        if active.run is None:
            return
        if active.cancelled is None:
            active.cancelled, active.give_up = why, now + ANSWER
        self.spark.sparkContext.cancelJobsWithTag(active.run.id)
        if now > active.give_up:
            active.thread.stop.set()
            reason = f"{active.cancelled}; it did not answer, so that a commit of it may still come"
            run = dataclasses.replace(active.run, state=RunState.CANCELLED, reason=reason, finished_at=self.clock())
            self._tell(run)
            self._drop(active.waiting, active.cancelled)
            active.run = None
            del self._active[active.thread]

    def _drop(self, runs: Iterable[RunRecord], why: str) -> None:
        for run in runs:
            self._tell(run.not_begun(why))

    def _leave(self, runs: Iterable[RunRecord], holder: str) -> None:
        """Report runs of a table that is left to another runner."""
        for run in runs:
            reason = f"not begun: {holder} works on this table"
            self._tell(dataclasses.replace(run, state=RunState.SKIPPED, reason=reason))

    def _tell(self, run: RunRecord) -> None:
        for observer in self.observers:
            observer(run)


_WISHES = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def control() -> Iterator[Control]:
    """A control that signals set for the block; only the main thread can be told."""
    made = Control()
    if threading.current_thread() is not threading.main_thread():
        yield made
        return

    def told(*_: object) -> None:
        if made.ended.is_set():
            made.at_once.set()
        made.ended.set()

    def listen() -> None:
        for number in _WISHES:
            signal.signal(number, told)

    made.listen = listen
    before = {number: signal.getsignal(number) for number in _WISHES}
    listen()
    try:
        yield made
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
