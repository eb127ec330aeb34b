"""Requests to the catalog: which tables jobs and the heartbeat load, with and without credentials."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fault_proxy import Fault, FaultInjectingProxy
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.maintenance import job_runner
from lakewright_spark.maintenance.table import iceberg
from lakewright_spark.maintenance.table.iceberg import SharedTable
from lakewright_spark.policies.model import JOBS, JobName, TablePolicies
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler import work_queue
from lakewright_spark.scheduler.heartbeat import RENEWALS
from lakewright_spark.scheduler.lease_table import LIFE
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.completed_runs import CompletedRuns
from lakewright_spark.scheduler.run_log.records import RunRecord
from lakewright_spark.scheduler.runner_claims import RunnerClaims
from lakewright_spark.scheduler.table_worker import TableWork
from lakewright_spark.scheduler.work_queue import WorkQueue
from lakewright_spark.table_identifier import TableIdentifier
from pyspark.sql import SparkSession

from tests.spark.maintenance.conftest import FaultyWarehouse, Maintained
from tests.spark.maintenance.scheduling import ScheduledNamespace

pytestmark = pytest.mark.spark
NONE, VENDED = "client-managed", "vended-credentials"


@dataclass
class Loads:
    """Requests for tables."""

    complete: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Responses with metadata, by name of the table, and by the credentials that the request asks for."""
    unchanged: Counter[str] = field(default_factory=Counter[str])
    """Responses without metadata, since it did not change, by name of the table."""
    renewals: Counter[str] = field(default_factory=Counter[str])
    """Requests for new credentials of a loaded table, by its name."""


def forward_request(_: str, forward: Callable[[], httpx.Response]) -> httpx.Response:
    return forward()


@contextmanager
def count_loads(proxy: FaultInjectingProxy, fault: Fault = forward_request) -> Iterator[Loads]:
    """Count loads. Yield counts that are complete after the block."""
    loads = Loads()
    with proxy.inject(fault):
        yield loads
    for exchange in proxy.exchanges:
        method, path = exchange.line.split()
        if method != "GET" or "/tables/" not in path:
            continue
        name, _, subresource = path.rpartition("/tables/")[2].partition("?")[0].partition("/")
        if subresource == "credentials":
            loads.renewals[name] += 1
        elif exchange.status == 304:
            loads.unchanged[name] += 1
        elif exchange.status == 200:
            loads.complete.setdefault(name, Counter())[exchange.delegation] += 1


def test_heartbeat_asks_for_no_credentials(faulty: FaultyWarehouse) -> None:
    claims = RunnerClaims(faulty.config, "faulty", open_catalog(faulty.config, "faulty"), "counted")
    claims.register(datetime.now(UTC))
    with count_loads(faulty.catalog) as loads:
        for _ in range(3):
            claims.renew(datetime.now(UTC))
    claims.release(datetime.now(UTC))
    assert loads.complete == {"maintenance_lease": {NONE: 3}}
    assert timedelta(hours=1) / (LIFE / RENEWALS) <= 120


def test_wait_for_another_runner_costs_few_loads(
    faulty: FaultyWarehouse, catalog_config: CatalogConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A simulated hour in which another runner works on the last table: looks without credentials."""
    catalog, table, clock = open_catalog(faulty.config, "faulty"), TableIdentifier("faulty", ("a",), "long"), [0.0]
    uncounted = faulty.config.model_copy(update={"uri": catalog_config.uri})
    other = RunnerClaims(uncounted, "faulty", open_catalog(uncounted, "faulty"), "busy")
    waiting = RunnerClaims(faulty.config, "faulty", catalog, "waiting")
    for claims in (other, waiting):
        claims.register(datetime.now(UTC))
    assert other.take([("uuid-long", table)], 1, [], datetime.now(UTC)).taken
    run = RunRecord(
        runner="waiting", table=table, table_uuid="uuid-long", job="compaction", queued_at=datetime.now(UTC)
    )
    job_runs.append(other.catalog, [run], datetime.now(UTC))
    ended = {"faulty": CompletedRuns(faulty.config, "faulty", catalog)}
    queue = WorkQueue([TableWork(table, TablePolicies(), (run,))], {"faulty": waiting}, ended=ended)
    monkeypatch.setattr(work_queue, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with count_loads(faulty.catalog) as loads:
        while clock[0] < 3600:
            clock[0] += work_queue.POLL_SECONDS
            if clock[0] % 300 == 0:
                other.renew(datetime.now(UTC))
            queue._claim_next("faulty")
    assert loads.complete["maintenance_lease"][VENDED] == 1, "the first attempt"
    assert loads.complete["maintenance_lease"][NONE] >= 12, "each renewal changes the metadata"
    assert loads.complete["maintenance_lease"][NONE] + loads.unchanged["maintenance_lease"] <= 125
    assert 1 <= sum(loads.complete["job_runs"].values()) <= 2
    assert not queue.is_done
    other.release(datetime.now(UTC))
    clock[0] += work_queue.MAX_LOOK_SECONDS
    queue._claim_next("faulty")
    assert queue.take(), "the table is free again, and no runner has completed the run"
    waiting.release(datetime.now(UTC))


POLICIES: dict[str, Any] = {
    "compaction": {"min_input_files": 2},
    "history": {"versions": 2},
    "retention": {"column": "day", "keep": 40, "unit": "day"},
    "refs": {"audit": {"type": "tag"}},
    "engine_statistics": {"columns": "all"},
}


@pytest.fixture
def loaded_table(faulty: FaultyWarehouse, spark: SparkSession, sandbox: Sandbox) -> Iterator[Maintained]:
    """Return a table in `faulty` on which each job has work, with queries of the table's metadata tables."""
    table = Maintained(spark, sandbox, TableIdentifier("faulty", ("maintained",), "loads"))
    table.do(
        "CREATE TABLE THIS (id bigint, day date) PARTITIONED BY (day) TBLPROPERTIES ("
        "'write.delete.mode' = 'merge-on-read', 'write.distribution-mode' = 'none')"
    )
    for day in ("current_date()", "current_date()", "current_date() - 300"):
        table.do(f"INSERT INTO THIS SELECT /*+ COALESCE(1) */ id, {day} FROM range(10)")
    table.do("DELETE FROM THIS WHERE id = 3 AND day = current_date()")
    table.create_lost_file("lost.parquet")
    table.set_policies(**POLICIES)
    yield table
    spark.sql(f"DROP TABLE {table.sql}")


@pytest.mark.long
def test_jobs_share_a_load_with_credentials(
    faulty: FaultyWarehouse, loaded_table: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata is read again only if another client changed it, even before each commit."""
    monkeypatch.setattr(iceberg, "REFRESH_AFTER_SECONDS", 0)
    table, loads = loaded_table, dict[JobName, Loads]()
    shared = SharedTable(table.spark, table.table)
    for job in JOBS:
        now = table.now + timedelta(days=10 * len(loads))
        with count_loads(faulty.catalog) as loads[job]:
            done: Any = job_runner.run_job(
                job, table.spark, table.table, table.policy, dry_run=False, now=now, shared=shared
            )
        assert done.state == "SUCCEEDED"
        assert done.reason == "" or job == "retention"
        assert loads[job].unchanged["loads"] > 0, f"{job} checks whether the table changed"
        assert loads[job].renewals == Counter()
    complete = {job: job_loads.complete.get("loads", Counter()) for job, job_loads in loads.items()}
    assert complete == {job: Counter({VENDED: 1} if job == JOBS[0] else {}) for job in JOBS}
    ops = Counter[str]()
    for job_loads in loads.values():
        ops.update({name: counts[VENDED] for name, counts in job_loads.complete.items() if name != "loads"})
    assert max(ops.values()) <= 1, "the jobs share the tables of `ops` too"


def test_shared_table_reads_changes_without_credentials(
    faulty: FaultyWarehouse, loaded_table: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg, "REFRESH_AFTER_SECONDS", 0)
    table = loaded_table
    shared = SharedTable(table.spark, table.table)
    before = shared.open().java.currentSnapshot().snapshotId()
    other = open_catalog(faulty.config, "faulty").load_table(("maintained", "loads"))
    other.manage_snapshots().rollback_to_snapshot(other.snapshots()[0].snapshot_id).commit()
    with count_loads(faulty.catalog) as loads:
        snapshot = shared.open().java.currentSnapshot().snapshotId()
        shared.open()
    assert snapshot == other.snapshots()[0].snapshot_id != before
    assert loads.complete == {"loads": {NONE: 1}}
    assert loads.unchanged == {"loads": 1}


def test_shared_table_renews_credentials_before_they_expire(faulty: FaultyWarehouse, loaded_table: Maintained) -> None:
    expiry = str(int(datetime.now(UTC).timestamp() + 60) * 1000)

    def expire_soon(line: str, forward: Callable[[], httpx.Response]) -> httpx.Response:
        response = forward()
        if not (line.startswith("GET") and "/tables/loads?" in line) or response.status_code != 200:
            return response
        body = response.json()
        for entry in body["storage-credentials"]:
            entry["config"] |= {"s3.session-token-expires-at-ms": expiry, "expiration-time": expiry}
        return httpx.Response(200, json=body, headers={"etag": response.headers["etag"]})

    table = loaded_table
    with count_loads(faulty.catalog, expire_soon) as loads:
        shared = SharedTable(table.spark, table.table)
        done: Any = job_runner.run_job(
            "compaction", table.spark, table.table, table.policy, dry_run=False, now=table.now, shared=shared
        )
    assert done.rewritten == 2
    assert loads.complete["loads"] == {VENDED: 1}
    assert loads.renewals["loads"] > 0


def test_closed_table_is_loaded_again(faulty: FaultyWarehouse, loaded_table: Maintained) -> None:
    """A night of 10,000 tables would keep the metadata of each in memory."""
    table = loaded_table
    with count_loads(faulty.catalog) as loads:
        for _ in range(2):
            shared = SharedTable(table.spark, table.table)
            shared.open()
            shared.close()
    assert loads.complete["loads"][VENDED] + loads.unchanged["loads"] == 2


def test_night_loads_an_unchanged_table_once(faulty: FaultyWarehouse, loaded_table: Maintained) -> None:
    """The plan loads it without credentials, and its jobs with credentials. The next night has no work on it."""
    loaded_table.do("DELETE FROM THIS WHERE id < 5")  # enough for compaction
    started = loaded_table.now
    nights: list[Loads] = []
    runs: list[int] = []
    for number in range(2):
        night = ScheduledNamespace(faulty.config, loaded_table.spark, "maintained", "faulty").maintenance(
            jobs=("compaction", "rewrite-manifests", "statistics"),
            table=re.compile("loads"),
            clock=lambda now=started + timedelta(days=number): now,
        )
        with count_loads(faulty.catalog) as loads:
            runs.append(len(night.run().runs))
        nights.append(loads)
    assert runs == [2, 0], "compaction and statistics; nothing"
    assert [night.complete["loads"] for night in nights] == [{NONE: 1, VENDED: 1}, {NONE: 1}]


@contextmanager
def count_manifest_reads(proxy: FaultInjectingProxy) -> Iterator[Counter[str]]:
    """Count the reads of each manifest. Yield counts that are complete after the block."""
    reads = Counter[str]()
    with proxy.inject(forward_request):
        yield reads
    for line in proxy.lines:
        method, path = line.split()
        name = path.partition("?")[0].rpartition("/")[2]
        # Iceberg names manifests UUID-mNUMBER.avro, and manifest lists snap-ID-ATTEMPT-UUID.avro.
        if method == "GET" and re.search(r"-m\d+\.avro$", name):
            reads[name] += 1


@pytest.fixture
def create_appended(
    faulty: FaultyWarehouse, spark: SparkSession, sandbox: Sandbox
) -> Iterator[Callable[[str], Maintained]]:
    """Return a function that creates a table in `faulty` with three data files, each in a manifest of its own."""
    tables: list[Maintained] = []

    def create(name: str) -> Maintained:
        table = Maintained(spark, sandbox, TableIdentifier("faulty", ("maintained",), name))
        table.do("CREATE TABLE THIS (id bigint) USING iceberg")
        tables.append(table)
        for _ in range(3):
            table.do("INSERT INTO THIS SELECT /*+ COALESCE(1) */ id FROM range(10)")
        return table

    yield create
    for table in tables:
        table.do("DROP TABLE THIS")


def test_compaction_reads_each_manifest_once_to_plan(
    faulty: FaultyWarehouse, create_appended: Callable[[str], Maintained]
) -> None:
    """The commit reads the manifests of replaced files again, as it does after the bare procedure."""
    table, bare_table = create_appended("planned"), create_appended("planned_bare")
    with count_manifest_reads(faulty.store) as reads_to_plan:
        assert table.job("compaction").rewritten == 0, "three files are not enough"
    assert sorted(reads_to_plan.values()) == [1, 1, 1]
    table.set_policies(compaction={"min_input_files": 2})
    with count_manifest_reads(faulty.store) as reads:
        assert table.job("compaction").rewritten == 3
    bare_options = "map('min-input-files', '2', 'partial-progress.enabled', 'true')"
    with count_manifest_reads(faulty.store) as bare_reads:
        bare_table.do(
            f"CALL faulty.system.rewrite_data_files(table => {bare_table.table.argument}, options => {bare_options})"
        ).collect()
    assert sorted(reads.values()) == sorted(bare_reads.values())
    assert len(reads_to_plan.keys() & reads.keys()) == 3
