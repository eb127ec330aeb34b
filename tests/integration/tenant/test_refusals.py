"""Reports of what cannot work: an invalid spec before any call, and unreachable servers by their address."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(300)

ENGINES = ["embedded", pytest.param("pulumi", marks=pytest.mark.pulumi_cli)]


@dataclass
class RecordingServer:
    """A server on loopback that records its requests and responds to all of them alike."""

    endpoint: str
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def refusing() -> Iterator[RecordingServer]:
    """A server that refuses every request, as a Lakekeeper does that does not know the client."""
    body = json.dumps({"error": {"message": "no", "type": "MissingAuthorizationHeader", "code": 401, "stack": []}})

    class Refuse(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listener.requests.append(f"{self.command} {self.path}")
            self.send_response(401)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Log nothing: the test reads `requests`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refuse)
    listener = RecordingServer(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield listener
    server.shutdown()


@pytest.fixture
def closed_port() -> str:
    """An address without a listener."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


CHANGED_ENVIRONMENT = pytest.mark.stand_in("changes the environment of a sandbox")


def environment(tenant: Any, text: str) -> None:
    (tenant.folder / "environments" / "sandbox.yaml").write_text(text)


@pytest.mark.parametrize("engine", ENGINES)
@CHANGED_ENVIRONMENT
def test_invalid_spec_is_reported_in_full_before_any_call(
    make_tenant: Callable[..., Any], refusing: RecordingServer, engine: str
) -> None:
    tenant = make_tenant(
        colour="blue",
        computing_units=[
            {"name": "cu", "runtime": "flink", "warehouse": "executions"},
            {"name": "other", "runtime": "spark", "warehouse": "nowhere"},
        ],
        warehouses=[{"name": "executions", "key_prefix": "a"}, {"name": "second", "key_prefix": "a/b"}],
        grants=[{"to": "analysts", "privilege": "select", "on": {"warehouse": "executions"}}],
        maintenance={"schedule": "0 2 * * *", "server": {"nowhere": {"expire_snapshots": True}}},
    )
    environment(tenant, f"lakekeeper: {{endpoint: '{refusing.endpoint}'}}\naws: {{endpoint: '{refusing.endpoint}'}}\n")

    done = tenant.run("up", "--yes", "--engine", engine)

    message = done.stdout + done.stderr
    assert done.returncode == 1, message
    for path in (
        "colour: unknown key",
        "computing_units.0.runtime: expected 'spark' or 'texera'",
        "computing_units.1.warehouse: expected one of the warehouses",
        "warehouses.1.key_prefix: expected a prefix without overlap",
        "grants.0.to: expected `user:IDP~SUBJECT`",
        "maintenance.server.nowhere: expected one of the warehouses",
        "storage.main.region: required",
        "lakekeeper.principal_arn: required",
    ):
        assert path in message
    assert "Traceback" not in message
    assert refusing.requests == []
    assert tenant.list_resource_kinds() <= {"Stack"}


def test_missing_environment_lists_the_existing_ones(make_tenant: Callable[..., Any]) -> None:
    tenant = make_tenant(environment="production")

    done = tenant.run("up", "--yes", "--engine", "embedded")

    message = done.stdout + done.stderr
    assert done.returncode == 1
    assert "environments/production.yaml" in message
    assert "has: sandbox" in message
    assert "Traceback" not in message


@CHANGED_ENVIRONMENT
def test_missing_lakekeeper_is_named_before_anything_is_made(
    make_tenant: Callable[..., Any], closed_port: str, aws: Callable[..., Any]
) -> None:
    """Storage waits for the project, since another stack may have it."""
    tenant = make_tenant()
    environment(tenant, f"sandbox: {tenant.sandbox.dir}\nlakekeeper: {{endpoint: '{closed_port}'}}\n")

    done = tenant.run("up", "--yes", "--engine", "embedded")

    message = done.stdout + done.stderr
    assert done.returncode == 1
    assert closed_port in message
    assert "Traceback" not in message
    assert not tenant.list_resource_kinds() & {"Bucket", "Role", "Project"}
    assert tenant.bucket not in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]
    environment(tenant, f"sandbox: {tenant.sandbox.dir}\n")
    tenant.up()
    assert {"Bucket", "Warehouse", "DeletionGuard"} <= tenant.list_resource_kinds()


@CHANGED_ENVIRONMENT
def test_refusing_lakekeeper_is_named_with_its_reason(
    make_tenant: Callable[..., Any], refusing: RecordingServer
) -> None:
    tenant = make_tenant()
    environment(tenant, f"sandbox: {tenant.sandbox.dir}\nlakekeeper: {{endpoint: '{refusing.endpoint}'}}\n")

    done = tenant.run("up", "--yes", "--engine", "embedded")

    message = done.stdout + done.stderr
    assert done.returncode == 1
    assert refusing.endpoint in message
    assert "MissingAuthorizationHeader" in message or "authenticat" in message
    assert "Traceback" not in message
    assert refusing.requests


@CHANGED_ENVIRONMENT
def test_missing_s3_is_named_and_the_next_up_continues(make_tenant: Callable[..., Any], closed_port: str) -> None:
    tenant = make_tenant()
    environment(tenant, f"sandbox: {tenant.sandbox.dir}\naws: {{endpoint: '{closed_port}'}}\n")

    done = tenant.run("up", "--yes", "--engine", "embedded")

    message = done.stdout + done.stderr
    assert done.returncode == 1
    assert closed_port in message
    assert "Traceback" not in message
    environment(tenant, f"sandbox: {tenant.sandbox.dir}\n")
    tenant.up()
    assert "DeletionGuard" in tenant.list_resource_kinds()
