"""A job that is longer than the life of its vended credentials: Iceberg's Java client gets new ones as it goes."""

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
from guarded import Gate
from guarded import serving as gated
from lakewright_sandbox.in_process import serving
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.storage.access import Keys, vending
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth
from storm import Storm

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="as long as credentials live: test-all"),
]

LIFE = 25
"""Seconds that vended credentials live. STS itself gives none that live shorter than a quarter of an hour."""

SLOW = f"""
import time
from lakewright_spark.run.context import current

def slowly(batches):
    until = time.monotonic() + {LIFE} * 1.3
    for batch in batches:
        while time.monotonic() < until:  # one task, and one table that was loaded before it
            pass
        yield batch

run = current()
uri = run.write("Slow-1", run.spark.range(0, 100, 1, 1).mapInPandas(slowly, "id long"))
print(run.read(uri).count(), "rows")
"""


class MortalStore(Storm):
    """S3 that takes no credentials past their end, as the catalog told it."""

    def __init__(self, behind: str) -> None:
        super().__init__(behind)
        self.ends: dict[str, float] = {}
        """Access key -> when it ends (seconds since the epoch)."""
        self.used: list[str] = []
        self.refused = 0

    def _answer(self, scope: Any, body: bytes) -> httpx.Response:
        proof = dict(scope["headers"]).get(b"authorization", b"").decode()
        found = re.search(r"Credential=([^/]+)/", proof)
        key = found[1] if found else ""
        if key in self.ends:
            self.used.append(key)
            if time.time() > self.ends[key]:
                self.refused += 1
                text = "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
                return httpx.Response(400, headers={"Content-Type": "application/xml"}, text=text)
        return super()._answer(scope, body)


@dataclass
class World:
    """A catalog that asks for tokens and vends mortal credentials, and their store."""

    config: CatalogConfig
    store: MortalStore
    catalog: Storm


@pytest.fixture
def world(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    store, issue = MortalStore(sandbox.aws.endpoint), vending.CredentialVendor.issue

    def mortal(vendor: vending.CredentialVendor, *words: Any) -> Keys:
        keys = dataclasses.replace(issue(vendor, *words), expires_at=time.time() + LIFE)
        store.ends[keys.access_key_id] = time.time() + LIFE
        return keys

    monkeypatch.setattr(vending.CredentialVendor, "issue", mortal)
    monkeypatch.setattr(vending, "SESSION_REUSE_SECONDS", 1)
    monkeypatch.setenv("JOB_SECRET", "s3cr3t")
    app = create_app(Settings(database=f"sqlite:///{tmp_path}/lakekeeper.db"))
    with serving(app) as server, serving(store) as way_to_store:
        catalog = Storm(server)
        with serving(catalog) as way_to_catalog, gated(Gate(way_to_catalog)) as gate:
            auth = ClientCredentialsAuth(
                kind="client-credentials", token_url=gate.token_url, client_id="job", client_secret="env:JOB_SECRET"
            )
            project, warehouse = _made(server, way_to_store, sandbox)
            config = CatalogConfig(
                tenant="mortal",
                uri=gate.catalog_uri,
                project_id=project,
                auth=auth,
                warehouses=[CatalogWarehouse(name="results", id=warehouse)],
            )
            yield World(config, store, catalog)


def _made(server: str, store: str, sandbox: Sandbox) -> tuple[str, str]:
    """A project and a warehouse of it."""
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
        answer = http.post("/management/v1/warehouse", json=body)
        assert answer.status_code == 201, answer.text
        warehouse = answer.json()["warehouse-id"]
        for name in ("operator-port-result", "operator-console-messages", "workflow-runtime-statistics"):
            http.post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": [name]}).raise_for_status()
    return project, warehouse


def run(world: World, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(SLOW)
    (folder / "catalog.json").write_text(world.config.to_json())
    command = [sys.executable, "-m", "lakewright_spark.cli", "run", "--config", str(folder / "catalog.json")]
    command += ["--workflow", "9", "--execution", "1", "--no-registry", *words, str(folder / "script.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_credentials_are_refreshed(world: World, tmp_path: Path) -> None:
    done = run(world, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "100 rows" in done.stdout
    asked = [line for line in world.catalog.lines if line.startswith("GET") and "/credentials" in line]
    assert asked, "the refresh endpoint"
    assert len(set(world.store.used)) > 2
    assert world.store.refused == 0, "none was used past its end"


def test_job_fails_without_refreshed_credentials(world: World, tmp_path: Path) -> None:
    done = run(world, tmp_path, "--conf", "spark.sql.catalog.results.client.refresh-credentials-enabled=false")
    assert done.returncode == 8
    assert world.store.refused
