"""Tables that jobs claim while a runner maintains their warehouse; threads stand in for Spark."""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.scheduler import supervisor
from lakewright_spark.scheduler.claims import ClaimedTables
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Control, Limits, Supervisor
from lakewright_spark.scheduler.table_worker import Event, TableWork
from lakewright_spark.table_identifier import TableIdentifier

NOW = datetime(2026, 1, 10, tzinfo=UTC)
UUID = "0000-1111"
TABLE = TableIdentifier("lake", ("sales",), "orders")


class SparklessThread:
    """Runs `run_job` in place of each job."""

    def run_job(self, run: RunRecord) -> None:
        raise NotImplementedError

    def __init__(self, spark: object, work: TableWork, slot: int, events: queue.SimpleQueue[Event], *_: object) -> None:
        del spark
        self.work, self.slot, self.events = work, slot, events
        self.stop = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        worker: Any = self
        for run in self.work.runs:
            if self.stop.is_set():
                break
            self.events.put(Event("began", worker, run))
            self.run_job(run)
            self.events.put(Event("ended", worker, dataclasses.replace(run, state=RunState.SUCCEEDED)))
        self.events.put(Event("left", worker))


@pytest.fixture
def control() -> Control:
    return Control()


def states_after(control: Control) -> dict[str, RunState]:
    """Run two jobs of the table with a supervisor; return their end states."""
    states: dict[str, RunState] = {}
    jobs: tuple[JobName, ...] = ("compaction", "statistics")
    runs = tuple(RunRecord(runner="us", table=TABLE, table_uuid=UUID, job=job, queued_at=NOW) for job in jobs)

    def observe(run: RunRecord) -> None:
        states[run.job] = run.state

    spark: Any = None
    Supervisor(spark, Limits(), control, [observe], lambda: NOW).run([TableWork(TABLE, TablePolicies(), runs)])
    return states


def claim_during_the_first_job(monkeypatch: pytest.MonkeyPatch, control: Control, later: Callable[[], object]) -> None:
    """Claim the table in the first job, and call `later` once the supervisor has seen it."""

    def run_job(thread: SparklessThread, run: RunRecord) -> None:
        if run.job == "compaction":
            control.claimed.update("lake", {UUID: "job"})
            assert thread.stop.wait(30)
            later()

    monkeypatch.setattr(SparklessThread, "run_job", run_job)
    monkeypatch.setattr(supervisor, "TableWorker", SparklessThread)


@pytest.mark.timeout(60)
def test_runs_continue_after_a_claim_is_withdrawn(monkeypatch: pytest.MonkeyPatch, control: Control) -> None:
    """A job is refused because the first run takes longer than the job waits."""
    claim_during_the_first_job(monkeypatch, control, lambda: control.claimed.update("lake", {}))

    assert states_after(control) == {"compaction": RunState.SUCCEEDED, "statistics": RunState.SUCCEEDED}


@pytest.mark.timeout(60)
def test_runs_of_a_released_table_are_skipped(monkeypatch: pytest.MonkeyPatch, control: Control) -> None:
    def heartbeat() -> None:
        while UUID not in control.claimed.give_up("lake", {UUID: "job"}):
            pass

    claim_during_the_first_job(monkeypatch, control, threading.Thread(target=heartbeat).start)

    assert states_after(control) == {"compaction": RunState.SUCCEEDED, "statistics": RunState.SKIPPED}


def test_claim_is_forgotten_unless_table_was_released() -> None:
    tables = ClaimedTables()
    assert tables.begin("at work") is None
    assert tables.give_up("lake", {"at work": "job", "idle": "job"}) == {"idle"}

    assert tables.give_up("lake", {}) == {"idle"}
    assert (tables.claimant("at work"), tables.claimant("idle")) == (None, "job")
    assert tables.is_given_up("idle")


def test_claims_of_other_warehouses_are_kept() -> None:
    tables = ClaimedTables()
    assert tables.begin(UUID) is None
    tables.update("lake", {UUID: "job"})

    assert tables.update("another", {}) == frozenset()
    assert tables.claimant(UUID) == "job"


def test_withdrawn_claim_of_an_idle_table() -> None:
    tables = ClaimedTables()
    assert tables.update("lake", {UUID: "job"}) == {UUID}
    assert tables.begin(UUID) == "job", "nothing begins on it while it is claimed"

    tables.update("lake", {})
    assert tables.begin(UUID) is None
