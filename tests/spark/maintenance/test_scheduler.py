"""The scheduler on real tables: one runner runs due jobs in order and records every run."""

from __future__ import annotations

import dataclasses
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import (
    DeadlineError,
    LeaseHeldError,
    LeaseLostError,
    MaintenanceFailedError,
    PolicyRefusedError,
    StoppedError,
)
from lakewright_spark.maintenance import registry
from lakewright_spark.maintenance.jobs.job import JobFunction, JobMetrics
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.policies.model import JOBS, JobName, TablePolicies
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.claims import active_runners
from lakewright_spark.scheduler.plan import WarehousePlan, plan_requested_job
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.runner_claims import RunnerClaims
from lakewright_spark.scheduler.supervisor import Control, Limits
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.table_identifier import TableIdentifier
from pyspark.sql import SparkSession
from waiting import wait_until

from tests.spark.maintenance.scheduling import ScheduledNamespace, endless

pytestmark = pytest.mark.spark


@pytest.fixture
def scheduled(tenant: CatalogConfig, spark: SparkSession) -> Iterator[ScheduledNamespace]:
    name = f"sched_{uuid.uuid4().hex[:8]}"
    for namespace in (name, f"{name}.deep"):
        spark.sql(f"CREATE NAMESPACE results.{namespace}")
    yield ScheduledNamespace(tenant.select_warehouses(["results"]), spark, name)
    for namespace in (f"{name}.deep", name):
        for row in spark.sql(f"SHOW TABLES IN results.{namespace}").collect():
            spark.sql(f"DROP TABLE results.{namespace}.{row.tableName}")
        spark.sql(f"DROP NAMESPACE results.{namespace}")


def test_due_jobs_run_once_and_are_recorded(scheduled: ScheduledNamespace) -> None:
    scheduled.table("small")
    scheduled.table("deep.inner", files=1)
    observed_runs: list[RunRecord] = []
    dry = scheduled.maintenance(dry_run=True).run()
    assert dry.error() is None
    assert {run.state for run in dry.runs.values()} == {RunState.SUCCEEDED}
    assert scheduled.list_recorded_runs() == [], "a dry run leaves nothing"
    outcome = scheduled.maintenance(observers=[observed_runs.append]).run()
    assert outcome.error() is None
    done = {(run.table.name, run.job) for run in outcome.filter_runs(RunState.SUCCEEDED)}
    always = {"orphan-files", "statistics"}
    assert done == {("small", job) for job in {*always, "compaction"}} | {("inner", job) for job in always}
    assert {run.id: run.state for run in scheduled.list_recorded_runs()} == {
        run.id: run.state for run in outcome.runs.values()
    }
    for name in ("small", "inner"):
        began = [run.job for run in observed_runs if run.table.name == name and run.state is RunState.RUNNING]
        assert began == sorted(began, key=JOBS.index), "each table's jobs in their order"
    compacted = next(run for run in scheduled.list_recorded_runs() if run.job == "compaction")
    assert (compacted.metrics["rewritten"], compacted.metrics["added"]) == (6, 1)
    second_outcome = scheduled.maintenance(clock=lambda: datetime.now(UTC) + timedelta(minutes=1)).run()
    assert second_outcome.runs == {}, "and nothing of it is due again"


STATISTICS_ONLY: tuple[JobName, ...] = ("statistics",)
TWO_JOBS: tuple[JobName, ...] = ("orphan-files", "statistics")


def replace_orphan_files(monkeypatch: pytest.MonkeyPatch, run: JobFunction) -> None:
    job = registry.JOBS_BY_NAME["orphan-files"]
    monkeypatch.setitem(registry.JOBS_BY_NAME, "orphan-files", dataclasses.replace(job, run=run))


@pytest.fixture
def endless_orphan_files(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_orphan_files(monkeypatch, endless)


class JumpingClock:
    """A clock that jumps by two hours when a run of this job begins."""

    def __init__(self, job: JobName) -> None:
        self.job, self.ahead = job, timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def __call__(self, run: RunRecord) -> None:
        if (run.job, run.state) == (self.job, RunState.RUNNING):
            self.ahead = timedelta(hours=2)


class ActionAtStart:
    """An observer that acts when a run of this job begins."""

    def __init__(self, job: JobName, action: threading.Event | TableClaim) -> None:
        self.job, self.action = job, action

    def __call__(self, run: RunRecord) -> None:
        if (run.job, run.state) != (self.job, RunState.RUNNING):
            return
        if isinstance(self.action, TableClaim):
            # With a clock that is ahead, the present runner looks dead.
            self.action.take(datetime.now(UTC) + timedelta(hours=1))
        else:
            self.action.set()


def states(outcome_runs: dict[str, RunRecord]) -> dict[tuple[str, str], tuple[str, str]]:
    return {(run.table.name, run.job): (run.state.value, run.reason) for run in outcome_runs.values()}


def test_job_past_its_time_limit_is_cancelled(scheduled: ScheduledNamespace, endless_orphan_files: None) -> None:
    scheduled.table("one", files=1)
    limits = Limits(task_timeout=timedelta(seconds=1))
    outcome = scheduled.maintenance(jobs=TWO_JOBS, limits=limits).run()
    run_states = states(outcome.runs)
    assert run_states["one", "orphan-files"] == ("CANCELLED", "it passed its time-out of 0:00:01")
    assert run_states["one", "statistics"][0] in {"SUCCEEDED", "CANCELLED"}
    error = outcome.error()
    assert isinstance(error, MaintenanceFailedError)
    assert "orphan-files of results" in str(error)
    assert states({run.id: run for run in scheduled.list_recorded_runs()}) == run_states


def test_deadline_cancels_running_and_skips_queued_jobs(
    scheduled: ScheduledNamespace, endless_orphan_files: None
) -> None:
    scheduled.table("one", files=1)
    scheduled.table("two", files=1)
    clock = JumpingClock("orphan-files")
    limits = Limits(parallel=1, deadline=datetime.now(UTC) + timedelta(hours=1))
    outcome = scheduled.maintenance(jobs=TWO_JOBS, limits=limits, observers=[clock], clock=clock.now).run()
    run_states = states(outcome.runs)
    assert {state for state, _ in run_states.values()} == {"CANCELLED"}
    assert run_states["one", "orphan-files"][1].startswith("the deadline, ")
    assert run_states["two", "statistics"][1].startswith("not begun: the deadline, ")
    assert isinstance(outcome.error(), DeadlineError)
    assert {run.state for run in scheduled.list_recorded_runs()} == {RunState.CANCELLED}


def test_stop_request_lets_running_jobs_finish(scheduled: ScheduledNamespace) -> None:
    scheduled.table("one", files=1)
    control = Control()
    stop = ActionAtStart("orphan-files", control.ended)
    outcome = scheduled.maintenance(jobs=TWO_JOBS, control=control, observers=[stop]).run()
    run_states = states(outcome.runs)
    assert run_states["one", "orphan-files"][0] == "SUCCEEDED"
    assert run_states["one", "statistics"] == ("CANCELLED", "not begun: the process was asked to stop")
    assert isinstance(outcome.error(), StoppedError)


@pytest.mark.parametrize("twice", [False, True])
def test_second_stop_request_cancels_running_jobs(
    scheduled: ScheduledNamespace, endless_orphan_files: None, *, twice: bool
) -> None:
    scheduled.table("one", files=1)
    control = Control()
    if twice:
        control.at_once.set()
    stop = ActionAtStart("orphan-files", control.ended)
    limits = Limits(grace=timedelta(hours=1) if twice else timedelta(seconds=1))
    outcome = scheduled.maintenance(jobs=TWO_JOBS, control=control, observers=[stop], limits=limits).run()
    assert states(outcome.runs)["one", "orphan-files"] == ("CANCELLED", "the process was asked to stop")


@pytest.mark.long
def test_second_runner_does_other_tables(scheduled: ScheduledNamespace) -> None:
    for name in ("one", "two"):
        scheduled.table(name, files=1)
    catalog = open_catalog(scheduled.config, "results")
    table = TableIdentifier("results", (scheduled.name,), "one")
    other = RunnerClaims(scheduled.config, "results", catalog, "other/1/aa")
    other.register(datetime.now(UTC))
    uuid_of_one = str(catalog.load_table(table.within).metadata.table_uuid)
    assert other.take([(uuid_of_one, table)], 1, [], datetime.now(UTC)).taken
    began: list[str] = []

    def record_and_end_other_runner(run: RunRecord) -> None:
        if run.state is RunState.RUNNING:
            began.append(run.table.name)
            if run.table.name == "two":
                other.renew(datetime.now(UTC) - other.life)  # it expires now

    outcome = scheduled.maintenance(jobs=STATISTICS_ONLY, observers=[record_and_end_other_runner]).run()
    assert began == ["two", "one"], "the other runner is dead after its claim expired, so this runner does it last"
    assert outcome.counts() == {"SUCCEEDED": 2}
    killed = [run for run in scheduled.list_recorded_runs() if run.killed_runner]
    assert [(run.table.name, run.runner, run.state) for run in killed] == [("one", "other/1/aa", RunState.FAILED)]


class ParallelJob:
    """A job on table `two` that runs entirely within the `orphan-files` job on table `one`."""

    def __init__(self, scheduled: ScheduledNamespace) -> None:
        self.scheduled, self.ended = scheduled, threading.Event()
        self.counts: dict[str, int] = {}
        self.thread = threading.Thread(target=self._run)

    def orphan_files(self, opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> JobMetrics:
        del policy, now
        if opened.table.name == "one":
            self.thread.start()
            assert self.ended.wait(120)
        return JobMetrics(dry_run=dry_run)

    def _run(self) -> None:
        table = TableIdentifier("results", (self.scheduled.name,), "two")
        plan = plan_requested_job(self.scheduled.config, table, "statistics", registry=None, now=datetime.now(UTC))
        try:
            self.counts = self.scheduled.maintenance(requested=WarehousePlan("results", (plan,), {})).run().counts()
        finally:
            self.ended.set()


@pytest.mark.long
def test_manual_job_runs_beside_maintain(scheduled: ScheduledNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduled.table("one", files=1)
    scheduled.table("two", files=1)
    beside = ParallelJob(scheduled)
    replace_orphan_files(monkeypatch, beside.orphan_files)
    outcome = scheduled.maintenance(jobs=TWO_JOBS, limits=Limits(parallel=1)).run()
    beside.thread.join()
    assert beside.counts == {"SUCCEEDED": 1}
    assert outcome.error() is None
    assert {key: state for key, (state, _) in states(outcome.runs).items()} == {
        ("one", "orphan-files"): "SUCCEEDED",
        ("one", "statistics"): "SUCCEEDED",
        ("two", "orphan-files"): "SKIPPED",
        ("two", "statistics"): "SKIPPED",
    }


@pytest.mark.long
def test_maintain_skips_a_claimed_table(scheduled: ScheduledNamespace) -> None:
    scheduled.table("one", files=1)
    scheduled.table("two", files=1)
    catalog = open_catalog(scheduled.config, "results")
    table = TableIdentifier("results", (scheduled.name,), "two")
    uuid_of_two = str(catalog.load_table(table.within).metadata.table_uuid)
    job = TableClaim(scheduled.config, table, uuid_of_two, catalog, "job/1/aa")
    job.take(datetime.now(UTC))
    try:
        outcome = scheduled.maintenance(jobs=STATISTICS_ONLY).run()
        table_plan = plan_requested_job(scheduled.config, table, "statistics", registry=None, now=datetime.now(UTC))
        with pytest.raises(LeaseHeldError, match="maintained by job/1/aa"):
            scheduled.maintenance(requested=WarehousePlan("results", (table_plan,), {})).run()
    finally:
        job.release(datetime.now(UTC))
    assert outcome.error() is None
    assert states(outcome.runs) == {
        ("one", "statistics"): ("SUCCEEDED", ""),
        ("two", "statistics"): ("SKIPPED", "not begun: job/1/aa works on this table"),
    }
    assert scheduled.maintenance(jobs=STATISTICS_ONLY, table=re.compile("two")).run().counts() == {"SUCCEEDED": 1}


@pytest.mark.long
def test_runs_of_a_live_job_are_not_closed(scheduled: ScheduledNamespace) -> None:
    scheduled.table("one", files=1)
    catalog, now = open_catalog(scheduled.config, "results"), datetime.now(UTC)
    table = TableIdentifier("results", (scheduled.name,), "elsewhere")
    job = TableClaim(scheduled.config, table, uuid.uuid4().hex, catalog, "job/1/aa")
    job.take(now)
    run = RunRecord(runner="job/1/aa", table=table, table_uuid=job.uuid, job="statistics", queued_at=now)
    job_runs.append(catalog, [dataclasses.replace(run, state=RunState.RUNNING, started_at=now)], now)
    scheduled.maintenance(jobs=STATISTICS_ONLY).run()
    assert {record.state for record in scheduled.list_recorded_runs() if record.id == run.id} == {RunState.RUNNING}
    job.release(now)
    scheduled.maintenance(jobs=STATISTICS_ONLY).run()
    assert {record.state for record in scheduled.list_recorded_runs() if record.id == run.id} == {RunState.FAILED}


@pytest.mark.long
def test_lost_lease_stops_the_work(scheduled: ScheduledNamespace, endless_orphan_files: None) -> None:
    scheduled.table("one", files=1)
    catalog = open_catalog(scheduled.config, "results")
    table = TableIdentifier("results", (scheduled.name,), "one")
    uuid_of_one = str(catalog.load_table(table.within).metadata.table_uuid)
    other = TableClaim(scheduled.config, table, uuid_of_one, catalog, "other/1/aa")
    thief = ActionAtStart("orphan-files", other)
    try:
        outcome = scheduled.maintenance(jobs=TWO_JOBS, lease_life=timedelta(seconds=3), observers=[thief]).run()
    finally:
        other.release(datetime.now(UTC))
    run_states = states(outcome.runs)
    assert run_states["one", "orphan-files"][0] == "CANCELLED"
    assert "another runner took over" in run_states["one", "orphan-files"][1]
    assert isinstance(outcome.error(), LeaseLostError)
    assert all(not run.state.has_ended for run in scheduled.list_recorded_runs()), "the new holder closes the runs"
    wait_until(lambda: not active_runners(catalog, datetime.now(UTC)), seconds=60)
    second_outcome = scheduled.maintenance(jobs=STATISTICS_ONLY).run()
    assert second_outcome.counts() == {"SUCCEEDED": 1}
    assert {run.state for run in scheduled.list_recorded_runs() if run.job == "orphan-files"} <= {
        RunState.FAILED,
        RunState.CANCELLED,
    }


class ActionAfterPlanning:
    """An observer that acts once, after all jobs were planned."""

    def __init__(self, action: Callable[[], object]) -> None:
        self.action: Callable[[], object] | None = action

    def __call__(self, run: RunRecord) -> None:
        if run.state is RunState.QUEUED and self.action:
            action, self.action = self.action, None
            action()


LOCK = '{"message": "audit", "since": "2026-01-01T00:00:00Z"}'


@pytest.mark.long
def test_lock_set_after_planning(scheduled: ScheduledNamespace) -> None:
    sql = scheduled.table("one")
    lock = ActionAfterPlanning(
        lambda: scheduled.spark.sql(f"ALTER TABLE {sql} SET TBLPROPERTIES ('lakewright.policy.lock' = '{LOCK}')")
    )
    outcome = scheduled.maintenance(jobs=("compaction", "statistics"), observers=[lock]).run()
    states_by_job = {run.job: (run.state, run.reason) for run in scheduled.list_recorded_runs()}
    assert states_by_job["compaction"] == (RunState.SKIPPED, "locked since 2026-01-01 00:00:00 UTC: audit")
    assert states_by_job["statistics"][0] is RunState.SUCCEEDED, "it changes nothing"
    assert outcome.error() is None
    assert scheduled.spark.sql(f"SELECT count(*) FROM {sql}.files").collect()[0][0] == 6


@pytest.mark.long
def test_table_replaced_after_planning(scheduled: ScheduledNamespace) -> None:
    sql = scheduled.table("one")

    def replace() -> None:
        scheduled.spark.sql(f"ALTER TABLE {sql} RENAME TO {scheduled.name}.first")
        scheduled.table("one")

    scheduled.maintenance(jobs=("compaction", "statistics"), observers=[ActionAfterPlanning(replace)]).run()
    runs = scheduled.list_recorded_runs()
    assert {run.state for run in runs} == {RunState.SKIPPED}
    assert all(run.reason.startswith("the table was replaced: expected UUID") for run in runs)
    assert scheduled.spark.sql(f"SELECT count(*) FROM {sql}.files").collect()[0][0] == 6


@pytest.mark.long
def test_policy_changed_after_planning(scheduled: ScheduledNamespace) -> None:
    sql = scheduled.table("one")
    policy = '{"min_input_files": 100}'
    change = ActionAfterPlanning(
        lambda: scheduled.spark.sql(
            f"ALTER TABLE {sql} SET TBLPROPERTIES ('lakewright.policy.compaction' = '{policy}')"
        )
    )
    scheduled.maintenance(jobs=("compaction",), observers=[change]).run()
    (run,) = scheduled.list_recorded_runs()
    assert (run.state, run.metrics["rewritten"]) == (RunState.SUCCEEDED, 0)


@pytest.mark.long
def test_idle_table_is_compacted_after_an_upgrade(scheduled: ScheduledNamespace) -> None:
    """The position deletes are converted once, although few rows are deleted and no row changed since the last run."""
    sql = scheduled.table("one", files=0, clauses="TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    scheduled.spark.sql(f"INSERT INTO {sql} SELECT /*+ COALESCE(1) */ int(id) FROM range(100)")
    scheduled.spark.sql(f"DELETE FROM {sql} WHERE n = 7")
    compaction = scheduled.maintenance(jobs=("compaction",))

    def list_due() -> list[str]:
        (table,) = compaction.decide().plans[0].tables
        return [decision.reason for decision in table.due]

    def list_formats() -> list[str]:
        return [row[0] for row in scheduled.spark.sql(f"SELECT file_format FROM {sql}.delete_files").collect()]

    assert list_due() == [], "one deleted row of a hundred"
    plan = plan_requested_job(
        scheduled.config,
        TableIdentifier("results", (scheduled.name,), "one"),
        "compaction",
        registry=None,
        now=datetime.now(UTC),
    )
    scheduled.maintenance(requested=WarehousePlan("results", (plan,), {})).run()
    scheduled.spark.sql(f"ALTER TABLE {sql} SET TBLPROPERTIES ('format-version' = '3')")
    assert (list_due(), list_formats()) == (["the table was upgraded to format version 3"], ["PARQUET"])
    assert compaction.run().counts() == {"SUCCEEDED": 1}
    assert (list_due(), list_formats()) == ([], ["PUFFIN"])
    scheduled.spark.sql(
        f"""ALTER TABLE {sql} SET TBLPROPERTIES ('lakewright.policy.compaction' = '{{"delete_file_threshold": 1}}')"""
    )
    assert list_due() == ["the policy changed"]
    assert compaction.run().counts() == {"SUCCEEDED": 1}
    assert (list_due(), list_formats()) == ([], [])


@pytest.mark.long
def test_manual_job_is_recorded(scheduled: ScheduledNamespace) -> None:
    scheduled.table("one", files=1)
    table = TableIdentifier("results", (scheduled.name,), "one")

    def run_requested_job(job: JobName) -> RunRecord:
        plan = plan_requested_job(scheduled.config, table, job, registry=None, now=datetime.now(UTC))
        outcome = scheduled.maintenance(requested=WarehousePlan("results", (plan,), {})).run()
        (run,) = outcome.runs.values()
        return run

    first, second = run_requested_job("statistics"), run_requested_job("statistics")
    assert {run.id: (run.state, run.metrics) for run in scheduled.list_recorded_runs()} == {
        run.id: (RunState.SUCCEEDED, run.metrics) for run in (first, second)
    }
    assert first.metrics["rows"] == 1
    assert active_runners(open_catalog(scheduled.config, "results"), datetime.now(UTC)) == frozenset()
    scheduled.spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('lakewright.policy.retention' = '{BAD_COLUMN}')")
    refused = run_requested_job("retention")
    assert (refused.state, type(refused.error)) == (RunState.FAILED, PolicyRefusedError)


BAD_COLUMN = '{"keep": 1, "column": "nothing"}'


@pytest.mark.long
def test_table_with_invalid_policy_is_skipped(scheduled: ScheduledNamespace) -> None:
    scheduled.table("one", files=1)
    scheduled.table("odd", files=1, clauses="TBLPROPERTIES ('lakewright.policy.history' = '{\"versions\": 0}')")
    outcome = scheduled.maintenance(jobs=STATISTICS_ONLY).run()
    assert [table.name for table in outcome.problems] == ["odd"]
    assert [run.table.name for run in outcome.filter_runs(RunState.SUCCEEDED)] == ["one"]
    assert isinstance(outcome.error(), MaintenanceFailedError)


@pytest.mark.long
@pytest.mark.usefixtures("variant_columns")
def test_variant_table_is_maintained_with_others(scheduled: ScheduledNamespace) -> None:
    """PyIceberg does not know the type `variant`. Unreadable tables are among the unit tests of the scheduler."""
    scheduled.table("one", files=1)
    scheduled.spark.sql(
        f"CREATE TABLE results.{scheduled.name}.odd (v variant) USING iceberg TBLPROPERTIES ('format-version' = '3')"
    )
    outcome = scheduled.maintenance(jobs=STATISTICS_ONLY).run()
    assert sorted(run.table.name for run in outcome.filter_runs(RunState.SUCCEEDED)) == ["odd", "one"]
    assert outcome.error() is None


@pytest.mark.long
def test_statistics_of_several_tables_share_commits(scheduled: ScheduledNamespace) -> None:
    """Spark reads the rows that the scheduler commits for its jobs."""
    for name in ("one", "two", "three"):
        scheduled.table(name, files=1)
    scheduled.maintenance(jobs=STATISTICS_ONLY, table=re.compile("three")).run()

    def commits() -> int:
        return scheduled.spark.sql("SELECT count(*) FROM results.ops.table_statistics.snapshots").collect()[0][0]

    before = commits()
    outcome = scheduled.maintenance(jobs=STATISTICS_ONLY).run()
    assert outcome.counts() == {"SUCCEEDED": 2}
    for table_name in ("table_statistics", "partition_statistics", "commit_statistics"):
        scheduled.spark.catalog.refreshTable(f"results.ops.{table_name}")
        rows = scheduled.spark.sql(
            f"SELECT table_name FROM results.ops.{table_name} WHERE table_name LIKE 'results.{scheduled.name}.%'"
        )
        assert sorted(row[0].rpartition(".")[2] for row in rows.collect()) == ["one", "three", "two"]
    assert commits() == before + 1
