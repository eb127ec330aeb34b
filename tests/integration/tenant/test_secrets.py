"""No secret of a tenant, given or generated, is in any file or output of a stack."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pytest
from lakewright_engine.model.resources import SecretValue
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.runtime.credentials import load
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.tenant.faulty_proxy import VENDED, FaultyProxy, run_proxy

pytestmark = pytest.mark.timeout(300)

PASSPHRASE = "correct horse battery staple"


class TokenEndpoint(ThreadingHTTPServer):
    """An identity provider for client credentials: it knows one secret and issues one token."""

    def __init__(self, secret: str, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _TokenHandler)
        self.secret, self.token, self.issued = secret, token, 0


class _TokenHandler(BaseHTTPRequestHandler):
    server: TokenEndpoint

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        is_valid = form["client_secret"] == [self.server.secret]
        self.server.issued += is_valid
        response = {"access_token": self.server.token, "expires_in": 300} if is_valid else {"error": "invalid_client"}
        body = json.dumps(response).encode()
        self.send_response(200 if is_valid else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing: the test reads `issued`."""


@pytest.fixture
def identity_provider() -> Iterator[TokenEndpoint]:
    with TokenEndpoint(token_urlsafe(24), token_urlsafe(48)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def catalog(sandbox: Sandbox) -> Iterator[FaultyProxy]:
    """A proxy to the catalog that records the vended credentials."""
    with run_proxy(sandbox.lakekeeper.endpoint) as proxy:
        yield proxy


def test_stack_leaves_no_secret_behind(
    make_tenant: Callable[..., Any],
    aws: Callable[..., Any],
    identity_provider: TokenEndpoint,
    catalog: FaultyProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Secrets of a stack with client credentials and two kinds of warehouse credentials.

    One warehouse has a role and an external id. Another has a key by reference: to a variable, and to the stack's
    encrypted configuration.
    """
    tenant = make_tenant()
    (tenant.folder / "environments" / "sandbox.yaml").write_text(
        f"sandbox: {tenant.sandbox.dir}\n"
        f"kubernetes: {{render_to: {tenant.folder / 'rendered'}}}\n"
        f"lakekeeper:\n"
        f"  endpoint: '{catalog.endpoint}'\n"
        f"  catalog_uri: '{catalog.endpoint}/catalog'\n"
        f"  auth:\n"
        f"    kind: client-credentials\n"
        f"    token_url: 'http://127.0.0.1:{identity_provider.server_port}/token'\n"
        f"    client_id: lakewright\n"
        f"    client_secret: env:CLIENT_SECRET\n"
    )
    keys = load(tenant.sandbox.credentials_file)
    admin = keys["admin"]
    store = f"{tenant.name}-store"
    aws("s3").create_bucket(Bucket=store)
    tenant.environ = {
        "STORE_ID": admin.access_key_id,
        "CLIENT_SECRET": identity_provider.secret,
    }
    tenant.spec["storage"]["store"] = {
        "backend": "s3",
        "bucket": store,
        "endpoint": tenant.sandbox.aws.endpoint,
        "region": tenant.sandbox.aws.region,
        "credential": {"access_key_id": "env:STORE_ID", "secret_access_key": "config:store_secret"},
        "sts": False,
    }
    tenant.spec["warehouses"] = [
        {"name": "executions", "storage": "main", "namespaces": ["results"], "deletion": "purge"},
        {
            "name": "archive",
            "storage": "store",
            "namespaces": ["results"],
            "deletion": "purge",
            "delegation": "remote-signing",
        },
    ]
    tenant.spec["computing_units"] = [{"name": "workflows", "runtime": "texera", "warehouses": "all"}]
    tenant.write()
    tenant.output("config", "set", "store_secret", admin.secret_access_key.get_secret_value(), "--secret")
    tenant.up()
    tenant.output("up", "--yes", "--diff", "--engine", "embedded")
    tenant.output("preview", "--refresh", "--diff", "--engine", "embedded")
    tenant.output("stack", "output", "--json")
    tenant.output("stack", "export")
    for form in ("json", "spark", "pyiceberg", "env"):
        tenant.output("config", "--format", form)
    tenant.catalog("executions").create_table("results.flights", schema=pa.schema([("n", pa.int64())]))
    tenant.catalog("executions").load_table("results.flights").append(pa.table({"n": [1, 2, 3]}))
    assert identity_provider.issued, "the stack requested a token"
    vended = catalog.list_vended_secrets()
    assert len(vended) >= len(VENDED), "the table was loaded with credentials"
    secrets = {
        **{f"{number}. vended value": value for number, value in enumerate(vended)},
        "the client's secret": identity_provider.secret,
        "the stack's token": identity_provider.token,
        "the passphrase": PASSPHRASE,
        "the administrator's key": admin.secret_access_key.get_secret_value(),
        "the catalog's key": keys["lakekeeper"].secret_access_key.get_secret_value(),
        "the id of the store's key": admin.access_key_id,
        "the external id": _external_id(tenant, monkeypatch),
    }

    texts = {str(file): file.read_text(errors="replace") for file in tenant.folder.rglob("*") if file.is_file()}
    texts |= {str(file): file.read_text() for file in (tenant.sandbox.dir / "logs").iterdir()}
    texts["the output of the commands"] = "\n".join(tenant.outputs)

    assert len(texts) > 10
    assert {"aws.log", "lakekeeper.log"} <= {path.rpartition("/")[2] for path in texts}
    for description, secret in secrets.items():
        assert len(secret) > 10
        assert [path for path, text in texts.items() if secret in text] == [], description


def _external_id(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tenant.folder / "state").as_uri())
    project = PulumiProject.load(tenant.folder)
    snapshot = project.backend().load(project.name, tenant.name)
    assert snapshot is not None
    (external_id_resource,) = [
        resource for resource in snapshot.resources if resource.type.endswith("lakekeeper:ExternalId")
    ]
    assert isinstance(external_id_resource.outputs["value"], SecretValue)
    return str(external_id_resource.outputs["value"].value)
