"""A compaction that is cancelled keeps its finished groups, and the next run continues."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.scheduler import supervisor as supervisor_module
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Control, Limits, Supervisor
from lakewright_spark.scheduler.table_worker import TableWork
from lakewright_spark.scheduler.work_queue import WorkQueue
from lakewright_spark.table_identifier import TableIdentifier
from pyspark.sql import SparkSession

from tests.spark.maintenance.conftest import FaultyWarehouse, Maintained

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(600)]

POLICIES = TablePolicies.model_validate({"compaction": {"min_input_files": 2}})
LIMIT = timedelta(minutes=15)
FREE = 4
"""Groups that are written before the time limit passes."""


@dataclass
class LimitedRun:
    """A compaction under a supervisor whose time limit passes when some groups were written.

    Iceberg rewrites each partition by itself, as a group with one new file. `respond_late` responds to the upload of
    each further file.
    """

    table: Maintained
    seconds_after_limit: float
    respond_late: Callable[[LimitedRun, Callable[[], httpx.Response]], httpx.Response]
    runs: list[RunRecord] = field(default_factory=list[RunRecord])
    uploads: int = 0
    written: int = 0
    """Groups whose file was written."""
    reads_after_limit: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def respond(self, line: str, forward: Callable[[], httpx.Response]) -> httpx.Response:
        """Forward a request to the store. Hold uploads of data files after the first four."""
        if not (line.startswith("PUT") and "/data/" in line):
            return forward()
        with self.changed:
            self.uploads += 1
            is_free = self.uploads <= FREE
            self.changed.notify_all()
        response = forward() if is_free else self.respond_late(self, forward)
        with self.changed:
            self.written += response.is_success
        return response

    def read_timer(self) -> float:
        with self.changed:
            if self.uploads <= FREE:
                return 0.0
            self.reads_after_limit += 1
            self.changed.notify_all()
            return LIMIT.total_seconds() + self.seconds_after_limit

    def run(self) -> Supervisor:
        now = datetime.now(UTC)
        run = RunRecord(runner="us", table=self.table.table, table_uuid="uuid", job="compaction", queued_at=now)
        supervisor = Supervisor(
            self.table.spark,
            Limits(parallel=1, task_timeout=LIMIT),
            Control(),
            [self.runs.append],
            lambda: now,
            timer=self.read_timer,
        )
        supervisor.run(WorkQueue([TableWork(self.table.table, POLICIES, (run,))]))
        return supervisor


@pytest.fixture
def create_groups(
    faulty: FaultyWarehouse, spark: SparkSession, sandbox: Sandbox
) -> Iterator[Callable[[int], Maintained]]:
    """Return a function that creates a table with this number of partitions, each with two small files."""
    table = Maintained(spark, sandbox, TableIdentifier("faulty", ("maintained",), "cancelled"), POLICIES)

    def create(partitions: int) -> Maintained:
        table.do("CREATE TABLE THIS (n bigint, part int) USING iceberg PARTITIONED BY (part)")
        for _ in range(2):
            table.do(f"INSERT INTO THIS SELECT /*+ COALESCE(1) */ id, id % {partitions} FROM range({partitions * 3})")
        return table

    yield create
    table.do("DROP TABLE THIS")


def count_groups(table: Maintained) -> int:
    """Return the number of groups to rewrite, each with two files."""
    return table.job("compaction", dry_run=True).rewritten // 2


def hold_until_wound_down(run: LimitedRun, forward: Callable[[], httpx.Response]) -> httpx.Response:
    """Let the groups in work end once the supervisor noted them. Later groups take until the run has ended."""
    with run.changed:
        is_in_work = run.reads_after_limit < 2
        last_read = 2 if is_in_work else 10**9
        assert run.changed.wait_for(lambda: run.reads_after_limit >= last_read or run.runs[-1].state.has_ended, 120)
    return forward() if is_in_work else httpx.Response(503)


@pytest.mark.parametrize("groups", [8, 20])
def test_cancelled_compaction_repeats_no_group(
    faulty: FaultyWarehouse, create_groups: Callable[[int], Maintained], groups: int
) -> None:
    """The groups in work end after the time limit, no other group begins, and the next run rewrites the rest."""
    table = create_groups(groups)
    rows = sorted(table.column("SELECT n FROM THIS"))
    limited = LimitedRun(table, 60.0, hold_until_wound_down)
    with faulty.store.inject(limited.respond):
        supervisor = limited.run()
    assert supervisor.abandoned == []
    assert (limited.runs[-1].state, limited.runs[-1].reason) == (
        RunState.CANCELLED,
        "it passed its time-out of 0:15:00",
    )
    remaining = count_groups(table)
    assert 0 < remaining < groups - FREE, "the run was cancelled in the middle, and the groups in work were committed"
    second = table.job("compaction")
    assert (second.rewritten, second.failed, count_groups(table)) == (2 * remaining, 0, 0)
    repeated = limited.written - (groups - remaining)
    assert repeated < 0.05 * groups
    assert sorted(table.column("SELECT n FROM THIS")) == rows


def forward_upload(_: LimitedRun, forward: Callable[[], httpx.Response]) -> httpx.Response:
    return forward()


def test_abandoned_compaction_begins_few_groups(
    faulty: FaultyWarehouse, create_groups: Callable[[int], Maintained], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg begins the next group after a cancelled group, also when the supervisor no longer waits."""
    monkeypatch.setattr(supervisor_module, "CANCELLATION_TIMEOUT", -1.0)
    table = create_groups(100)
    limited = LimitedRun(table, LIMIT.total_seconds(), forward_upload)
    with faulty.store.inject(limited.respond):
        (worker,) = limited.run().abandoned
        assert limited.runs[-1].reason.endswith("cancellation timed out; the job may still commit")
        assert worker.ended.wait(300)
    assert count_groups(table) > 50
