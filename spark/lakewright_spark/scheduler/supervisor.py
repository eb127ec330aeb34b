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

from lakewright_spark.maintenance.registry import JOBS_BY_NAME
from lakewright_spark.policies.model import JOBS
from lakewright_spark.scheduler.cancellation import WindDown, cancel_jobs, keep_cancelling
from lakewright_spark.scheduler.run_log.records import KILLED, SUSPECT, TIMED_OUT, RunRecord, RunState
from lakewright_spark.scheduler.table_worker import Event, TableWork, TableWorker, is_alive
from lakewright_spark.scheduler.work_queue import WorkQueue
from lakewright_spark.times import format_time

TICK, SHORT_TICK = 0.5, 0.1
"""Seconds between two checks of time-outs, the deadline and stop requests; while Spark jobs are cancelled."""
DIED_BESIDE = "Spark's JVM ended; another run follows"
"""Reason of runs that were in work or waited when another table may have killed the JVM."""
CANCELLATION_TIMEOUT = 20.0
"""Seconds that a cancelled run has to end; then the supervisor no longer waits for it."""
OVERTIME = 0.5
"""Part of the time limit that Spark jobs in work have to end after it, if the job keeps what they did. Compaction sizes
its groups of files for half the time limit."""

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
    has_timed_out: bool = False
    requested_by: str | None = None
    """Job that waits for the table, so that the worker begins no other run."""
    killed: RunRecord | None = None
    """The run during which Spark died."""
    is_cause: bool = False
    """Whether the table may be the cause of Spark's death."""
    cancel_deadline: float | None = None
    """When the supervisor no longer waits for the cancelled run. None: its present Spark jobs may end."""
    wind_down: WindDown | None = None
    is_near_deadline: bool = False
    """Whether the run begins no further Spark job, since the deadline is near."""

    @property
    def keeps_steps(self) -> bool:
        """Return whether the job of the current run keeps what its Spark jobs did, although it is cancelled."""
        if self.run is None or self.run.job not in JOBS:
            return False
        keeps_steps = JOBS_BY_NAME[self.run.job].keeps_steps
        return keeps_steps is not None and keeps_steps(self.worker.work.policies)


def ignore_run(_: RunRecord) -> None:
    """Do nothing."""


@dataclass
class Supervisor:
    """Runs the works of a queue once. `clock` is the clock of ages and records; time limits use `timer`."""

    spark: SparkSession
    limits: Limits
    control: Control
    observers: Sequence[Observer]
    clock: Callable[[], datetime]
    dry_run: bool = False
    record_now: Observer = ignore_run
    """Records the first run of a table that may kill this process, before it begins."""
    timer: Callable[[], float] = time.monotonic
    """Seconds of a clock that never jumps."""
    start_worker: Callable[..., TableWorker] = TableWorker
    events: queue.SimpleQueue[Event] = field(default_factory=queue.SimpleQueue[Event])
    why_stopped: str | None = None
    """Reason why not all work was completed; None if it was."""
    has_spark_died: bool = False
    """Whether Spark's JVM ended. The queue has the remaining work."""
    abandoned: list[TableWorker] = field(default_factory=list[TableWorker])
    """Workers whose cancellation timed out. Their Spark jobs are cancelled until they end, after `run` as well."""

    def __post_init__(self) -> None:
        """Prepare the state of the run."""
        self._active: dict[TableWorker, _Active] = {}
        self._causes: list[_Active] = []
        """Tables that may be the cause of Spark's death."""
        self._cancel_all_at: float | None = None
        self._is_cut_short = False
        """Whether a run did not complete since the deadline was near."""

    def run(self, works: WorkQueue) -> None:
        """Run all works. Return when each run has ended or its cancellation timed out, or when Spark has died."""
        self._works = works
        deadline = self.limits.deadline
        self._longest_reserve = (deadline - self.clock()).total_seconds() / 4 if deadline else 0.0
        while self._active or not (works.is_done or self.has_spark_died):
            self._report_dropped()
            self._check_limits()
            while self._may_start() and (work := works.take(only_alone=self._is_late())):
                self._start(work)
            self._handle_events()
        self._report_dropped()  # the last works may be done by other runners
        if deadline and self._is_cut_short and not self.why_stopped:
            self.why_stopped = f"the deadline, {format_time(deadline)}, is near"

    def _report_dropped(self) -> None:
        for work, reason in self._works.pop_dropped():
            self._skip(work.runs, reason)

    def _is_late(self) -> bool:
        """Return whether the remaining time is needed for the tables that run alone: at most a quarter of the run.

        They come last, and nights may be too short for all tables, so they would never have a turn.
        """
        if self.limits.deadline is None or (needed := self._works.alone_seconds) == 0:
            return False
        remaining_seconds = (self.limits.deadline - self.clock()).total_seconds()
        # Jobs that run now have to end first.
        longest_run = (1 + OVERTIME) * self.limits.task_timeout.total_seconds()
        return remaining_seconds <= min(needed + longest_run, self._longest_reserve)

    def _may_start(self) -> bool:
        """Return whether another table may begin. Abandoned workers count, but one table is always in work."""
        self.abandoned = [worker for worker in self.abandoned if not worker.ended.is_set()]
        room = max(self.limits.parallel - len(self.abandoned), 1)
        return not self.has_spark_died and not self.why_stopped and len(self._active) < room

    def _start(self, work: TableWork) -> None:
        if work.runs_alone or work.is_suspect:
            work = work.mark_runs()
            self.record_now(dataclasses.replace(work.runs[0], state=RunState.RUNNING, started_at=self.clock()))
        used_slots = {worker.slot for worker in [*self._active, *self.abandoned]}
        slot = min(set(range(len(used_slots) + 1)) - used_slots)
        worker = self.start_worker(self.spark, work, slot, self.events, self.clock, self.dry_run)
        self._active[worker] = _Active(worker, deque(work.runs))
        worker.start()

    def _handle_events(self) -> None:
        try:
            is_cancelling = any(active.cancelled for active in self._active.values())
            event = self.events.get(timeout=SHORT_TICK if is_cancelling else TICK)
            while True:
                # A worker whose cancellation timed out may still send events. Its run is reported already.
                if active := self._active.get(event.worker):
                    self._handle(active, event)
                event = self.events.get_nowait()
        except queue.Empty:
            return

    def _handle(self, active: _Active, event: Event) -> None:
        if event.kind == "left":
            del self._active[event.worker]
            self._leave(active)
            return
        assert event.run
        run = event.run
        if event.kind == "began":
            active.waiting.popleft()
            active.run, active.began, active.cancelled, active.has_timed_out = run, self.timer(), None, False
            active.cancel_deadline, active.wind_down, active.is_near_deadline = None, None, False
        else:
            active.run = None
            if run.killed_runner and not is_alive(self.spark):
                run = self._record_death(active, run)
            elif active.cancelled and run.state is not RunState.SUCCEEDED:
                self._is_cut_short = self._is_cut_short or active.is_near_deadline
                run = self._to_cancelled(active, run, active.cancelled)
        self._notify(run)

    def _record_death(self, active: _Active, run: RunRecord) -> RunRecord:
        """Note that Spark died during the run. Return the run, which failed if its table may be the cause."""
        if not self.has_spark_died:
            self.has_spark_died = True
            present = [other for other in self._active.values() if other.run or other is active]
            # One table at a time that was in work at an earlier death.
            suspects = [other for other in present if other.worker.work.runs_alone or other.worker.work.is_suspect]
            self._causes = suspects or present
            for cause in self._causes:
                cause.is_cause = True
        active.killed = run
        if active.is_cause:
            return run
        metrics = {key: value for key, value in run.metrics.items() if key != KILLED}
        return dataclasses.replace(run, state=RunState.CANCELLED, reason=DIED_BESIDE, error=None, metrics=metrics)

    def _retry(self, active: _Active, killed: RunRecord) -> None:
        """Queue the runs again during or before which Spark died."""
        work = active.worker.work
        metrics = {key: value for key, value in killed.metrics.items() if key not in {KILLED, SUSPECT}}
        new_run = dataclasses.replace(
            killed, state=RunState.QUEUED, started_at=None, finished_at=None, error=None, metrics=metrics
        )
        self._works.retry(work, [new_run, *active.waiting], is_suspect=active.is_cause)
        for run in active.waiting:
            self._notify(run.cancel_before_start(DIED_BESIDE))

    def _leave(self, active: _Active) -> None:
        """Handle the end of a worker."""
        work = active.worker.work
        is_only_cause = active.is_cause and len(self._causes) == 1
        if active.killed and not self.why_stopped and not is_only_cause:
            self._retry(active, active.killed)
            return
        if is_only_cause:
            self._works.clear_suspects()
        self._works.finish(work)
        if active.requested_by and active.waiting:
            self._skip(active.waiting, f"{active.requested_by} works on this table")
            return
        self._cancel_queued(active.waiting, active.cancelled or self.why_stopped or "its worker ended")

    def _check_limits(self) -> None:
        now = self.timer()
        self._check_stop_requests(now)
        lost = dict(self.control.lost)
        if self.why_stopped or lost:
            for work in self._works.drain(None if self.why_stopped else lost.keys()):
                self._cancel_queued(work.runs, lost.get(work.table.warehouse) or self.why_stopped or "")
        for active in list(self._active.values()):
            if active.requested_by is None and (job := self._works.find_request(active.worker.work)):
                active.requested_by = job
                active.worker.stop.set()  # the table is released when the current run has ended
            warehouse = active.worker.work.table.warehouse
            if self.has_spark_died:
                active.worker.stop.set()
                self._cancel(active, "Spark's JVM ended", now)
            if warehouse in lost:
                active.worker.stop.set()
                self._cancel(active, lost[warehouse], now)
            else:
                self._apply_stop(active, now)
            self._apply_timeout(active, now)

    def _check_stop_requests(self, now: float) -> None:
        deadline = self.limits.deadline
        if deadline and self.clock() >= deadline and self._cancel_all_at is None:
            self._stop(f"the deadline, {format_time(deadline)}, passed", at=now)
        if self.control.ended.is_set() and self._cancel_all_at is None:
            self._stop("the process was asked to stop", at=now + self.limits.grace.total_seconds())
        if self.control.at_once.is_set() and self.why_stopped:
            self._cancel_all_at = now

    def _apply_stop(self, active: _Active, now: float) -> None:
        """Cancel the run after a stop request. A job that keeps its steps begins none in the last part of the time.

        A run that begins no further step, since it is late or near the deadline, does not begin steps again.
        """
        deadline = self.limits.deadline
        if self.why_stopped:
            active.worker.stop.set()
            if self._cancel_all_at is None:
                return
            if now >= self._cancel_all_at:
                self._cancel(active, self.why_stopped, now)
            elif active.keeps_steps and (
                active.wind_down or self._cancel_all_at - now <= self.limits.grace.total_seconds() / 2
            ):
                self._wind_down(active, self.why_stopped)
        elif deadline and active.keeps_steps and self._is_near(deadline, now - active.began):
            active.is_near_deadline = True
            self._wind_down(active, f"the deadline, {format_time(deadline)}, is near")

    def _apply_timeout(self, active: _Active, now: float) -> None:
        """Cancel the run if it passed its time limit."""
        if active.run is None or now - active.began <= (limit := self._find_timeout(active)).total_seconds():
            return
        active.has_timed_out = True
        reason = f"it passed its time-out of {limit}"
        if active.keeps_steps and now - active.began <= (1 + OVERTIME) * limit.total_seconds():
            self._wind_down(active, reason)
        else:
            self._cancel(active, reason, now)

    def _is_near(self, deadline: datetime, elapsed: float) -> bool:
        """Return whether the time until the deadline is for steps in work, as is half the grace period.

        Args:
            deadline: End of the run (UTC).
            elapsed: Seconds since the job began. A job that began late may complete, so it has as many seconds more.
        """
        reserve = min(self.limits.grace.total_seconds() / 2, self._longest_reserve, elapsed)
        return (deadline - self.clock()).total_seconds() <= reserve

    def _wind_down(self, active: _Active, why: str) -> None:
        """Let the run's present Spark jobs end. Repeated at every check, since the job begins further Spark jobs."""
        if active.run is None:
            return
        active.cancelled = active.cancelled or why
        if active.wind_down is None:
            active.wind_down = WindDown(self.spark, active.run.id)
        active.wind_down.cancel_new_jobs()

    def _find_timeout(self, active: _Active) -> timedelta:
        """Return the time limit of the current run: a policy's, or else that of this runner."""
        if self.limits.task_timeout == timedelta.max:
            return timedelta.max  # a job that a user started
        assert active.run
        policies, job = active.worker.work.policies, active.run.job
        return (policies.timeout(job) if job in JOBS else None) or self.limits.task_timeout

    def _stop(self, why: str, at: float) -> None:
        self.why_stopped, self._cancel_all_at = why, at

    def _cancel(self, active: _Active, why: str, now: float) -> None:
        """Cancel the run's Spark jobs. Repeated at every check, since the job may have started another Spark job."""
        if active.run is None:
            return
        active.cancelled = active.cancelled or why
        if active.cancel_deadline is None:
            active.cancel_deadline = now + CANCELLATION_TIMEOUT
        cancel_jobs(self.spark, active.run.id)
        if now > active.cancel_deadline:
            active.worker.stop.set()
            reason = f"{active.cancelled}; cancellation timed out; the job may still commit"
            self._notify(self._to_cancelled(active, dataclasses.replace(active.run, finished_at=self.clock()), reason))
            self._cancel_queued(active.waiting, active.cancelled)
            # Iceberg begins the next group of files after each failure.
            keep_cancelling(self.spark, active.run.id, active.worker.ended)
            self.abandoned.append(active.worker)
            active.run = None
            del self._active[active.worker]
            self._works.finish(active.worker.work, release=False)

    def _to_cancelled(self, active: _Active, run: RunRecord, reason: str) -> RunRecord:
        metrics = {**run.metrics, TIMED_OUT: True} if active.has_timed_out else run.metrics
        return dataclasses.replace(run, state=RunState.CANCELLED, reason=reason, metrics=metrics)

    def _cancel_queued(self, runs: Iterable[RunRecord], why: str) -> None:
        for run in runs:
            self._notify(run.cancel_before_start(why))

    def _skip(self, runs: Iterable[RunRecord], why: str) -> None:
        """Report runs of a table that others work on as skipped."""
        for run in runs:
            self._notify(dataclasses.replace(run, state=RunState.SKIPPED, reason=f"not begun: {why}"))

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
