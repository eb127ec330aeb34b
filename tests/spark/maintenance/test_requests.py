"""Requests to the catalog: what the heartbeat loads, with and without credentials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from fault_proxy import FaultInjectingProxy
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.heartbeat import RENEWALS
from lakewright_spark.scheduler.lease_table import LIFE
from lakewright_spark.scheduler.runner_claims import RunnerClaims

from tests.spark.maintenance.conftest import FaultyWarehouse

pytestmark = pytest.mark.spark
NONE = "client-managed"


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


def test_heartbeat_asks_for_no_credentials(faulty: FaultyWarehouse) -> None:
    claims = RunnerClaims(faulty.config, "faulty", open_catalog(faulty.config, "faulty"), "counted")
    claims.register(datetime.now(UTC))
    with count_loads(faulty.catalog) as loads:
        for _ in range(3):
            claims.renew(datetime.now(UTC))
    claims.release(datetime.now(UTC))
    assert loads == {"maintenance_lease": {NONE: 3}}
    assert timedelta(hours=1) / (LIFE / RENEWALS) <= 120
