"""Claims on a server: at most one holder of a table, and none after its last renewal expired."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fault_proxy import FaultInjectingProxy, unavailable
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError, LeaseHeldError, LeaseLostError, StoppedError
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler import runner_claims
from lakewright_spark.scheduler.claims import active_runners, read_claims, read_runners
from lakewright_spark.scheduler.heartbeat import Heartbeat
from lakewright_spark.scheduler.lease_table import LIFE, add_snapshot
from lakewright_spark.scheduler.restore import exclusive_access
from lakewright_spark.scheduler.runner_claims import RunnerClaims
from lakewright_spark.scheduler.supervisor import Control
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.table_identifier import TableIdentifier


class TestHeartbeat:
    """Renewals during the work, on a catalog that stops responding."""

    def test_blocked_renewal_ends_the_work_in_time(self, sandbox: Sandbox, tenant: CatalogConfig) -> None:
        life, silent, over = timedelta(seconds=12), FaultInjectingProxy(sandbox.lakekeeper.endpoint), threading.Event()

        def hang(line: str, passed_on: Callable[[], httpx.Response]) -> httpx.Response:
            over.wait(60)
            return passed_on()

        with serve(silent) as way:
            behind = tenant.model_copy(update={"uri": f"{way}/catalog"})
            hung = RunnerClaims(behind, "results", open_catalog(behind, "results"), "runner", life)
            other = RunnerClaims(tenant, "soft", open_catalog(tenant, "soft"), "runner", life)
            for holder in (hung, other):
                holder.register(datetime.now(UTC))
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
        assert "runner" not in active_runners(other.catalog, datetime.now(UTC)), "its claims are released"


TABLE = TableIdentifier("results", ("shop",), "orders")
UUID = "0c1b1f0e-6b62-4d0a-9f43-6a6f3c1f0a01"
OTHER = "0c1b1f0e-6b62-4d0a-9f43-6a6f3c1f0a02"


def claim(config: CatalogConfig, runner: str, **more: Any) -> TableClaim:
    table, uuid = more.pop("table", TABLE), more.pop("uuid", UUID)
    return TableClaim(config, table, uuid, open_catalog(config, "results"), runner, **more)


class TestTableClaim:
    """A job on one table beside others."""

    def test_jobs_on_one_table_exclude_each_other(self, tenant: CatalogConfig) -> None:
        first, second = claim(tenant, "first"), claim(tenant, "second")
        other = claim(tenant, "other", table=TableIdentifier("results", ("shop",), "items"), uuid=UUID[::-1])
        now = datetime.now(UTC)
        first.take(now)
        other.take(now)
        with pytest.raises(LeaseHeldError, match=r"table results\.shop\.orders is maintained by first") as error_info:
            second.take(now)
        assert error_info.value.exit_code == 13
        assert {"first", "other"} <= active_runners(first.catalog, now)
        first.release(now)
        second.take(now)
        with pytest.raises(LeaseLostError, match="took over"):
            first.renew(now)
        for holder in (second, other):
            holder.release(now)
        assert not {"first", "second", "other"} & active_runners(first.catalog, now)

    def test_claim_of_a_dead_job_expires(self, tenant: CatalogConfig) -> None:
        dead, heir, now = claim(tenant, "dead"), claim(tenant, "heir"), datetime.now(UTC)
        dead.take(now)
        heir.take(now + LIFE)
        with pytest.raises(LeaseLostError, match="took over"):
            dead.renew(now + LIFE)
        heir.release(now + LIFE)

    def test_claim_by_a_machine_whose_clock_is_behind(
        self, tenant: CatalogConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Renewals have the server's time, and Lakekeeper refuses snapshots that are a minute older than a change."""
        first, now = claim(tenant, "first"), datetime.now(UTC)
        first.take(now)
        first.renew(now)
        late = SimpleNamespace(time=lambda: time.time() - 120)
        monkeypatch.setattr("pyiceberg.table.snapshots.time", late)
        second = claim(tenant, "second", table=TableIdentifier("results", ("shop",), "items"), uuid=OTHER)
        second.take(now)
        for holder in (second, first):
            holder.release(now)

    def test_concurrent_claims_of_one_table(self, tenant: CatalogConfig) -> None:
        """One has the table, and all others are refused, in any order of commits."""
        now = datetime.now(UTC)
        runners = [RunnerClaims(tenant, "results", open_catalog(tenant, "results"), f"runner-{n}") for n in range(2)]
        for runner in runners:
            runner.register(now)
        claims = [claim(tenant, f"job-{number}", patience=timedelta(0)) for number in range(3)]
        ready = threading.Barrier(5)

        def take(one: RunnerClaims | TableClaim) -> bool:
            ready.wait()
            if isinstance(one, RunnerClaims):
                return bool(one.take([(UUID, TABLE)], 1, [], now).taken)
            try:
                one.take(now)
            except LeaseHeldError:
                return False
            return True

        with ThreadPoolExecutor(5) as pool:
            won = list(pool.map(take, [*runners, *claims]))
        try:
            assert won.count(True) == 1
        finally:
            for holder in (*claims, *runners):
                holder.release(now)


class TestFailedCommits:
    """Claims on a catalog that fails a commit, before or after it took effect."""

    @pytest.mark.parametrize("status", [503, 502], ids=["refused", "response lost"])
    def test_failed_commit_loses_no_claim(self, sandbox: Sandbox, tenant: CatalogConfig, status: int) -> None:
        """The failed commit takes `OTHER` and releases `UUID`. Renewals keep what the table has."""
        proxy, is_applied = FaultInjectingProxy(sandbox.lakekeeper.endpoint), status == 502
        items = TableIdentifier("results", ("shop",), "items")

        def fail(line: str, forward: Callable[[], httpx.Response]) -> httpx.Response:
            if not line.startswith("POST"):
                return forward()
            if is_applied:
                forward()
            return unavailable(status)

        with serve(proxy) as url:
            behind = tenant.model_copy(update={"uri": f"{url}/catalog"})
            claims = RunnerClaims(behind, "results", open_catalog(behind, "results"), "unlucky")
            now = datetime.now(UTC)
            claims.register(now)
            try:
                assert claims.take([(UUID, TABLE)], 1, [], now).taken == {UUID}
                with proxy.inject(fail), pytest.raises(LakewrightSparkError):
                    claims.take([(OTHER, items)], 1, [UUID], now)
                later = now + timedelta(minutes=1)
                claims.renew(later)
                rows = read_claims(claims.catalog.load_table(("ops", "maintenance_lease")).properties)
                ours = {uuid: row.expires_at for uuid, row in rows.items() if row.holder == "unlucky"}
                assert ours == {OTHER if is_applied else UUID: later + LIFE}
                assert claims.take([(OTHER, items)], 1, [UUID], later).taken == {OTHER}
                claims.renew(later)
            finally:
                claims.release(now)
        assert "unlucky" not in active_runners(open_catalog(tenant, "results"), now)

    def test_late_commit_is_reconciled(self, tenant: CatalogConfig, monkeypatch: pytest.MonkeyPatch) -> None:
        """A commit that timed out takes effect after a renewal has read the table."""
        claims, now = RunnerClaims(tenant, "results", open_catalog(tenant, "results"), "late"), datetime.now(UTC)
        claims.register(now)
        delayed: list[Callable[[], bool]] = []

        def time_out(*arguments: Any, **options: Any) -> bool:
            delayed.append(lambda: add_snapshot(*arguments, **options))
            raise TimeoutError("no response")

        try:
            with monkeypatch.context() as patch:
                patch.setattr(runner_claims, "add_snapshot", time_out)
                with pytest.raises(LakewrightSparkError):
                    claims.take([(UUID, TABLE)], 1, [], now)
            claims.renew(now)
            assert delayed[0](), "no snapshot was added meanwhile"
            later = now + timedelta(minutes=1)
            claims.renew(later)
            rows = read_claims(claims.catalog.load_table(("ops", "maintenance_lease")).properties)
            assert rows[UUID].expires_at == later + LIFE
        finally:
            claims.release(now)

    def test_dead_runner_without_claims_is_removed(self, tenant: CatalogConfig) -> None:
        catalog, now = open_catalog(tenant, "results"), datetime.now(UTC)
        RunnerClaims(tenant, "results", catalog, "idle").register(now - 2 * LIFE)
        claims = RunnerClaims(tenant, "results", catalog, "heir")
        claims.register(now)
        assert claims.forget_dead() == {}
        assert "idle" not in read_runners(catalog.load_table(("ops", "maintenance_lease")).properties)
        claims.release(now)


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
            assert "thief" in active_runners(thief.catalog, late), "it is not given back"
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
        assert "us" not in active_runners(open_catalog(tenant, "results"), datetime.now(UTC))

    def test_claim_is_released_after_the_work(self, tenant: CatalogConfig) -> None:
        ways = {"control": Control(), "cancel": pytest.fail, "warn": pytest.fail}
        with exclusive_access(tenant, TABLE, UUID, "us", **ways) as check:
            check()
            with pytest.raises(LeaseHeldError, match="maintained by us"):
                claim(tenant, "other").take(datetime.now(UTC))
        assert "us" not in active_runners(open_catalog(tenant, "results"), datetime.now(UTC))


def wait_until(condition: Callable[[], bool]) -> None:
    tick, give_up = threading.Event(), time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        tick.wait(0.02)
