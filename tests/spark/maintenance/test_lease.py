"""The lease on a warehouse: at most one holder, and none after its last renewal expired."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pyarrow as pa
import pytest
from fault_proxy import FaultInjectingProxy
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LeaseHeldError, LeaseLostError, StoppedError
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler import lease
from lakewright_spark.scheduler.claims import ClaimedTables
from lakewright_spark.scheduler.lease import LIFE, Heartbeat, Lease, read_lease
from lakewright_spark.scheduler.restore import exclusive_access
from lakewright_spark.scheduler.supervisor import Control
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.table_identifier import TableIdentifier

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Runners:
    """Creates runners on warehouse `results` by name."""

    def __init__(self, config: CatalogConfig) -> None:
        self.config, self.created = config, list[Lease]()

    def __call__(self, runner: str) -> Lease:
        self.created.append(Lease(self.config, "results", open_catalog(self.config, "results"), runner))
        return self.created[-1]


@pytest.fixture
def runner(catalog_config: CatalogConfig) -> Iterator[Runners]:
    runners = Runners(catalog_config)
    yield runners
    for runner in runners.created:
        runner.release(NOW)


def test_refusal_names_holder_and_expiry(runner: Runners) -> None:
    first, second = runner("host-a/7/aa"), runner("host-b/8/bb")
    first.take(NOW)
    with pytest.raises(
        LeaseHeldError, match=r"results is maintained by host-a/7/aa .* 2026-01-10 12:03:00 UTC"
    ) as error_info:
        second.take(NOW + SECOND)
    assert error_info.value.exit_code == 13
    first.renew(NOW + LIFE - SECOND)
    with pytest.raises(LeaseHeldError, match="12:05:59"):
        second.take(NOW + LIFE)
    first.release(NOW + LIFE)
    before = second.take(NOW + LIFE + SECOND)
    assert before is not None
    assert before.holder is None
    row = read_lease(second.catalog)
    assert row is not None
    assert (row.warehouse, row.holder, row.expires_at) == ("results", "host-b/8/bb", NOW + 2 * LIFE + SECOND)


def test_expired_lease_is_lost(runner: Runners) -> None:
    dead, heir = runner("dead"), runner("heir")
    dead.take(NOW)
    before = heir.take(NOW + LIFE)
    assert before is not None
    assert before.holder == "dead"
    with pytest.raises(LeaseLostError, match="took over"):
        dead.renew(NOW + LIFE + SECOND)
    dead.release(NOW + LIFE + SECOND)
    row = read_lease(heir.catalog)
    assert row is not None
    assert row.holder == "heir", "the lease of another runner is not released"


def test_concurrent_acquisitions(runner: Runners) -> None:
    runners = [runner(f"runner-{number}") for number in range(4)]

    def take_if_free(contender: Lease) -> bool:
        try:
            contender.take(NOW)
        except LeaseHeldError:
            return False
        return True

    with ThreadPoolExecutor(len(runners)) as pool:
        won = list(pool.map(take_if_free, runners))
    assert won.count(True) == 1
    row = read_lease(runners[0].catalog)
    assert row is not None
    assert row.holder == runners[won.index(True)].runner


def test_unrelated_commit_keeps_the_lease(runner: Runners) -> None:
    holder = runner("holder")
    holder.take(NOW)
    table = holder.catalog.load_table(("ops", "maintenance_lease"))
    table.append(table.schema().as_arrow().empty_table())
    holder.renew(NOW + SECOND)
    row = read_lease(holder.catalog)
    assert row is not None
    assert (row.holder, row.heartbeat_at) == ("holder", NOW + SECOND)


def test_run_costs_one_snapshot(runner: Runners) -> None:
    holder = runner("holder")

    def snapshots() -> int:
        return len(holder.catalog.load_table(("ops", "maintenance_lease")).metadata.snapshots)

    holder.take(NOW)
    before = snapshots()
    for number in range(1, 4):
        holder.renew(NOW + number * SECOND)
    holder.release(NOW + 4 * SECOND)
    assert snapshots() == before
    holder.take(NOW + 5 * SECOND)
    assert snapshots() == before + 1
    assert holder.catalog.load_table(("ops", "maintenance_lease")).scan().to_arrow().num_rows == 0, "and no file"


def test_renewal_of_a_lost_lease_fails(runner: Runners) -> None:
    """Another runner takes the lease between the holder's read and its commit."""
    slow, heir = runner("slow"), runner("heir")
    slow.take(NOW)
    table = slow.catalog.load_table(("ops", "maintenance_lease"))
    heir.take(NOW + LIFE)
    assert not lease.set_properties(table, {lease.PROPERTY: table.properties[lease.PROPERTY]})
    row = read_lease(heir.catalog)
    assert row is not None
    assert row.holder == "heir"


def test_lease_of_an_earlier_release(runner: Runners) -> None:
    heir = runner("heir")
    heir.take(NOW)
    heir.release(NOW)
    table = heir.catalog.load_table(("ops", "maintenance_lease"))
    times = {"since": NOW, "heartbeat_at": NOW + SECOND, "expires_at": NOW + LIFE}
    row = {"warehouse": "results", "holder": "earlier", **times}
    table.overwrite(pa.Table.from_pylist([row], table.schema().as_arrow()))
    with pytest.raises(LeaseHeldError, match="maintained by earlier"):
        heir.take(NOW + SECOND)
    heir.take(NOW + LIFE)
    heir.catalog.load_table(("ops", "maintenance_lease")).delete()


class TestHeartbeat:
    """Renewals during the work, on a catalog that stops responding."""

    def test_blocked_renewal_ends_the_work_in_time(self, sandbox: Sandbox, tenant: CatalogConfig) -> None:
        life, silent, over = timedelta(seconds=12), FaultInjectingProxy(sandbox.lakekeeper.endpoint), threading.Event()

        def hang(line: str, passed_on: Callable[[], httpx.Response]) -> httpx.Response:
            over.wait(60)
            return passed_on()

        with serve(silent) as way:
            behind = tenant.model_copy(update={"uri": f"{way}/catalog"})
            hung = Lease(behind, "results", open_catalog(behind, "results"), "runner", life)
            other = Lease(tenant, "soft", open_catalog(tenant, "soft"), "runner", life)
            for holder in (hung, other):
                holder.take(datetime.now(UTC))
            first, control = other.expires_at, Control()
            heartbeat = Heartbeat([hung, other], control)
            with silent.inject(hang):
                heartbeat.start()
                wait_until(lambda: "results" in control.lost)
                assert datetime.now(UTC) < hung.expires_at, "while nobody else can have it"
                assert "no response to the renewal" in control.lost["results"]
                wait_until(lambda: other.expires_at > first + life / 2)
                over.set()
                assert heartbeat.close() == []
        assert "soft" not in control.lost, "no renewal waits for another renewal"
        row = read_lease(other.catalog)
        assert row is not None
        assert row.holder is None, "it is given back"
        heir = Lease(tenant, "results", open_catalog(tenant, "results"), "heir")
        heir.take(hung.expires_at + life)
        heir.release(hung.expires_at + life)


TABLE = TableIdentifier("results", ("shop",), "orders")
UUID = "0c1b1f0e-6b62-4d0a-9f43-6a6f3c1f0a01"


def claim(config: CatalogConfig, runner: str, **more: Any) -> TableClaim:
    table, uuid = more.pop("table", TABLE), more.pop("uuid", UUID)
    return TableClaim(config, table, uuid, open_catalog(config, "results"), runner, **more)


class TestTableClaim:
    """A job on one table while a runner works on the warehouse."""

    def test_jobs_on_one_table_exclude_each_other(self, tenant: CatalogConfig) -> None:
        first, second = claim(tenant, "first"), claim(tenant, "second")
        other = claim(tenant, "other", table=TableIdentifier("results", ("shop",), "items"), uuid=UUID[::-1])
        now = datetime.now(UTC)
        first.take(now)
        other.take(now)
        with pytest.raises(LeaseHeldError, match=r"table results\.shop\.orders is maintained by first") as error_info:
            second.take(now)
        assert error_info.value.exit_code == 13
        assert {"first", "other"} <= lease.active_runners(first.catalog, now)
        first.release(now)
        second.take(now)
        with pytest.raises(LeaseLostError, match="took over"):
            first.renew(now)
        for holder in (second, other):
            holder.release(now)
        assert not {"first", "second", "other"} & lease.active_runners(first.catalog, now)

    def test_runner_without_claims_refuses_jobs(self, tenant: CatalogConfig) -> None:
        """Runners of earlier releases know no claims."""
        runner, job = Lease(tenant, "results", open_catalog(tenant, "results"), "old"), claim(tenant, "job")
        now = datetime.now(UTC)
        runner.take(now)
        with pytest.raises(LeaseHeldError, match=r"results is maintained by old .* did not give up table"):
            job.take(now)
        assert "job" not in lease.active_runners(job.catalog, now), "nothing is left behind"
        runner.release(now)

    def test_runner_releases_a_table_after_its_job(self, tenant: CatalogConfig) -> None:
        tables, control = ClaimedTables(), Control()
        catalog = open_catalog(tenant, "results")
        runner = Lease(tenant, "results", catalog, "runner", timedelta(seconds=12), claimed=tables)
        runner.take(datetime.now(UTC))
        assert tables.begin(UUID) is None, "the runner is at work on the table"
        heartbeat = Heartbeat([runner], control)
        heartbeat.start()
        job, is_taken = claim(tenant, "job"), threading.Event()

        def take() -> None:
            job.take(datetime.now(UTC))
            is_taken.set()

        thread = threading.Thread(target=take)
        thread.start()
        try:
            wait_until(lambda: tables.claimant(UUID) == "job")
            assert not is_taken.is_set(), "two would work on the table"
            tables.end(UUID)
            wait_until(is_taken.is_set)
            assert tables.begin(UUID) == "job", "no job of the runner begins on it"
            assert tables.begin("another") is None
            assert control.lost == {}
        finally:
            tables.end(UUID)
            thread.join()
            assert heartbeat.close() == []
            job.release(datetime.now(UTC))

    def test_later_runner_leaves_claimed_tables(self, tenant: CatalogConfig) -> None:
        job, tables, now = claim(tenant, "job"), ClaimedTables(), datetime.now(UTC)
        job.take(now)
        runner = Lease(tenant, "results", open_catalog(tenant, "results"), "runner", claimed=tables)
        runner.take(now)
        try:
            assert tables.begin(UUID) == "job"
            row = read_lease(runner.catalog)
            assert row is not None
            assert (row.yields, row.yielded) == (True, (UUID,))
        finally:
            runner.release(now)
            job.release(now)

    def test_claim_of_a_dead_job_expires(self, tenant: CatalogConfig) -> None:
        dead, heir, now = claim(tenant, "dead"), claim(tenant, "heir"), datetime.now(UTC)
        dead.take(now)
        heir.take(now + LIFE)
        with pytest.raises(LeaseLostError, match="took over"):
            dead.renew(now + LIFE)
        heir.release(now + LIFE)

    def test_concurrent_claims_of_one_table(self, tenant: CatalogConfig) -> None:
        """Each has the table alone or is refused, in any order of commits."""
        now, tables = datetime.now(UTC), ClaimedTables()
        runner = Lease(tenant, "results", open_catalog(tenant, "results"), "runner", claimed=tables)
        claims = [claim(tenant, f"job-{number}", patience=timedelta(0)) for number in range(4)]
        ready = threading.Barrier(5)

        def take(one: Lease | TableClaim) -> str | None:
            ready.wait()
            try:
                one.take(now)
            except LeaseHeldError:
                return None
            return one.runner

        with ThreadPoolExecutor(5) as pool:
            won = {name for name in pool.map(take, [runner, *claims]) if name}
        try:
            jobs = won - {"runner"}
            assert len(jobs) <= 1
            assert "runner" in won, "a claim keeps no runner from the other tables"
            at_work = jobs if tables.begin(UUID) else {*jobs, "runner"}
            assert len(at_work) == 1
        finally:
            for holder in (*claims, runner):
                holder.release(now)


class TestExclusive:
    """Work other than a job."""

    def test_lost_claim_cancels_the_work(self, tenant: CatalogConfig) -> None:
        cancelled, life, control = threading.Event(), timedelta(seconds=3), Control()
        thief = claim(tenant, "thief")
        late = datetime.now(UTC) + timedelta(hours=1)
        ways = {"control": control, "cancel": cancelled.set, "warn": pytest.fail, "life": life}

        def work() -> None:
            with exclusive_access(tenant, TABLE, UUID, "us", **ways):
                thief.take(late)
                assert cancelled.wait(60)
                raise InterruptedError("as work does that is cancelled")

        try:
            with pytest.raises(LeaseLostError, match="the work was cancelled"):
                work()
            assert "thief" in lease.active_runners(thief.catalog, late), "it is not given back"
        finally:
            thief.release(late)

    def test_stop_request_cancels_the_work(self, tenant: CatalogConfig) -> None:
        cancelled, control = threading.Event(), Control()

        def work() -> None:
            with exclusive_access(tenant, TABLE, UUID, "us", control=control, cancel=cancelled.set, warn=pytest.fail):
                control.ended.set()
                assert cancelled.wait(60)
                raise InterruptedError("as work does that is cancelled")

        with pytest.raises(StoppedError, match="asked to stop"):
            work()
        assert "us" not in lease.active_runners(open_catalog(tenant, "results"), datetime.now(UTC))

    def test_claim_is_released_after_the_work(self, tenant: CatalogConfig) -> None:
        ways = {"control": Control(), "cancel": pytest.fail, "warn": pytest.fail}
        with exclusive_access(tenant, TABLE, UUID, "us", **ways) as check:
            check()
            with pytest.raises(LeaseHeldError, match="maintained by us"):
                claim(tenant, "other").take(datetime.now(UTC))
        assert "us" not in lease.active_runners(open_catalog(tenant, "results"), datetime.now(UTC))


def wait_until(condition: Callable[[], bool]) -> None:
    tick, give_up = threading.Event(), time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        tick.wait(0.02)
