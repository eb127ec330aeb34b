"""Runners that are killed or stopped, or whose storage fails: the next runner finishes and loses nothing."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest
from fault_proxy import random_faults
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError
from lakewright_spark.policies.model import CompactionPolicy
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.scheduler.claims import active_runners
from lakewright_spark.scheduler.outcome import MaintenanceOutcome
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from pyspark.sql import SparkSession
from waiting import wait_until

from tests.spark.maintenance.conftest import DAY, FaultyWarehouse, Maintained
from tests.spark.maintenance.scheduling import ScheduledNamespace
from tests.spark.maintenance.table_history import FileComparison, TableHistory

pytestmark = [pytest.mark.long, pytest.mark.spark]

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
KILLS = 6 if FULL else 1
TABLES, FILES = (6, 6) if FULL else (3, 5)
LEASE = timedelta(seconds=5)
PATIENCE = 500 if FULL else 120
"""Seconds until a run of a process has made progress."""
LARGE_ROW = 200_000_000
"""Bytes of a row that a JVM of 600 MiB cannot rewrite."""
SHARE = 0.05
"""Share of failed requests. PyIceberg does not retry, so with a higher share no run gets past its lease."""


@pytest.fixture
def scheduled(tenant: CatalogConfig, spark: SparkSession) -> Iterator[ScheduledNamespace]:
    name = f"crash_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE NAMESPACE results.{name}")
    yield ScheduledNamespace(tenant.select_warehouses(["results"]), spark, name)
    for row in spark.sql(f"SHOW TABLES IN results.{name}").collect():
        spark.sql(f"DROP TABLE results.{name}.{row.tableName}")
    spark.sql(f"DROP NAMESPACE results.{name}")


class MaintainProcess:
    """`lakewright-spark maintain` in its own process group."""

    def __init__(self, scheduled: ScheduledNamespace, folder: Path, *options: str) -> None:
        config = folder / "catalog.json"
        config.write_text(scheduled.config.to_json())
        program = [sys.executable, "-m", "lakewright_spark.cli", "maintain", "--config", str(config)]
        program += ["--namespace", scheduled.name, "--lease", "5s", "--parallel", "2", *options]
        self.process = subprocess.Popen(
            program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stderr
        self.lines: list[str] = []
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True)
        self.reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self.news:
                self.lines.append(line)
                self.news.notify_all()

    def done(self, runs: int) -> None:
        """Wait until this number of runs succeeded; a table is reported with all of its runs."""

        def enough() -> bool:
            return sum(line.count(" succeeded ") for line in self.lines) >= runs

        with self.news:
            assert self.news.wait_for(enough, timeout=PATIENCE), "".join(self.lines)

    def wait(self) -> tuple[int, str]:
        """Return the exit code and the output."""
        code = self.process.wait(PATIENCE)
        self.reader.join()
        return code, re.sub(r"\s+", " ", "".join(self.lines))

    def spark(self) -> int:
        """Return the process id of its JVM."""
        for status in Path("/proc").glob("[0-9]*/stat"):
            with suppress(FileNotFoundError, ProcessLookupError):  # other processes end meanwhile
                number, name, _, _, group, *_ = status.read_text().split()
                if (name, group) == ("(java)", str(self.process.pid)):
                    return int(number)
        raise AssertionError("it has no JVM")

    def end(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)
        self.process.wait(60)


def await_claims(scheduled: ScheduledNamespace) -> None:
    """Wait until all claims have expired."""
    catalog = open_catalog(scheduled.config, scheduled.warehouse)
    wait_until(lambda: not active_runners(catalog, datetime.now(UTC)), seconds=60)


def next_run(scheduled: ScheduledNamespace, **more: Any) -> MaintenanceOutcome:
    """Run maintenance once the claims of the previous runner have expired."""
    await_claims(scheduled)
    return scheduled.maintenance(**more).run()


def rows(scheduled: ScheduledNamespace, table: str) -> list[int]:
    scheduled.spark.catalog.refreshTable(table)
    return sorted(row.n for row in scheduled.spark.table(table).collect())


@pytest.mark.timeout(120 + 120 * KILLS)
def test_after_a_kill_the_next_run_finishes(scheduled: ScheduledNamespace, tmp_path: Path) -> None:
    tables = [scheduled.table(f"t{number}", files=FILES) for number in range(TABLES)]
    chance = random.Random(7)
    for _ in range(KILLS):
        await_claims(scheduled)
        runner = MaintainProcess(scheduled, tmp_path)
        try:
            runner.done(chance.randrange(1, 4))
        finally:
            runner.end(signal.SIGKILL)
        for table in tables:
            scheduled.spark.sql(f"INSERT INTO {table} VALUES (-1)")
    outcome = next_run(scheduled)
    assert outcome.error() is None
    open_runs = [run for run in scheduled.list_recorded_runs() if not run.state.has_ended]
    assert open_runs == [], "runs of the dead runner are closed"
    lost = [run for run in scheduled.list_recorded_runs() if "died" in run.reason]
    assert lost, "and reported as lost"
    assert {run.state for run in lost} <= {RunState.FAILED, RunState.CANCELLED}
    for table in tables:
        assert rows(scheduled, table) == [*[-1] * KILLS, *range(FILES)]
        # By the last runner, or by one that died before it reported it.
        (files,) = scheduled.spark.sql(f"SELECT count(*) FROM {table}.files").collect()[0]
        assert files < CompactionPolicy().min_input_files, "compacted"


@pytest.mark.skipif(not FULL, reason="starts its own JVM: test-all")
@pytest.mark.parametrize("wish", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_finishes_running_jobs_and_releases_the_lease(
    scheduled: ScheduledNamespace, tmp_path: Path, wish: signal.Signals
) -> None:
    tables = [scheduled.table(f"t{number}", files=FILES) for number in range(TABLES)]
    runner = MaintainProcess(scheduled, tmp_path)
    runner.done(1)
    runner.process.send_signal(wish)
    code, error_text = runner.wait()
    assert (code, "the process was asked to stop" in error_text) == (14, True), error_text
    assert "Traceback" not in error_text
    assert active_runners(open_catalog(scheduled.config, "results"), datetime.now(UTC)) == frozenset()
    assert {run.state for run in scheduled.list_recorded_runs()} <= {RunState.SUCCEEDED, RunState.CANCELLED}
    assert next_run(scheduled).error() is None
    for table in tables:
        assert rows(scheduled, table) == list(range(FILES))


@pytest.mark.skipif(not FULL, reason="starts its own JVM: test-all")
def test_death_of_spark_leaves_no_run_open(scheduled: ScheduledNamespace, tmp_path: Path) -> None:
    tables = [scheduled.table(f"t{number}", files=FILES) for number in range(TABLES)]
    runner = MaintainProcess(scheduled, tmp_path)
    runner.done(1)
    os.kill(runner.spark(), signal.SIGKILL)
    code, error_text = runner.wait()
    assert (code in {1, 12}, "Traceback" in error_text) == (True, False), error_text
    assert active_runners(open_catalog(scheduled.config, "results"), datetime.now(UTC)) == frozenset()
    recorded_runs = scheduled.list_recorded_runs()
    assert [run for run in recorded_runs if not run.state.has_ended] == []
    assert [run for run in recorded_runs if run.state in {RunState.FAILED, RunState.CANCELLED}]
    assert scheduled.maintenance().run().error() is None
    for table in tables:
        assert rows(scheduled, table) == list(range(FILES))


@pytest.mark.skipif(not FULL, reason="starts three JVMs: test-all")
@pytest.mark.timeout(900)
def test_table_that_runs_out_of_memory_delays_no_other(scheduled: ScheduledNamespace, tmp_path: Path) -> None:
    """Two JVMs with a small heap end during its compaction. The run replaces them, and does all other work."""
    tables = [scheduled.table(f"t{number}", files=FILES) for number in range(3)]
    _create_large_rows(scheduled, "a_killer")
    runner = MaintainProcess(
        scheduled, tmp_path, "--conf", "spark.driver.memory=600m", "--job", "compaction", "--job", "statistics"
    )
    code, error_text = runner.wait()
    assert (code, "Traceback" in error_text) == (12, False), error_text
    assert f"compaction of results.{scheduled.name}.a_killer" in error_text
    recorded_runs = scheduled.list_recorded_runs()
    kills = [run for run in recorded_runs if run.killed_runner]
    assert [run.is_suspect for run in kills if run.table.name == "a_killer"] == [False, True]
    assert {run.state for run in kills} == {RunState.FAILED}
    assert {run.table.name for run in kills if run.is_suspect} == {"a_killer"}, "the only cause"
    succeeded = {(run.table.name, run.job) for run in recorded_runs if run.state is RunState.SUCCEEDED}
    expected = {(table.rpartition(".")[2], job) for table in tables for job in ("compaction", "statistics")}
    assert expected <= succeeded
    for table in tables:
        assert rows(scheduled, table) == list(range(FILES))
    outcome = scheduled.maintenance(dry_run=True, jobs=("compaction",)).run()
    (decision,) = [
        decision
        for plan in outcome.plans
        for table in plan.tables
        for decision in table.decisions
        if table.facts.table.name == "a_killer"
    ]
    assert decision.verdict == "held"
    assert "failed 2 times in a row" in decision.reason


def _create_large_rows(scheduled: ScheduledNamespace, name: str) -> None:
    """Create a table whose rows fit into this process, and not into a small JVM."""
    catalog = open_catalog(scheduled.config, scheduled.warehouse)
    text = pa.schema([("text", pa.string())])
    table = catalog.create_table(f"{scheduled.name}.{name}", text)
    for _ in range(CompactionPolicy().min_input_files):
        table.append(pa.table({"text": ["x" * LARGE_ROW]}, schema=text))


@pytest.mark.skipif(not FULL, reason="starts two JVMs: test-all")
@pytest.mark.timeout(900)
def test_two_runners_share_a_night(scheduled: ScheduledNamespace, tmp_path: Path) -> None:
    tables, (first, second) = _start_two_runners(scheduled, tmp_path)
    for runner in (first, second):
        code, text = runner.wait()
        assert code == 0, text
    done = _list_compacted(scheduled, tables)
    assert len(done) == len(tables), "each table once"
    assert len({run.runner for run in done}) == 2, "by both"


@pytest.mark.skipif(not FULL, reason="starts two JVMs: test-all")
@pytest.mark.timeout(900)
def test_tables_of_a_killed_runner_are_done_in_the_same_night(scheduled: ScheduledNamespace, tmp_path: Path) -> None:
    tables, (first, second) = _start_two_runners(scheduled, tmp_path)
    first.done(1)
    first.end(signal.SIGKILL)
    code, text = second.wait()
    assert code == 0, text
    _list_compacted(scheduled, tables)


def _start_two_runners(
    scheduled: ScheduledNamespace, folder: Path
) -> tuple[list[str], tuple[MaintainProcess, MaintainProcess]]:
    """Create tables that need compaction, and start two runners."""
    tables = [scheduled.table(f"t{number:02d}", files=FILES) for number in range(10)]
    for name in ("first", "second"):
        (folder / name).mkdir()
    options = ("--job", "compaction", "--lease", "30s")
    return tables, (
        MaintainProcess(scheduled, folder / "first", *options),
        MaintainProcess(scheduled, folder / "second", *options),
    )


def _list_compacted(scheduled: ScheduledNamespace, tables: list[str]) -> list[RunRecord]:
    """Check that all tables are compacted, and return the runs that did it."""
    recorded_runs = scheduled.list_recorded_runs()
    done = [run for run in recorded_runs if run.state is RunState.SUCCEEDED]
    assert sorted({run.table.name for run in done}) == [table.rpartition(".")[2] for table in tables]
    assert [run for run in recorded_runs if not run.state.has_ended] == []
    for table in tables:
        assert rows(scheduled, table) == list(range(FILES))
        (files,) = scheduled.spark.sql(f"SELECT count(*) FROM {table}.files").collect()[0]
        assert files == 1, "compacted"
    return done


@pytest.mark.timeout(1200 if FULL else 240)
@pytest.mark.parametrize("seed", range(6 if FULL else 1))
def test_next_run_finishes_after_random_faults(
    create_table: Callable[..., Maintained], faulty: FaultyWarehouse, seed: int
) -> None:
    """Store and catalog fail for leases, records, plans and jobs."""
    names = [f"faults_{seed}_{number}" for number in range(3 if FULL else 1)]
    watches = [_create_aged_table(create_table, faulty, name) for name in names]
    before = [{ref: watch.history.rows(ref) for ref in watch.history.refs()} for watch in watches]
    scheduled = ScheduledNamespace(faulty.config, watches[0].history.table.spark, "maintained", "faulty")
    only, chance, hits, errors = re.compile(rf"faults_{seed}_.*"), random.Random(seed), list[str](), list[str]()
    now = datetime.now(UTC) + 30 * DAY
    for _ in range(5 if FULL else 1):
        store, catalog = random_faults(chance, SHARE, hits), random_faults(chance, SHARE, hits)
        with faulty.store.inject(store), faulty.catalog.inject(catalog):
            maintenance = scheduled.maintenance(table=only, clock=lambda at=now: at, lease_life=LEASE, record_every=0.5)
            try:
                outcome = maintenance.run()
            except LakewrightSparkError as error:
                errors.append(str(error))
            else:
                errors += [str(error)] if (error := outcome.error()) else []
        for watch in watches:
            watch.compare("maintain")
        now += 2 * DAY
    assert hits, "faults were injected"
    assert all(errors), "every failure has a reason"
    for _ in range(3 if FULL else 1):  # the first run unreferences files, the second finds them, the third deletes them
        assert next_run(scheduled, table=only, clock=lambda at=now: at).error() is None
        now += 8 * DAY
    assert [run for run in scheduled.list_recorded_runs() if not run.state.has_ended] == []
    for watch, rows_before in zip(watches, before, strict=True):
        watch.compare("maintain")
        assert {ref: watch.history.rows(ref) for ref in rows_before} == rows_before
        assert not FULL or watch.before.keys() == watch.referred, "files of failed runs are gone"


def _create_aged_table(create_table: Callable[..., Maintained], faulty: FaultyWarehouse, name: str) -> FileComparison:
    """Create a table with work for every job, and its own policies."""
    table = create_table(name, "(n int) USING iceberg", "faulty")
    policies = {
        "history": '{"versions": 2}',
        "orphan-files": '{"older_than_days": 1}',
        "staged-files": '{"older_than_days": 1}',
        "compaction": '{"min_input_files": 2}',
    }
    for policy, text in policies.items():
        PolicyTables(faulty.config, "faulty").set(table.table, policy, text)
    history = TableHistory(table, faulty.config)
    for number, step in enumerate(["append", "append", "overwrite", "tag", "branch", "append", "append", "fail"]):
        history.take(step, number)
    watch = FileComparison(history)
    watch.look()
    return watch
