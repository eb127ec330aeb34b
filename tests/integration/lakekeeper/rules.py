"""Servers for the tests of rules: without storage validation, and on real storage with a clock to advance."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.clock import Clock
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import NEWEST

from tests.integration.lakekeeper.conftest import SCHEMA

MANAGEMENT = "/management/v1/warehouse"
KEY = {"type": "s3", "credential-type": "access-key", "access-key-id": "AKIA", "secret-access-key": "hidden"}
PROFILE: dict[str, Any] = {
    "type": "s3",
    "bucket": "lake",
    "key-prefix": "main",
    "region": "us-east-1",
    "flavor": "s3-compat",
    "sts-enabled": False,
}


@contextmanager
def run_light_server(directory: Path) -> Iterator[TestClient]:
    """Run a server that probes no storage, not bootstrapped yet."""
    settings = Settings(database=f"sqlite:///{directory / 'light.db'}", version=NEWEST, skip_storage_validation=True)
    with TestClient(create_app(settings)) as client:
        yield client


@pytest.fixture(scope="module")
def module_light(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with run_light_server(tmp_path_factory.mktemp("light")) as client:
        bootstrap(client)
        yield client


@pytest.fixture
def light(module_light: TestClient) -> TestClient:
    """A client with a project of its own on a server that probes no storage."""
    project = f"p{uuid.uuid4().hex}"
    module_light.headers["x-project-id"] = project
    module_light.post("/management/v1/project", json={"project-id": project, "project-name": "own"}).raise_for_status()
    return module_light


@pytest.fixture
def warehouse(light: Any) -> str:
    return create_warehouse(light)


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def app(clock: Clock, aws: Any, tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """A server on real storage, whose time the test may move and whose worker it runs itself."""
    database = f"sqlite:///{tmp_path_factory.mktemp('checklist') / 'lakekeeper.db'}"
    return create_app(
        Settings(database=database, version=NEWEST, aws_endpoint=aws.endpoint, task_poll_seconds=3600), clock
    )


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        bootstrap(client)
        yield client


def bootstrap(client: Any) -> None:
    client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()


def create_warehouse(client: Any, name: str = "main", headers: Any = None, **profile: Any) -> str:
    response = create(client, name, headers, **profile)
    assert response.status_code == 201, response.text
    return response.json()["warehouse-id"]


def create(client: Any, name: str = "main", headers: Any = None, **profile: Any) -> Any:
    settings = PROFILE | {key.replace("_", "-"): value for key, value in profile.items()}
    body = {"warehouse-name": name, "storage-profile": settings, "storage-credential": KEY}
    return client.post(MANAGEMENT, json=body, headers=headers)


def run_all(app: FastAPI) -> None:
    while app.state.worker.run_due():
        pass


def get_refusal(response: Any) -> tuple[int, str]:
    """Return the status of an error response and the server's name for the error."""
    return response.status_code, response.json()["error"]["type"]


def get_warehouse(client: Any, warehouse: str) -> dict[str, Any]:
    return client.get(f"{MANAGEMENT}/{warehouse}").json()


def create_table(client: Any, warehouse: str, name: str = "t") -> str:
    """Create a table, and its namespace if it is missing; return the table's location."""
    client.post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": ["n"]})
    response = client.post(f"/catalog/v1/{warehouse}/namespaces/n/tables", json={"name": name, "schema": SCHEMA})
    return response.raise_for_status().json()["metadata"]["location"]


def keys_under(aws: Any, location: str) -> list[str]:
    bucket, _, prefix = location.removeprefix("s3://").partition("/")
    return [one["Key"] for one in aws.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])]
