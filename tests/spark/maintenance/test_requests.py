"""Requests to the catalog of a night: loads of a table with and without credentials, and the heartbeat."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from fault_proxy import FaultInjectingProxy
from lakewright_spark.maintenance.table import iceberg
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.heartbeat import RENEWALS
from lakewright_spark.scheduler.lease_table import LIFE
from lakewright_spark.scheduler.runner_claims import RunnerClaims
from pyspark.sql import SparkSession

from tests.spark.maintenance.conftest import FaultyWarehouse
from tests.spark.maintenance.scheduling import ScheduledNamespace

pytestmark = pytest.mark.spark
VENDED, NONE = "vended-credentials", "client-managed"


@pytest.fixture
def scheduled(faulty: FaultyWarehouse, spark: SparkSession) -> Iterator[ScheduledNamespace]:
    name = f"counted_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE NAMESPACE faulty.{name}")
    yield ScheduledNamespace(faulty.config, spark, name, "faulty")
    for row in spark.sql(f"SHOW TABLES IN faulty.{name}").collect():
        spark.sql(f"DROP TABLE faulty.{name}.{row.tableName}")
    spark.sql(f"DROP NAMESPACE faulty.{name}")


@contextmanager
def count_loads(proxy: FaultInjectingProxy) -> Iterator[dict[str, Counter[str]]]:
    """Count loads by name of the table, and by what they ask for. Yield counts that are complete after the block."""
    counts: dict[str, Counter[str]] = {}
    with proxy.inject(lambda _, forward: forward()):
        yield counts
    for line, delegation in zip(proxy.lines, proxy.delegations, strict=True):
        method, path = line.split()
        if method == "GET" and "/tables/" in path:
            name = path.rpartition("/tables/")[2].partition("?")[0]
            counts.setdefault(name, Counter())[delegation] += 1


def test_loads_of_a_night(
    scheduled: ScheduledNamespace, faulty: FaultyWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table costs at most three loads, and an unchanged table one load, without credentials."""
    monkeypatch.setattr(iceberg, "OPEN_AGAIN_SECONDS", 600.0)  # the jobs may be slow on this machine
    scheduled.table("quiet", files=1)
    scheduled.table("busy")
    with count_loads(faulty.catalog) as first_night:
        outcome = scheduled.maintenance().run()
    assert outcome.error() is None
    assert {run.job for run in outcome.runs.values()} == {"orphan-files", "compaction", "statistics"}
    assert first_night["quiet"] == {NONE: 1, VENDED: 1}
    assert first_night["busy"].total() <= 3
    assert first_night["busy"][NONE] == 1

    with count_loads(faulty.catalog) as second_night:
        outcome = scheduled.maintenance(clock=lambda: datetime.now(UTC) + timedelta(minutes=1)).run()
    assert outcome.runs == {}
    assert {name: second_night[name] for name in ("quiet", "busy")} == {"quiet": {NONE: 1}, "busy": {NONE: 1}}


def test_heartbeat_asks_for_no_credentials(faulty: FaultyWarehouse) -> None:
    claims = RunnerClaims(faulty.config, "faulty", open_catalog(faulty.config, "faulty"), "counted")
    claims.register(datetime.now(UTC))
    with count_loads(faulty.catalog) as loads:
        for _ in range(3):
            claims.renew(datetime.now(UTC))
    claims.release(datetime.now(UTC))
    assert loads == {"maintenance_lease": {NONE: 3}}
    assert timedelta(hours=1) / (LIFE / RENEWALS) <= 120
