"""Supervisor: runs the work of several tables at once, enforces limits and cancellation, and reports each run."""

from __future__ import annotations

import dataclasses
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pyspark.sql import SparkSession

from lakewright_spark.scheduler.claims import ClaimedTables
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.table_worker import Event, TableWork, TableWorker
from lakewright_spark.times import format_time

TICK = 0.5
"""Seconds between two checks of time-outs, the deadline and stop requests."""
CANCELLATION_TIMEOUT = 20.0
"""Seconds that a cancelled run has to end; then the supervisor no longer waits for it."""

Observer = Callable[[RunRecord], None]
"""Is called with a run whenever its state changes, always on the same thread."""


@dataclass(frozen=True)
class Limits:
    """Limits of parallel work and time."""

    parallel: int = 4
    """Number of tables at the same time."""
    task_timeout: timedelta = timedelta(minutes=15)
    """Time limit of one run: OpenHouse's value."""
    grace: timedelta = timedelta(seconds=120)
    """Time from a stop request until running jobs are cancelled: OpenHouse's value."""
    deadline: datetime | None = None
    """No run begins after this instant, and current runs are cancelled."""


@dataclass
class Control:
    """Stop requests to the supervisor, set from signal handlers and other threads."""

    ended: threading.Event = field(default_factory=threading.Event)
    """Stop all work after the grace period."""
    at_once: threading.Event = field(default_factory=threading.Event)
    """End the grace period."""
    lost: dict[str, str] = field(default_factory=dict[str, str])
    """Reason why the work in a warehouse has to stop at once, by warehouse."""
    claimed: ClaimedTables = field(default_factory=ClaimedTables)
    """Tables that are left to other runners."""
    listen: Callable[[], None] = lambda: None
    """Called after Spark has started, which installs its own SIGINT handler."""


@dataclass
class _Active:
    """A table with a running worker."""

    worker: TableWorker
    waiting: deque[RunRecord]
    run: RunRecord | None = None
    began: float = 0.0
    cancelled: str | None = None
    """Reason why the current run is cancelled."""
    is_claimed: bool = False
    """Whether the table was claimed, so that the worker begins no other run."""
    cancel_deadline: float = 0.0


@dataclass
class Supervisor:
    """Runs works once. `clock` is the clock of ages and records; time-outs use the monotonic clock."""

    spark: SparkSession
    limits: Limits
    control: Control
    observers: Sequence[Observer]
    clock: Callable[[], datetime]
    dry_run: bool = False
    why_stopped: str | None = None
    """Reason why not all work was completed; None if it was."""

    def __post_init__(self) -> None:
        """Prepare the state of the run."""
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._active: dict[TableWorker, _Active] = {}
        self._claimed: list[TableWork] = []
        """Remaining work of tables that were claimed while a worker was running."""
        self._cancel_all_at: float | None = None

    def run(self, works: Iterable[TableWork]) -> None:
        """Run all works. Return when each run has ended or its cancellation timed out."""
        waiting = deque(works)
        while waiting or self._active or self._claimed:
            self._settle_claims(waiting)
            self._check_limits(waiting)
            while waiting and len(self._active) < self.limits.parallel:
                self._start(waiting.popleft())
            self._handle_events()

    def _start(self, work: TableWork) -> None:
        if self.control.claimed.begin(work.uuid):
            self._claimed.append(work)
            return
        slot = min(set(range(self.limits.parallel)) - {active.worker.slot for active in self._active.values()})
        worker = TableWorker(self.spark, work, slot, self._events, self.clock, self.dry_run)
        self._active[worker] = _Active(worker, deque(work.runs))
        worker.start()

    def _handle_events(self) -> None:
        try:
            event = self._events.get(timeout=TICK)
            while True:
                # A worker whose cancellation timed out may still send events. Its run is reported already.
                if active := self._active.get(event.worker):
                    self._handle(active, event)
                event = self._events.get_nowait()
        except queue.Empty:
            return

    def _handle(self, active: _Active, event: Event) -> None:
        if event.kind == "left":
            del self._active[event.worker]
            self.control.claimed.end(event.worker.work.uuid)
            if active.is_claimed and active.waiting:
                self._claimed.append(dataclasses.replace(event.worker.work, runs=tuple(active.waiting)))
                return
            self._cancel_queued(active.waiting, active.cancelled or self.why_stopped or "its worker ended")
            return
        assert event.run
        run = event.run
        if event.kind == "began":
            active.waiting.popleft()
            active.run, active.began, active.cancelled = run, time.monotonic(), None
        else:
            active.run = None
            if active.cancelled and run.state is not RunState.SUCCEEDED:
                run = dataclasses.replace(run, state=RunState.CANCELLED, reason=active.cancelled)
        self._notify(run)

    def _check_limits(self, waiting: deque[TableWork]) -> None:
        now = time.monotonic()
        deadline = self.limits.deadline
        if deadline and self.clock() >= deadline and self._cancel_all_at is None:
            self._stop(f"the deadline, {format_time(deadline)}, passed", at=now)
        if self.control.ended.is_set() and self._cancel_all_at is None:
            self._stop("the process was asked to stop", at=now + self.limits.grace.total_seconds())
        if self.control.at_once.is_set() and self.why_stopped:
            self._cancel_all_at = now
        lost = dict(self.control.lost)
        for works in (waiting, self._claimed):
            for work in [work for work in works if self.why_stopped or work.table.warehouse in lost]:
                works.remove(work)
                self._cancel_queued(work.runs, lost.get(work.table.warehouse) or self.why_stopped or "")
        for active in list(self._active.values()):
            if self.control.claimed.claimant(active.worker.work.uuid):
                active.is_claimed = True
                active.worker.stop.set()  # the table is given up when the current run has ended
            warehouse = active.worker.work.table.warehouse
            if warehouse in lost:
                active.worker.stop.set()
                self._cancel(active, lost[warehouse], now)
            elif self.why_stopped:
                active.worker.stop.set()
                if self._cancel_all_at is not None and now >= self._cancel_all_at:
                    self._cancel(active, self.why_stopped, now)
            if active.run and now - active.began > self.limits.task_timeout.total_seconds():
                self._cancel(active, f"it passed its time-out of {self.limits.task_timeout}", now)

    def _settle_claims(self, waiting: deque[TableWork]) -> None:
        """Skip tables that were given up, and requeue tables whose claim was withdrawn before."""
        for work in list(self._claimed):
            holder = self.control.claimed.claimant(work.uuid)
            if holder and not self.control.claimed.is_given_up(work.uuid):
                continue  # the heartbeat reads the claim again and gives the table up, or forgets the claim
            self._claimed.remove(work)
            if holder:
                self._skip_claimed(work.runs, holder)
            else:
                waiting.appendleft(work)

    def _stop(self, why: str, at: float) -> None:
        self.why_stopped, self._cancel_all_at = why, at

    def _cancel(self, active: _Active, why: str, now: float) -> None:
        """Cancel the run's Spark jobs. Repeated at every check, since the job may have started another Spark job."""
        if active.run is None:
            return
        if active.cancelled is None:
            active.cancelled, active.cancel_deadline = why, now + CANCELLATION_TIMEOUT
        self.spark.sparkContext.cancelJobsWithTag(active.run.id)
        if now > active.cancel_deadline:
            active.worker.stop.set()
            reason = f"{active.cancelled}; cancellation timed out; the job may still commit"
            run = dataclasses.replace(active.run, state=RunState.CANCELLED, reason=reason, finished_at=self.clock())
            self._notify(run)
            self._cancel_queued(active.waiting, active.cancelled)
            active.run = None
            del self._active[active.worker]

    def _cancel_queued(self, runs: Iterable[RunRecord], why: str) -> None:
        for run in runs:
            self._notify(run.cancel_before_start(why))

    def _skip_claimed(self, runs: Iterable[RunRecord], holder: str) -> None:
        """Report runs of a table that another runner works on as skipped."""
        for run in runs:
            reason = f"not begun: {holder} works on this table"
            self._notify(dataclasses.replace(run, state=RunState.SKIPPED, reason=reason))

    def _notify(self, run: RunRecord) -> None:
        for observer in self.observers:
            observer(run)


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def handle_signals() -> Generator[Control, None, None]:
    """Yield a control that SIGTERM and SIGINT set during the block. A second signal ends the grace period.

    Only the main thread can receive signals.
    """
    control = Control()
    if threading.current_thread() is not threading.main_thread():
        yield control
        return

    def stop(*_: object) -> None:
        if control.ended.is_set():
            control.at_once.set()
        control.ended.set()

    def listen() -> None:
        for number in _SIGNALS:
            signal.signal(number, stop)

    control.listen = listen
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    listen()
    try:
        yield control
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
