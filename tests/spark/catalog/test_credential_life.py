"""A job that outlives its vended credentials: Iceberg's Java client refreshes them."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from authenticating_proxy import AuthenticatingProxy
from authenticating_proxy import serve_proxy as gated
from fault_proxy import FaultInjectingProxy
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.storage import vending
from lakewright_sandbox.lakekeeper.storage.access import Keys
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="as long as credentials live: test-all"),
]

LIFETIME = 25
"""Lifetime of vended credentials in seconds. The minimum of STS itself is 15 minutes."""

SLOW = f"""
import time
from lakewright_spark.run.context import current

def slowly(batches):
    until = time.monotonic() + {LIFETIME} * 1.3
    for batch in batches:
        while time.monotonic() < until:  # one task, and one table that was loaded before it
            time.sleep(0.1)
        yield batch

run = current()
uri = run.write("Slow-1", run.spark.range(0, 100, 1, 1).mapInPandas(slowly, "id long"))
print(run.read(uri).count(), "rows")
"""


class ExpiringCredentialStore(FaultInjectingProxy):
    """S3 that refuses credentials after the expiry that the catalog gave them."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.expiries: dict[str, float] = {}
        """Expiry by access key, in seconds since the epoch."""
        self.used: list[str] = []
        self.refused = 0

    def _answer(self, scope: Any, body: bytes) -> httpx.Response:
        proof = dict(scope["headers"]).get(b"authorization", b"").decode()
        credential = re.search(r"Credential=([^/]+)/", proof)
        key = credential[1] if credential else ""
        if key in self.expiries:
            self.used.append(key)
            if time.time() > self.expiries[key]:
                self.refused += 1
                text = "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
                return httpx.Response(400, headers={"Content-Type": "application/xml"}, text=text)
        return super()._answer(scope, body)


@dataclass
class ShortLivedCredentials:
    """A catalog that requires tokens and vends short-lived credentials, and their store."""

    config: CatalogConfig
    store: ExpiringCredentialStore
    catalog: FaultInjectingProxy


@pytest.fixture
def setup(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShortLivedCredentials]:
    store, issue = ExpiringCredentialStore(sandbox.aws.endpoint), vending.CredentialVendor.issue

    def issue_short_lived(vendor: vending.CredentialVendor, *arguments: Any) -> Keys:
        keys = dataclasses.replace(issue(vendor, *arguments), expires_at=time.time() + LIFETIME)
        store.expiries[keys.access_key_id] = time.time() + LIFETIME
        return keys

    monkeypatch.setattr(vending.CredentialVendor, "issue", issue_short_lived)
    monkeypatch.setattr(vending, "SESSION_REUSE_SECONDS", 1)
    monkeypatch.setenv("JOB_SECRET", "s3cr3t")
    app = create_app(Settings(database=f"sqlite:///{tmp_path}/lakekeeper.db"))
    with serve(app) as server, serve(store) as store_url:
        catalog = FaultInjectingProxy(server)
        with serve(catalog) as catalog_url, gated(AuthenticatingProxy(catalog_url)) as proxy:
            auth = ClientCredentialsAuth(
                kind="client-credentials", token_url=proxy.token_url, client_id="job", client_secret="env:JOB_SECRET"
            )
            project, warehouse = _create_warehouse(server, store_url, sandbox)
            config = CatalogConfig(
                tenant="mortal",
                uri=proxy.catalog_uri,
                project_id=project,
                auth=auth,
                warehouses=[CatalogWarehouse(name="results", id=warehouse)],
            )
            yield ShortLivedCredentials(config, store, catalog)


def _create_warehouse(server: str, store: str, sandbox: Sandbox) -> tuple[str, str]:
    """Create a project with a warehouse; return both ids."""
    secret, project, bucket = sandbox.admin.secret_access_key.get_secret_value(), str(uuid.uuid4()), uuid.uuid4().hex
    keys = {"aws_access_key_id": sandbox.admin.access_key_id, "aws_secret_access_key": secret}
    boto3.client("s3", endpoint_url=sandbox.aws.endpoint, region_name="us-east-1", **keys).create_bucket(Bucket=bucket)
    profile = {"type": "s3", "bucket": bucket, "region": "us-east-1", "endpoint": store, "path-style-access": True}
    profile |= {"flavor": "s3-compat", "sts-enabled": True}
    credential = {"type": "s3", "credential-type": "access-key"}
    credential |= {"access-key-id": sandbox.admin.access_key_id, "secret-access-key": secret}
    body = {"warehouse-name": "results", "project-id": project, "delete-profile": {"type": "hard"}}
    body |= {"storage-profile": profile, "storage-credential": credential}
    with httpx.Client(base_url=server, timeout=60) as http:
        http.post("/management/v1/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
        http.post("/management/v1/project", json={"project-name": bucket, "project-id": project}).raise_for_status()
        response = http.post("/management/v1/warehouse", json=body)
        assert response.status_code == 201, response.text
        warehouse = response.json()["warehouse-id"]
        for name in ("operator-port-result", "operator-console-messages", "workflow-runtime-statistics"):
            http.post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": [name]}).raise_for_status()
    return project, warehouse


def run(setup: ShortLivedCredentials, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(SLOW)
    (folder / "catalog.json").write_text(setup.config.to_json())
    command = [sys.executable, "-m", "lakewright_spark.cli", "run", "--config", str(folder / "catalog.json")]
    command += ["--workflow", "9", "--execution", "1", "--no-registry", *options, str(folder / "script.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_credentials_are_refreshed(setup: ShortLivedCredentials, tmp_path: Path) -> None:
    done = run(setup, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "100 rows" in done.stdout
    refresh_requests = [line for line in setup.catalog.lines if line.startswith("GET") and "/credentials" in line]
    assert refresh_requests, "the refresh endpoint was called"
    assert len(set(setup.store.used)) > 2
    assert setup.store.refused == 0, "no credential was used after its expiry"


def test_job_fails_without_refreshed_credentials(setup: ShortLivedCredentials, tmp_path: Path) -> None:
    done = run(setup, tmp_path, "--conf", "spark.sql.catalog.results.client.refresh-credentials-enabled=false")
    assert done.returncode == 8
    assert setup.store.refused
