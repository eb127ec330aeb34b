"""Timeouts on a catalog that accepts connections and never responds."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth
from lakewright_spark.errors import CatalogUnreachableError, IdentityError
from lakewright_spark.pyiceberg_client import auth as pyiceberg_auth
from lakewright_spark.pyiceberg_client import catalog as pyiceberg_clients
from lakewright_spark.pyiceberg_client.catalog import open_catalog


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of a server that never accepts its pending connections."""
    monkeypatch.setattr(pyiceberg_clients, "SOCKET_SECONDS", 0.1)
    monkeypatch.setattr(pyiceberg_auth, "SOCKET_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_pyiceberg_times_out_on_a_silent_catalog(silent: str) -> None:
    config = CatalogConfig(kind="rest", tenant="acme", uri=silent, warehouses=[CatalogWarehouse(name="lake")])
    with pytest.raises(CatalogUnreachableError, match="does not respond: ReadTimeout"):
        open_catalog(config, "lake")


def test_pyiceberg_times_out_on_a_silent_token_url(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_SECRET", "s3cr3t")
    auth = ClientCredentialsAuth(
        kind="client-credentials", token_url=f"{silent}/token", client_id="job", client_secret="env:JOB_SECRET"
    )
    lake = CatalogWarehouse(name="lake")
    config = CatalogConfig(kind="rest", tenant="acme", uri=silent, auth=auth, warehouses=[lake])
    with pytest.raises(IdentityError, match="gave no token to client job: ReadTimeout"):
        open_catalog(config, "lake")


def test_spark_catalogs_have_timeouts() -> None:
    lake = CatalogWarehouse(name="lake", location="s3://bucket/lake")
    service = CatalogConfig(kind="rest", tenant="acme", uri="https://catalog", warehouses=[lake]).spark_properties()
    assert service["spark.sql.catalog.lake.rest.client.connection-timeout-ms"] == "10000"
    assert service["spark.sql.catalog.lake.rest.client.socket-timeout-ms"] == "60000"
    database = CatalogConfig(kind="jdbc", tenant="acme", uri="postgresql://db/iceberg", warehouses=[lake])
    assert database.spark_properties()["spark.sql.catalog.lake.jdbc.socketTimeout"] == "60"
