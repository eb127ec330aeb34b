"""Cancelled compactions: steps in work may end, and a worker that does not end is cancelled until it does."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.scheduler import supervisor as supervisor_module
from lakewright_spark.scheduler.run_log.records import TIMED_OUT, RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Control, Limits, Supervisor
from lakewright_spark.scheduler.table_worker import TableWork
from lakewright_spark.scheduler.work_queue import WorkQueue

from tests.unit.spark.scheduler.stub_workers import NOW, StubWorker, build_work

LIMIT = timedelta(minutes=15)


class SteppedSpark:
    """A session whose workers begin a Spark job after the other. It records which Spark jobs are cancelled."""

    def __init__(self) -> None:
        self.sparkContext = self._jsc = self
        self.jobs: dict[str, list[int]] = {}
        self.cancelled_jobs: list[int] = []
        self.cancelled_tags = Counter[str]()
        self.changed = threading.Condition()
        self.is_released = False
        """Whether workers of the tables `stubborn` may end."""
        self.slots: dict[str, int] = {}

    def sc(self) -> SteppedSpark:
        return self

    def statusTracker(self) -> SteppedSpark:  # noqa: N802  # as in Spark
        return self

    def getJobIdsForTag(self, tag: str) -> list[int]:  # noqa: N802  # as in Spark
        with self.changed:
            jobs = list(self.jobs[tag])
            self.jobs[tag].append(len(jobs) + 1)  # the next step begins when the present step has ended
            return jobs

    def cancelJob(self, job: int) -> None:  # noqa: N802  # as in Spark
        with self.changed:
            self.cancelled_jobs.append(job)
            self.changed.notify_all()

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802  # as in Spark
        with self.changed:
            self.cancelled_tags[tag] += 1
            self.changed.notify_all()


class SteppingWorker(StubWorker):
    """A worker that ends when its Spark jobs were cancelled three times. Tables `next` need no cancellation."""

    def end(self, run: RunRecord) -> RunRecord:
        with self.spark.changed:
            self.spark.jobs[run.id] = [1]
            self.spark.slots[run.table.name] = self.slot
            if run.table.name.startswith("next"):
                return dataclasses.replace(run, state=RunState.SUCCEEDED)
            assert self.spark.changed.wait_for(
                lambda: len(self.spark.cancelled_jobs) + self.spark.cancelled_tags[run.id] >= 3, 60
            )
            if run.table.name.startswith("stubborn"):
                assert self.spark.changed.wait_for(lambda: self.spark.is_released, 60)
        return dataclasses.replace(run, state=RunState.FAILED)


@dataclasses.dataclass
class Supervised:
    """Works under a supervisor, whose clock shows these seconds once all tables that have to be cancelled began."""

    spark: SteppedSpark
    works: list[TableWork]
    limits: Limits
    seconds: float = 0.0
    pace: float = 0.0
    """Seconds that pass between two looks at the clock."""
    clock_ahead: float = 0.0
    """Seconds by which the clock of the deadline is ahead of the timer, once the tables began."""
    is_stopped: bool = False
    """Whether the process is asked to stop when a run begins."""
    stops_wind_down: bool = False
    """Whether the process is asked to stop once the run begins no further step."""
    control: Control = dataclasses.field(default_factory=Control)
    runs: dict[str, RunRecord] = dataclasses.field(default_factory=dict[str, RunRecord])

    def run(self) -> Supervisor:
        session: Any = self.spark
        start: Any = SteppingWorker
        supervisor = Supervisor(
            session,
            self.limits,
            self.control,
            [self.observe],
            self.read_clock,
            timer=self.read_timer,
            start_worker=start,
        )
        supervisor.run(WorkQueue(self.works))
        return supervisor

    def observe(self, run: RunRecord) -> None:
        self.runs[run.table.name] = run
        if self.is_stopped:
            self.control.ended.set()

    def read_timer(self) -> float:
        names = {work.table.name for work in self.works if not work.table.name.startswith("next")}
        if not names <= self.runs.keys():
            return 0.0
        if self.stops_wind_down and self.spark.cancelled_jobs:
            self.control.ended.set()
        self.seconds += self.pace
        return self.seconds

    def read_clock(self) -> datetime:
        seconds = self.read_timer()
        return NOW + timedelta(seconds=seconds + self.clock_ahead if seconds else 0)


def build_job(name: str, job: JobName) -> TableWork:
    work = build_work(name)
    return dataclasses.replace(work, runs=tuple(dataclasses.replace(run, job=job) for run in work.runs))


def test_steps_in_work_end_after_the_time_limit() -> None:
    """The step that the run had begun is not cancelled; each later step is."""
    spark = SteppedSpark()
    supervised = Supervised(spark, [build_work("slow")], Limits(task_timeout=LIMIT), LIMIT.total_seconds() * 1.2)
    supervised.run()
    run = supervised.runs["slow"]
    assert (spark.cancelled_jobs[:3], spark.cancelled_tags) == ([2, 3, 4], {})
    assert (run.state, run.reason) == (RunState.CANCELLED, "it passed its time-out of 0:15:00")
    assert run.metrics == {TIMED_OUT: True}


@pytest.mark.parametrize(("job", "share"), [("compaction", 1.6), ("orphan-files", 1.2)])
def test_all_steps_are_cancelled(job: JobName, share: float) -> None:
    """A compaction has half its time limit more; other jobs lose their work whenever they are cancelled."""
    spark = SteppedSpark()
    works = [build_job("slow", job)]
    supervised = Supervised(spark, works, Limits(task_timeout=LIMIT), LIMIT.total_seconds() * share)
    supervised.run()
    assert spark.cancelled_jobs == []
    assert spark.cancelled_tags.keys() == {supervised.runs["slow"].id}


def test_job_that_began_late_has_half_the_time_to_the_deadline() -> None:
    """It began 50 s before the deadline, so it begins further steps for 25 s."""
    spark = SteppedSpark()
    limits = Limits(deadline=NOW + timedelta(hours=4), grace=timedelta(minutes=2))
    late = timedelta(hours=4, seconds=-50).total_seconds()
    supervised = Supervised(spark, [build_work("slow")], limits, pace=1.0, clock_ahead=late)
    assert supervised.run().why_stopped == "the deadline, 2026-11-22 06:00:00 UTC, is near"
    assert spark.cancelled_jobs[:3] == [2, 3, 4]
    assert supervised.seconds >= 25


def test_steps_in_work_end_before_the_deadline() -> None:
    spark = SteppedSpark()
    limits = Limits(deadline=NOW + timedelta(hours=4), grace=timedelta(minutes=2), task_timeout=timedelta(hours=8))
    supervised = Supervised(spark, [build_work("slow")], limits, timedelta(hours=4, seconds=-50).total_seconds())
    why_stopped = supervised.run().why_stopped
    assert spark.cancelled_jobs[:3] == [2, 3, 4]
    assert why_stopped == "the deadline, 2026-11-22 06:00:00 UTC, is near"
    assert supervised.runs["slow"].state is RunState.CANCELLED


def test_steps_in_work_end_in_the_grace_period() -> None:
    spark = SteppedSpark()
    supervised = Supervised(spark, [build_work("slow")], Limits(grace=timedelta(seconds=120)), pace=12.0)
    supervised.is_stopped = True
    assert supervised.run().why_stopped == "the process was asked to stop"
    assert (spark.cancelled_jobs[:3], spark.cancelled_tags) == ([2, 3, 4], {})
    assert 60 <= supervised.seconds < 120, "in its second half"


def test_stop_request_near_the_deadline_begins_no_steps_again() -> None:
    """The grace period is long, but the run had begun its last step before SIGTERM."""
    spark = SteppedSpark()
    limits = Limits(deadline=NOW + timedelta(hours=4), grace=timedelta(minutes=2), task_timeout=timedelta(hours=8))
    supervised = Supervised(spark, [build_work("slow")], limits, timedelta(hours=4, seconds=-50).total_seconds())
    supervised.stops_wind_down = True
    assert supervised.run().why_stopped == "the process was asked to stop"
    assert (spark.cancelled_jobs[:3], spark.cancelled_tags) == ([2, 3, 4], {})


def test_single_commit_keeps_no_steps() -> None:
    """Groups in work would end for nothing."""
    spark = SteppedSpark()
    policies = TablePolicies.model_validate({"compaction": {"partial_progress_commits": 0}})
    works = [dataclasses.replace(build_work("slow"), policies=policies)]
    supervised = Supervised(spark, works, Limits(task_timeout=LIMIT), LIMIT.total_seconds() * 1.2)
    supervised.run()
    assert spark.cancelled_jobs == []
    assert spark.cancelled_tags.keys() == {supervised.runs["slow"].id}


@pytest.mark.parametrize("number", [1, 2])
def test_abandoned_workers_are_cancelled_until_they_end(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """They take the places of tables, but one other table at a time is in work."""
    monkeypatch.setattr(supervisor_module, "CANCELLATION_TIMEOUT", -1.0)
    spark = SteppedSpark()
    stubborn = [build_job(f"stubborn{index}", "orphan-files") for index in range(number)]
    works = [*stubborn, build_work("next1"), build_work("next2")]
    supervised = Supervised(spark, works, Limits(parallel=number, task_timeout=LIMIT), LIMIT.total_seconds() * 2)
    supervisor = supervised.run()
    run = supervised.runs["stubborn0"]
    assert run.reason.endswith("cancellation timed out; the job may still commit")
    assert [supervised.runs[name].state for name in ("next1", "next2")] == [RunState.SUCCEEDED] * 2
    assert (spark.slots["next1"], spark.slots["next2"]) == (number, number), "one after the other"
    with spark.changed:
        earlier = spark.cancelled_tags[run.id]
        assert spark.changed.wait_for(lambda: spark.cancelled_tags[run.id] > earlier + 2, 60)
        spark.is_released = True
        spark.changed.notify_all()
    assert all(worker.ended.wait(60) for worker in supervisor.abandoned)
