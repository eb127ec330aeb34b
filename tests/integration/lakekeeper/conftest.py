"""Servers for these tests: AWS with enforced policies and a Lakekeeper on it, each a separate process."""

from __future__ import annotations

import configparser
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import httpx
import pytest
from fastapi import FastAPI
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import NEWEST
from lakewright_sandbox.runtime.processes import free_port

from tests.named_tokens import TokensAsNames
from tests.postgres_server import postgres as run_postgres
from tests.server_process import ModuleProcess

START_SECONDS = 60
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
VIEW = {
    "name": "v",
    "schema": {**SCHEMA, "schema-id": 0},
    "properties": {},
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["a"],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    },
}


@dataclass(frozen=True)
class AwsStandIn:
    """The AWS stand-in, and the key pair that has all rights in it."""

    endpoint: str
    credentials_file: Path
    access_key_id: str
    secret_access_key: str

    def client(self, service: str, **keys: str) -> Any:
        admin = {"aws_access_key_id": self.access_key_id, "aws_secret_access_key": self.secret_access_key}
        return boto3.client(service, endpoint_url=self.endpoint, region_name="us-east-1", **(keys or admin))


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsStandIn]:
    directory = tmp_path_factory.mktemp("aws")
    file, port = directory / "credentials", free_port()
    with ModuleProcess("lakewright_sandbox.aws", "--port", str(port), "--credentials-file", str(file)):
        endpoint = f"http://127.0.0.1:{port}"
        wait_until_healthy(f"{endpoint}/moto-api/")
        parser = configparser.RawConfigParser()
        parser.read(file)
        admin = parser["admin"]
        stand_in = AwsStandIn(endpoint, file, admin["aws_access_key_id"], admin["aws_secret_access_key"])
        stand_in.client("s3").create_bucket(Bucket="tenants")
        yield stand_in


class LakekeeperStarter:
    """Starts a server with its own database and returns a client. It plays head unless the options name a version."""

    def __init__(self, aws: AwsStandIn, directories: pytest.TempPathFactory) -> None:
        self._aws, self._directories = aws, directories
        self._running: dict[str, ModuleProcess] = {}

    def __call__(self, *options: str, database: str | None = None, bootstrap: bool = True) -> httpx.Client:
        url = database or f"sqlite:///{self._directories.mktemp('lakekeeper') / 'lakekeeper.db'}"
        port = free_port()
        arguments = ("--port", str(port), "--database", url, "--aws-endpoint", self._aws.endpoint)
        arguments += (
            "--version",
            NEWEST,
            "--credentials-file",
            str(self._aws.credentials_file),
            "--profile",
            "lakekeeper",
            *options,
        )
        server = ModuleProcess("lakewright_sandbox.lakekeeper", *arguments)
        server.__enter__()
        base = f"http://127.0.0.1:{port}"
        self._running[base] = server
        wait_until_healthy(f"{base}/health")
        client = httpx.Client(base_url=base, timeout=60)
        if bootstrap:
            client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
        return client

    def stop(self, client: httpx.Client) -> None:
        base = str(client.base_url).rstrip("/")
        client.close()
        self._running.pop(base).__exit__()

    def stop_all(self) -> None:
        for server in self._running.values():
            server.__exit__()


@pytest.fixture(scope="session")
def start_lakekeeper(aws: AwsStandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakekeeperStarter]:
    """All servers that the tests of a worker start end with them."""
    starter = LakekeeperStarter(aws, tmp_path_factory)
    yield starter
    starter.stop_all()


@pytest.fixture(scope="session")
def lakekeeper(start_lakekeeper: LakekeeperStarter) -> httpx.Client:
    return start_lakekeeper()


def wait_until_healthy(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, f"{url} did not respond within {START_SECONDS} s"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def make_warehouse(aws: AwsStandIn) -> Callable[..., str]:
    """Return a function that creates a warehouse on the bucket `tenants` with the admin's keys, and returns its id."""

    def make(
        client: httpx.Client,
        name: str,
        *,
        soft_delete_seconds: int | None = None,
        project_id: str | None = None,
        **profile: Any,
    ) -> str:
        settings = {
            "type": "s3",
            "bucket": "tenants",
            "region": "us-east-1",
            "key-prefix": f"{name}-{uuid4().hex}",
            "endpoint": aws.endpoint,
            "flavor": "s3-compat",
            "path-style-access": True,
            "sts-enabled": True,
        } | {key.replace("_", "-"): value for key, value in profile.items()}
        body: dict[str, Any] = {
            "warehouse-name": name,
            "storage-profile": settings,
            "storage-credential": {
                "type": "s3",
                "credential-type": "access-key",
                "aws-access-key-id": aws.access_key_id,
                "aws-secret-access-key": aws.secret_access_key,
            },
        }
        if project_id is not None:
            body["project-id"] = project_id
        if soft_delete_seconds is not None:
            body["delete-profile"] = {"type": "soft", "expiration-seconds": soft_delete_seconds}
        response = client.post("/management/v1/warehouse", json=body)
        assert response.status_code == 201, response.text
        return response.json()["warehouse-id"]

    return make


class People:
    """A server that enforces grants, and clients of it, each with a user's token; `None` sends none."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self._running = ExitStack()
        self._endpoint = self._running.enter_context(serve(TokensAsNames(app)))
        self._clients: dict[str | None, httpx.Client] = {}

    def __call__(self, name: str | None) -> httpx.Client:
        if name not in self._clients:
            headers = {"authorization": f"Bearer {name}"} if name else {}
            client = httpx.Client(base_url=self._endpoint, headers=headers, timeout=30)
            self._clients[name] = self._running.enter_context(client)
        return self._clients[name]

    def stop(self) -> None:
        """End the server, unless it has ended."""
        self._running.close()


@pytest.fixture(scope="session")
def start_openfga(aws: AwsStandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., People]]:
    """Return a function that starts a server that enforces grants, with `root` as its operator."""
    with ExitStack() as running:

        def start(**settings: Any) -> People:
            settings.setdefault("database", f"sqlite:///{tmp_path_factory.mktemp('openfga') / 'lakekeeper.db'}")
            openfga_settings = Settings(
                **{"version": NEWEST, "aws_endpoint": aws.endpoint, "authorizer": "openfga", **settings}
            )
            people = People(create_app(openfga_settings))
            running.callback(people.stop)
            bootstrap_request = {"accept-terms-of-use": True, "is-operator": True}
            people("root").post("/management/v1/bootstrap", json=bootstrap_request).raise_for_status()
            return people

        yield start


@pytest.fixture(scope="session")
def people(start_openfga: Callable[..., People]) -> People:
    return start_openfga()


@pytest.fixture(scope="session")
def session_warehouse(people: People, make_warehouse: Callable[..., str]) -> str:
    """A warehouse of `root` with the namespaces `a` and `a.b`, each with a table `t`, and a view `a.v`."""
    root, warehouse_id = people("root"), make_warehouse(people("root"), "rights")
    path = f"/catalog/v1/{warehouse_id}/namespaces"
    for namespace in (["a"], ["a", "b"]):
        assert root.post(path, json={"namespace": namespace}).status_code == 200
        table = root.post(f"{path}/{'%1F'.join(namespace)}/tables", json={"name": "t", "schema": SCHEMA})
        assert table.status_code == 200
    assert root.post(f"{path}/a/views", json=VIEW).status_code == 200
    return warehouse_id


@pytest.fixture(scope="session")
def give(people: People) -> Callable[..., None]:
    """`give("alice", "select", "warehouse/...")`."""

    def give(user: str, relation: str, path: str, *, take: bool = False, headers: Any = None) -> None:
        side = "deletes" if take else "writes"
        body = {side: [{"type": relation, "user": f"oidc~{user}"}]}
        response = people("root").post(f"/management/v1/permissions/{path}/assignments", json=body, headers=headers)
        assert response.status_code == 204, response.text

    return give


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """URL of a Postgres server of the module."""
    with run_postgres() as url:
        yield url


@pytest.fixture
def managed(client: Any, app: Any, make_warehouse: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a warehouse that an instance admin has taken into management."""
    path = f"/management/v1/warehouse/{make_warehouse(client, 'managed')}"
    lakekeeper = app.state.lakekeeper
    with monkeypatch.context() as admin:
        admin.setattr(lakekeeper, "settings", replace(lakekeeper.settings, instance_admin=True))
        response = client.post(f"{path}/managed-by", json={"managed-by": "instance-admin"})
        assert response.json()["managed-by"] == "instance-admin"
    return path
