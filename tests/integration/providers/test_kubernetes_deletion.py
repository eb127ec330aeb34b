"""The kubernetes provider waits for objects that a cluster still deletes, several at a time."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from lakewright_sandbox.providers.kubernetes import connection
from lakewright_sandbox.providers.kubernetes.connection import ClusterConnection

LOOKS = 30


@pytest.fixture
def _threads_that_alternate() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_threads_that_alternate")
def test_objects_are_deleted_concurrently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_SECONDS_BETWEEN_LOOKS", 0.0)
    looks = Counter[str]()

    def respond(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        looks[path] += request.method == "GET"
        if looks[path] > LOOKS:
            return httpx.Response(404, json={})
        return httpx.Response(200, json={"metadata": {"deletionTimestamp": "2026-11-28T00:00:00Z"}})

    with httpx.Client(base_url="http://cluster", transport=httpx.MockTransport(respond)) as http:
        cluster = ClusterConnection(http)
        names = [f"account-{number}" for number in range(400)]
        with ThreadPoolExecutor(32) as threads:
            accounts = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}} for name in names]
            list(threads.map(cluster.delete, accounts))

    assert {path.rpartition("/")[2]: count for path, count in looks.items()} == dict.fromkeys(names, LOOKS + 1)
