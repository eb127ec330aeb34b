"""The server's cache of warehouse statuses, recorded on Lakekeeper 0.13.3."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.clock import Clock
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

from tests.integration.lakekeeper.rules import MANAGEMENT, bootstrap, create_warehouse


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(tmp_path: Path, clock: Clock) -> TestClient:
    settings = Settings(database=f"sqlite:///{tmp_path / 'db'}", skip_storage_validation=True)
    client = TestClient(create_app(settings, clock))
    bootstrap(client)
    return client


@pytest.fixture
def warehouse(server: TestClient) -> str:
    """A warehouse with the namespace `sales`."""
    warehouse_id = create_warehouse(server)
    server.post(f"/catalog/v1/{warehouse_id}/namespaces", json={"namespace": ["sales"]}).raise_for_status()
    return warehouse_id


def set_status(server: TestClient, warehouse: str, verb: str) -> None:
    server.post(f"{MANAGEMENT}/{warehouse}/{verb}").raise_for_status()


def list_namespaces(server: TestClient, warehouse: str) -> list[list[str]] | int:
    """Return the listed namespaces, or the status code of the refusal."""
    response = server.get(f"/catalog/v1/{warehouse}/namespaces")
    return response.json()["namespaces"] if response.is_success else response.status_code


def test_deactivated_warehouse_lists_nothing_for_a_minute(server: TestClient, warehouse: str, clock: Clock) -> None:
    set_status(server, warehouse, "deactivate")
    deleted = server.get(f"{MANAGEMENT}/{warehouse}/deleted-tabulars")
    assert (list_namespaces(server, warehouse), deleted.json()["tabulars"]) == ([], [])
    assert server.get(f"/catalog/v1/{warehouse}/namespaces/sales").status_code == 404
    clock.advance(60)
    assert list_namespaces(server, warehouse) == 404


def test_activated_warehouse_is_refused_for_a_minute(server: TestClient, warehouse: str, clock: Clock) -> None:
    set_status(server, warehouse, "deactivate")
    set_status(server, warehouse, "activate")
    assert list_namespaces(server, warehouse) == 404
    clock.advance(60)
    assert list_namespaces(server, warehouse) == [["sales"]]


@pytest.mark.parametrize(("verb", "expected"), [("deactivate", 404), ("activate", [["sales"]])])
def test_reading_a_warehouse_updates_the_cached_status(
    server: TestClient, warehouse: str, verb: str, expected: list[list[str]] | int
) -> None:
    set_status(server, warehouse, "deactivate")
    set_status(server, warehouse, verb)
    server.get(f"{MANAGEMENT}/{warehouse}").raise_for_status()
    assert list_namespaces(server, warehouse) == expected
