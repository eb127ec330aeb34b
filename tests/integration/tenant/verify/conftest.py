"""Two tenants on a sandbox that enforces grants and policies, deployed once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml
from lakewright.verify.run import VerifyReport
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime.state import Sandbox

from tests.tenant_project import Tenant, create_project, tenant_spec
from tests.verifying import make_verify


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox that enforces rights at the catalog and at S3."""
    directory = tmp_path_factory.mktemp("enforcing")
    yield lifecycle.up(directory, authz="openfga")
    lifecycle.down(directory, purge=True)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Path:
    """A project folder with its state, for several tenants."""
    folder = tmp_path_factory.mktemp("projects") / "project"
    create_project(folder, {"sandbox": str(sandbox.dir), "kubernetes": {"render_to": str(folder / "rendered")}})
    return folder


def deploy_tenant(folder: Path, sandbox: Sandbox, name: str, **changes: Any) -> Tenant:
    """Deploy a tenant in a project folder."""
    spec = tenant_spec(name, {"backend": "aws", "bucket": f"{name}-lakehouse"})
    tenant = Tenant(folder, sandbox, spec | changes)
    tenant.write()
    tenant.output("stack", "init")
    tenant.up()
    return tenant


@pytest.fixture(scope="session")
def acme(project: Path, sandbox: Sandbox) -> Tenant:
    """A tenant with units, beside another tenant."""
    columns = [{"name": "n", "type": "long"}]
    deploy_tenant(project, sandbox, "globex", tables=[{"name": "executions.results.secret", "columns": columns}])
    warehouses = [
        {"name": "executions", "namespaces": ["results"], "deletion": "purge"},
        {"name": "signed", "delegation": "remote-signing", "deletion": "purge"},
    ]
    units = [{"name": "unit", "runtime": "spark", "warehouses": "all"}]
    return deploy_tenant(project, sandbox, "acme", warehouses=warehouses, computing_units=units)


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch, acme: Tenant) -> Callable[..., VerifyReport]:
    """Return a function that runs probes of the tenant `acme` in this process, all probes or probes by name."""
    return make_verify(acme, monkeypatch)


@pytest.fixture
def new_tenant_name() -> Callable[[], str]:
    """Return a function that returns a new name."""
    return lambda: f"m{uuid4().hex[:8]}"


@pytest.fixture
def stack_http(sandbox: Sandbox) -> Iterator[httpx.Client]:
    """HTTP client of Lakekeeper with the identity of stacks, which has all rights."""
    tokens = sandbox.tokens
    assert tokens is not None
    form = {
        "grant_type": "client_credentials",
        "client_id": tokens.client_id,
        "client_secret": tokens.client_secret_file.read_text(),
        "audience": tokens.audience,
    }
    token = httpx.post(tokens.token_url, data=form).raise_for_status().json()["access_token"]
    headers = {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=sandbox.lakekeeper.endpoint, headers=headers, timeout=60) as client:
        yield client


def find_manifest(tenant: Tenant, kind: str) -> Path:
    """Return the rendered manifest of a kind."""
    files = (tenant.folder / "rendered" / tenant.name).rglob("*.yaml")
    return next(file for file in files if yaml.safe_load(file.read_text())["kind"] == kind)
