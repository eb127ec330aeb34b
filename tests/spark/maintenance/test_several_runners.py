"""Several runners of one warehouse, each in its own process, on a server. Their jobs sleep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.claims import active_runners, find_dead_claims, read_claims
from lakewright_spark.scheduler.lease_table import NAME
from lakewright_spark.scheduler.run_log import job_runs
from pyiceberg.catalog import Catalog
from waiting import wait_until

from tests.spark.maintenance import sleeping_runner
from tests.spark.maintenance.sleeping_runner import LEASE, PARALLEL

RUNNERS, TABLES, JOB_SECONDS = 3, 24, 2.0
SLACK = 2 * JOB_SECONDS + 4
"""Seconds until a runner has a free worker and looks at the claims of other runners, on a busy machine."""


class SleepingRunner:
    """A process whose output is read with the time of each line."""

    def __init__(self, config: Path, namespace: str) -> None:
        program = [sys.executable, sleeping_runner.__file__, str(config), namespace, str(JOB_SECONDS)]
        self.process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        self.began: dict[str, float] = {}
        self.done: dict[str, float] = {}
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            table, state = line.split()
            times = {"RUNNING": self.began, "SUCCEEDED": self.done}.get(state)
            if times is not None:
                times[table] = time.monotonic()

    def kill(self) -> float:
        """Kill the process, and return the time."""
        os.kill(self.process.pid, signal.SIGKILL)
        killed = time.monotonic()
        self.process.wait(30)
        self.thread.join(30)
        return killed


@pytest.fixture
def namespace(tenant: CatalogConfig) -> Iterator[str]:
    """A namespace with tables for which one job is due."""
    catalog, name = open_catalog(tenant, "results"), f"night_{uuid.uuid4().hex[:8]}"
    catalog.create_namespace(name)
    names = [f"{name}.t{number:02d}" for number in range(TABLES)]
    for table in names:
        catalog.create_table(table, pa.schema([("n", pa.int64())]))
    yield name
    for table in names:
        catalog.drop_table(table)
    catalog.drop_namespace(name)


@pytest.fixture
def runners(tenant: CatalogConfig, namespace: str, tmp_path: Path) -> Iterator[list[SleepingRunner]]:
    config = tmp_path / "catalog.json"
    config.write_text(tenant.select_warehouses(["results"]).to_json())
    started = [SleepingRunner(config, namespace) for _ in range(RUNNERS)]
    yield started
    for runner in started:
        runner.process.kill()
        runner.process.wait()


@pytest.mark.long
@pytest.mark.timeout(180)
def test_no_table_waits_longer_than_a_lease_after_a_kill(
    tenant: CatalogConfig, namespace: str, runners: list[SleepingRunner]
) -> None:
    """The other runners take over the tables of a killed runner while they have other work, too."""
    victim, *live_runners = runners
    wait_until(lambda: all(runner.began for runner in runners) and bool(victim.done), seconds=60)
    killed = victim.kill()
    catalog = open_catalog(tenant, "results")
    claims = _read_holders(catalog)
    (dead,) = {holder for holder in claims.values() if f"/{victim.process.pid}/" in holder}
    waiting_tables = {table for table, holder in claims.items() if holder == dead}
    assert len(waiting_tables) >= PARALLEL, "the tables that it worked on"
    wait_until(lambda: dead not in _read_holders(catalog).values(), seconds=60)
    assert time.monotonic() - killed <= LEASE.total_seconds() + SLACK, f"{waiting_tables} had no runner"
    for runner in live_runners:
        assert runner.process.wait(90) == 0
        runner.thread.join(30)
    done = Counter(table for runner in runners for table in runner.done)
    assert len(done) == TABLES, "each table has been maintained"
    unrecorded = {table for table, count in done.items() if count > 1}
    assert unrecorded <= victim.done.keys(), "only what the dead runner did not record is repeated"
    assert find_dead_claims(catalog, datetime.now(UTC)) == {}
    assert not {run.runner for run in _list_runs(tenant, namespace)} & active_runners(catalog, datetime.now(UTC))
    assert [run for run in _list_runs(tenant, namespace) if not run.state.has_ended] == []


def _read_holders(catalog: Catalog) -> dict[str, str]:
    """Return the holders of claims by table, including dead holders."""
    rows = read_claims(catalog.load_table(("ops", NAME)).properties).values()
    return {row.table: row.holder for row in rows}


def _list_runs(tenant: CatalogConfig, namespace: str) -> list[job_runs.RunRecord]:
    runs = job_runs.list_runs(open_catalog(tenant, "results"), "results")
    return [run for run in runs if run.table.namespace == (namespace,)]
