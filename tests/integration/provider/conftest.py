"""Fixtures of the provider tests: servers, storage, declarations, and clients of other users."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from lakewright.credentials.references import resolve
from lakewright.http.retry import RetryPolicy
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.provider import pending_creations as pending
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.server.bootstrap import BootstrapProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.ownership.consent import ADOPT, Consent, ConsentKind, format_consents
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.fault_injection import FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import NEWEST, Version
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.ground import (
    AUTHORIZERS,
    TOKEN,
    AuthorizerServer,
    PreparedProject,
    run_authorizer_server,
)
from tests.integration.provider.old_server import VERSIONS, OldServer
from tests.integration.provider.resource import CREATED_WAREHOUSE_IDS, Props, Resource, wire
from tests.named_tokens import TokensAsNames
from tests.real_servers import RealServers


@pytest.fixture(autouse=True)
def _separate_run(real: RealServers | None) -> Iterator[None]:
    """Forget what other tests declared, as a new run does."""
    run_context.start(run_context.current().next())
    yield
    if real:
        real.warehouse_ids |= CREATED_WAREHOUSE_IDS


@pytest.fixture(autouse=True)
def _permit_test_project(unique: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permit the adoption of the test's project, which other users created, and of its contents."""
    monkeypatch.setenv(ADOPT, format_consents([Consent(ConsentKind.PROJECT, unique)]))


@pytest.fixture
def report_interrupted_create(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Report that an interrupted run of this stack began to create an object, as an engine does."""

    def report(kind: str, props: Props) -> None:
        creation = {"urn": "urn:x", "type": f"pulumi-python:dynamic/lakekeeper:{kind}", "inputs": wire(props)}
        file = tmp_path / "pending.json"
        file.write_text(json.dumps([creation]))
        monkeypatch.setenv(pending.FILE, str(file))

    return report


@pytest.fixture
def use_client(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Client]:
    """Return a function that has all providers use one client of a server, which retries at once."""

    def use(server: Props, transport: httpx.BaseTransport | None = None) -> Client:
        client = Client(
            ServerRef(**server),
            resolve,
            transport=transport,
            retry=RetryPolicy(first_wait=0.01),
            lists=run_context.current().lists,
        )
        monkeypatch.setattr(run_context.RunContext, "client", lambda *_: client)
        return client

    return use


@pytest.fixture
def use_transport(server: Props, use_client: Callable[..., Client]) -> Callable[[Any], Any]:
    """Return a function that sends the providers' requests through a transport, and returns the transport."""

    def use(transport: Any) -> Any:
        use_client(server, transport)
        return transport

    return use


@pytest.fixture
def http(sandbox: Sandbox, real: RealServers | None) -> httpx.Client:
    """HTTP client of another user, for changes outside the stack."""
    if real:
        return real.http()
    client = httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60)
    client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True})
    return client


@pytest.fixture
def moves_objects(http: httpx.Client) -> None:
    """Skip a test that moves tables or views between namespaces, which is refused on servers with OpenFGA."""
    if http.get("/management/v1/info").raise_for_status().json()["authz-backend"] == "openfga":
        pytest.skip("moves between namespaces are refused on this server, see test_moves.py: it has OpenFGA")


@pytest.fixture
def server(sandbox: Sandbox, http: httpx.Client, real: RealServers | None) -> Props:
    return real.server if real else {"endpoint": sandbox.lakekeeper.endpoint}


@pytest.fixture
def unique(real: RealServers | None) -> str:
    """Return a unique part for the names of a test."""
    return f"{real.run}-{uuid.uuid4().hex[:8]}" if real else uuid.uuid4().hex[:12]


@pytest.fixture
def project_id(http: httpx.Client, unique: str) -> str:
    body = {"project-id": unique, "project-name": unique}
    http.post("/management/v1/project", json=body).raise_for_status()
    return unique


@pytest.fixture(scope="session")
def light_endpoint(
    tmp_path_factory: pytest.TempPathFactory, real: RealServers | None, sandbox_version: Version
) -> Iterator[str]:
    """Start a server in this process that tests no storage, for tests that need no bucket; it counts the calls.

    Under `make test-real` it is the user's server, for tests marked `any_server`.
    """
    if real:
        yield real.lakekeeper
        return
    database = tmp_path_factory.mktemp("light") / "lakekeeper.db"
    settings = Settings(database=f"sqlite:///{database}", version=sandbox_version, skip_storage_validation=True)
    with serve(FaultSwitch(create_app(settings))) as endpoint:
        yield endpoint


@pytest.fixture
def light(light_endpoint: str, real: RealServers | None) -> Iterator[httpx.Client]:
    """HTTP client of another user on the light server."""
    if real:
        with real.http() as client:
            yield client
        return
    with httpx.Client(base_url=light_endpoint, timeout=60) as client:
        client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True})
        yield client
        client.delete("/sandbox/v1/faults")


@pytest.fixture
def light_project(light: httpx.Client, real: RealServers | None, unique: str) -> Props:
    """Properties that each resource in the test's project on the light server has."""
    light.post("/management/v1/project", json={"project-id": unique, "project-name": unique}).raise_for_status()
    server = real.server if real else {"endpoint": str(light.base_url).rstrip("/")}
    return {"server": server, "project_id": unique}


@pytest.fixture(scope="session", params=list(AUTHORIZERS))
def authorizer_server(
    request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AuthorizerServer]:
    """Start a server in this process for each authorizer, on the sandbox's storage."""
    with run_authorizer_server(
        request.param, sandbox, tmp_path_factory.mktemp("authorizer_server"), version=NEWEST
    ) as server:
        yield server


@pytest.fixture(scope="session")
def session_ground(authorizer_server: AuthorizerServer) -> Iterator[PreparedProject]:
    with authorizer_server.client() as client:
        yield PreparedProject(authorizer_server, client)


@pytest.fixture
def ground(session_ground: PreparedProject, monkeypatch: pytest.MonkeyPatch) -> Iterator[PreparedProject]:
    """Objects of every kind to grant on, shared by tests that do not change them, and users without grants."""
    monkeypatch.setenv(TOKEN, "operator")
    session_ground.new_users()
    yield session_ground
    session_ground.http.delete("/sandbox/v1/faults")


@pytest.fixture
def private_ground(authorizer_server: AuthorizerServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[PreparedProject]:
    """Objects of every kind to grant on, for one test only."""
    monkeypatch.setenv(TOKEN, "operator")
    with authorizer_server.client() as client:
        yield PreparedProject(authorizer_server, client)


@pytest.fixture(scope="session")
def openfga_endpoint(tmp_path_factory: pytest.TempPathFactory, sandbox_version: Version) -> Iterator[str]:
    """Start a server in this process that enforces rights and tests no storage; `operator` may do everything."""
    database = tmp_path_factory.mktemp("guarded") / "lakekeeper.db"
    settings = Settings(
        database=f"sqlite:///{database}", version=sandbox_version, authorizer="openfga", skip_storage_validation=True
    )
    with serve(FaultSwitch(TokensAsNames(create_app(settings)))) as endpoint:
        bootstrap_request = {"accept-terms-of-use": True, "is-operator": True}
        headers = {"authorization": "Bearer operator"}
        httpx.post(f"{endpoint}/management/v1/bootstrap", json=bootstrap_request, headers=headers).raise_for_status()
        yield endpoint


@pytest.fixture
def guarded(openfga_endpoint: str) -> Iterator[httpx.Client]:
    """HTTP client of the guarded server's operator."""
    with httpx.Client(base_url=openfga_endpoint, headers={"authorization": "Bearer operator"}, timeout=60) as client:
        yield client
        client.delete("/sandbox/v1/faults")


@pytest.fixture
def guarded_project(guarded: httpx.Client, unique: str, monkeypatch: pytest.MonkeyPatch) -> Props:
    """Properties that each resource in the test's project on the guarded server has."""
    monkeypatch.setenv(TOKEN, "operator")
    guarded.post("/management/v1/project", json={"project-id": unique, "project-name": unique}).raise_for_status()
    auth = {"kind": "token", "token": f"env:{TOKEN}"}
    return {"server": {"endpoint": str(guarded.base_url).rstrip("/"), "auth": auth}, "project_id": unique}


@pytest.fixture
def light_warehouse_props(light_project: Props, monkeypatch: pytest.MonkeyPatch) -> Props:
    """A declared warehouse on the light server."""
    monkeypatch.setenv("STORAGE_KEY_ID", "AKIA1")
    monkeypatch.setenv("STORAGE_SECRET", "hidden")
    keys = {"type": "access-key", "access_key_id": "env:STORAGE_KEY_ID", "secret_access_key": "env:STORAGE_SECRET"}
    storage = {"bucket": "lake", "key_prefix": "main", "region": "us-east-1", "flavor": "s3-compat"}
    return {**light_project, "name": "main", "storage": storage, "credential": keys}


@pytest.fixture
def light_warehouse(light_warehouse_props: Props) -> Resource:
    resource = Resource(WarehouseProvider())
    resource.up(**light_warehouse_props)
    return resource


AwsClient = Callable[[str], Any]


@pytest.fixture
def aws(sandbox: Sandbox, real: RealServers | None) -> AwsClient:
    if real:
        return real.aws
    admin = sandbox.admin
    session = boto3.Session(
        admin.access_key_id, admin.secret_access_key.get_secret_value(), region_name=sandbox.aws.region
    )
    return lambda service: session.client(service, endpoint_url=sandbox.aws.endpoint)


@pytest.fixture
def bucket(aws: AwsClient, unique: str, real: RealServers | None) -> str:
    if real:
        return real.bucket
    aws("s3").create_bucket(Bucket=f"lake-{unique}")
    return f"lake-{unique}"


@pytest.fixture
def key_prefix(unique: str, real: RealServers | None) -> str:
    """Key prefix of the test's warehouse: in the test's bucket, or unique in the user's bucket."""
    return f"{unique}/main" if real else "main"


@pytest.fixture
def keys(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Props:
    """A credential by reference, of the sandbox's admin."""
    monkeypatch.setenv("STORAGE_KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("STORAGE_SECRET", sandbox.admin.secret_access_key.get_secret_value())
    return {"type": "access-key", "access_key_id": "env:STORAGE_KEY_ID", "secret_access_key": "env:STORAGE_SECRET"}


@pytest.fixture
def storage(sandbox: Sandbox, bucket: str, key_prefix: str) -> Props:
    return {
        "bucket": bucket,
        "key_prefix": key_prefix,
        "region": sandbox.aws.region,
        "endpoint": sandbox.aws.endpoint,
        "flavor": "s3-compat",
        "path_style_access": True,
    }


@pytest.fixture
def warehouse_props(server: Props, project_id: str, storage: Props, keys: Props) -> Props:
    """A declared warehouse."""
    return {"server": server, "project_id": project_id, "name": "main", "storage": storage, "credential": keys}


@pytest.fixture
def warehouse(warehouse_props: Props) -> Resource:
    resource = Resource(WarehouseProvider())
    resource.up(**warehouse_props)
    return resource


@pytest.fixture
def make_table(http: httpx.Client) -> Callable[..., str]:
    """Return a function that creates a table and its namespace if missing, and returns the table's location."""

    def make(warehouse_id: str, namespace: str, name: str) -> str:
        root = f"/catalog/v1/{warehouse_id}/namespaces"
        http.post(root, json={"namespace": namespace.split(".")})
        schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
        url = f"{root}/{namespace.replace('.', '%1F')}/tables"
        response = http.post(url, json={"name": name, "schema": schema})
        return response.raise_for_status().json()["metadata"]["location"]

    return make


@pytest.fixture
def objects(aws: AwsClient, bucket: str, key_prefix: str) -> Callable[[], list[str]]:
    """Return a function that lists the keys of the warehouse's objects."""
    start = len(key_prefix.removesuffix("main"))

    def keys() -> list[str]:
        contents = aws("s3").list_objects_v2(Bucket=bucket, Prefix=key_prefix[:start]).get("Contents", [])
        return [item["Key"][start:] for item in contents]

    return keys


@pytest.fixture(scope="module")
def servers(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, OldServer]]:
    admin = sandbox.admin
    keys = (admin.access_key_id, admin.secret_access_key.get_secret_value())
    bucket = f"versions-{uuid.uuid4().hex[:12]}"
    s3 = boto3.Session(*keys, region_name="us-east-1").client("s3", endpoint_url=sandbox.aws.endpoint)
    s3.create_bucket(Bucket=bucket)
    with ExitStack() as stack:
        started: dict[str, OldServer] = {}
        for version in VERSIONS:
            database = f"sqlite:///{tmp_path_factory.mktemp('version') / 'lakekeeper.db'}"
            app = create_app(Settings(database=database, version=version, skip_storage_validation=True))
            http = stack.enter_context(httpx.Client(base_url=stack.enter_context(serve(app)), timeout=30))
            started[version] = OldServer(version, http, sandbox, bucket)
        yield started


@pytest.fixture(params=VERSIONS)
def old(request: Any, servers: dict[str, OldServer], sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> OldServer:
    monkeypatch.setenv("KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("KEY", sandbox.admin.secret_access_key.get_secret_value())
    monkeypatch.setenv("OTHER_KEY", "another")
    old_server = servers[request.param]
    Resource(BootstrapProvider()).up(server=old_server.server, accept_terms_of_use=True)
    return old_server
