"""Deaths of Spark's JVM during a run: the supervisor and the queue find the table that causes them."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

from lakewright_spark.maintenance.jobs.staged_files import StagedFilesMetrics
from lakewright_spark.scheduler.recovery import count_kills
from lakewright_spark.scheduler.run_log.records import KILLED, SUSPECT, RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Control, Limits, Supervisor
from lakewright_spark.scheduler.table_worker import _to_fields
from lakewright_spark.scheduler.work_queue import WorkQueue
from pyiceberg.catalog.sql import SqlCatalog

from tests.unit.spark.scheduler.stub_workers import NOW, StubWorker, build_work


def test_an_interrupted_job_without_memory_counts_as_a_kill() -> None:
    interrupted = StagedFilesMetrics(deleted=1, interruption="java.lang.OutOfMemoryError: Java heap space")
    assert _to_fields(interrupted)["metrics"][KILLED]
    assert KILLED not in _to_fields(StagedFilesMetrics(deleted=1, interruption="the store is slow"))["metrics"]


class MortalSpark:
    """A session whose JVM dies once."""

    def __init__(self) -> None:
        self.dead = threading.Event()
        self.sparkContext = self._jsc = self

    def sc(self) -> MortalSpark:
        return self

    def isStopped(self) -> bool:  # noqa: N802  # as in Spark
        if self.dead.is_set():
            raise ConnectionError
        return False

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802  # as in Spark
        del tag


class MortalWorker(StubWorker):
    """A worker whose jobs last until Spark dies, or half a second. Table `killer` kills Spark sooner."""

    def end(self, run: RunRecord) -> RunRecord:
        if run.table.name == "killer":
            self.spark.dead.wait(0.25)
            self.spark.dead.set()
        if self.spark.dead.wait(0.5):
            return dataclasses.replace(run, state=RunState.FAILED, metrics={**run.metrics, KILLED: True})
        return dataclasses.replace(run, state=RunState.SUCCEEDED, metrics=dict(run.metrics))


def test_two_deaths_find_the_cause() -> None:
    """At the first death three tables are suspects. At the second, the only suspect in work is the cause."""
    names = ["a", "killer", *"bcdefghi"]
    works = WorkQueue([build_work(name) for name in names])
    runs: dict[str, RunRecord] = {}
    deaths = 0
    start: Any = MortalWorker
    while not works.is_done:
        spark: Any = MortalSpark()
        observers = [lambda run: runs.update({run.id: run})]
        supervisor = Supervisor(spark, Limits(parallel=3), Control(), observers, lambda: NOW, start_worker=start)
        supervisor.run(works)
        deaths += supervisor.has_spark_died
    assert deaths == 2
    kills = [run for run in runs.values() if run.killed_runner]
    first_kills = [run.table.name for run in kills if not run.is_suspect]
    assert sorted(first_kills) == ["a", "b", "killer"], "any of them may be the cause"
    assert [run.table.name for run in kills if run.is_suspect] == ["killer"]
    beside = [run for run in runs.values() if run.state is RunState.CANCELLED]
    assert beside, "tables beside the cause"
    assert not any(run.killed_runner for run in beside)
    succeeded = sorted(run.table.name for run in runs.values() if run.state is RunState.SUCCEEDED)
    assert succeeded == list("abcdefghi"), "once each, in the same run"


def test_only_the_suspect_of_a_dead_runner_counts_twice(local_catalog: SqlCatalog) -> None:
    suspect, beside, unrecorded = (build_work(name).runs[0] for name in ("suspect", "beside", "unrecorded"))
    holders = {"uuid-suspect": "dead", "uuid-beside": "dead", "uuid-unrecorded": "dead"}
    killed = dataclasses.replace(suspect, runner="dead", state=RunState.FAILED, metrics={KILLED: True, SUSPECT: True})
    runs = [suspect, beside, unrecorded]
    assert count_kills(local_catalog, runs, [killed], holders, NOW) == {"uuid-suspect": 2}
    first_death = dataclasses.replace(killed, metrics={KILLED: True})
    assert count_kills(local_catalog, runs, [first_death], holders, NOW) == dict.fromkeys(holders, 1)
