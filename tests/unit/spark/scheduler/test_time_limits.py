"""Time limits of jobs: a limit in a table's policies replaces the limit of the runner."""

from __future__ import annotations

import dataclasses
import threading
from datetime import timedelta
from typing import Any

from lakewright_spark.scheduler.run_log.records import TIMED_OUT, RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Control, Limits, Supervisor
from lakewright_spark.scheduler.table_worker import TableWork
from lakewright_spark.scheduler.work_queue import WorkQueue

from tests.unit.spark.scheduler.stub_workers import NOW, StubWorker, build_work


class CancellableSpark:
    """A session that records the cancelled jobs."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.cancelled = threading.Event()
        self.tags: list[str] = []

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802  # as in Spark
        self.tags.append(tag)
        self.cancelled.set()


class PatientWorker(StubWorker):
    """A worker whose jobs end when a job is cancelled: `slow` without success."""

    def end(self, run: RunRecord) -> RunRecord:
        assert self.spark.cancelled.wait(60)
        state = RunState.FAILED if run.table.name == "slow" else RunState.SUCCEEDED
        return dataclasses.replace(run, state=state)


def run_works(spark: Any, works: list[TableWork], seconds: float) -> dict[str, RunRecord]:
    """Run works of which each has this many seconds behind it when all have begun."""
    runs: dict[str, RunRecord] = {}

    def read_timer() -> float:
        return seconds if all(work.table.name in runs for work in works) else 0.0

    start: Any = PatientWorker
    supervisor = Supervisor(
        spark,
        Limits(parallel=len(works), task_timeout=timedelta(minutes=15)),
        Control(),
        [lambda run: runs.update({run.table.name: run})],
        lambda: NOW,
        timer=read_timer,
        start_worker=start,
    )
    supervisor.run(WorkQueue(works))
    return runs


def test_time_limit_of_a_policy_is_shorter() -> None:
    """After eight minutes, only the table with a limit of five minutes for this job is cancelled."""
    usual = build_work("usual")
    other_job = build_work("other", **{"orphan-files": {"timeout": "5m"}})
    spark = CancellableSpark()
    runs = run_works(spark, [build_work("slow", compaction={"timeout": "5m"}), usual, other_job], 480)
    assert set(spark.tags) == {runs["slow"].id}
    assert (runs["slow"].state, runs["slow"].reason) == (RunState.CANCELLED, "it passed its time-out of 0:05:00")
    assert runs["slow"].metrics == {TIMED_OUT: True}
    assert [runs[name].state for name in ("usual", "other")] == [RunState.SUCCEEDED] * 2


def test_time_limit_of_a_policy_is_longer() -> None:
    """After 23 minutes, the table with a limit of two hours continues."""
    works = [build_work("slow"), build_work("patient", compaction={"timeout": "2h"})]
    spark = CancellableSpark()
    runs = run_works(spark, works, 23 * 60)
    assert set(spark.tags) == {runs["slow"].id}
    assert (runs["slow"].state, runs["slow"].reason) == (RunState.CANCELLED, "it passed its time-out of 0:15:00")
    assert runs["patient"].state is RunState.SUCCEEDED
