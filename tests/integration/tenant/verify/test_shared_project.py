"""Tenants of one project folder that share Lakekeeper's default project, on a catalog that enforces grants."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.tenant.verify.conftest import deploy_tenant
from tests.tenant_project import Tenant

pytestmark = [pytest.mark.xdist_group("verify"), pytest.mark.timeout(300)]


@pytest.fixture
def tenants(project: Path, sandbox: Sandbox) -> tuple[Tenant, Tenant]:
    """Two tenants with a unit and a role of their own each, in the default project."""

    def deploy(name: str) -> Tenant:
        warehouse = f"{name}-results"
        return deploy_tenant(
            project,
            sandbox,
            name,
            project={"shared": True},
            warehouses=[{"name": warehouse, "namespaces": ["results"], "deletion": "purge"}],
            tables=[{"name": f"{warehouse}.results.t", "columns": [{"name": "n", "type": "long"}]}],
            computing_units=[{"name": "unit", "runtime": "spark", "warehouse": warehouse}],
            grants=[{"to": "role:analysts", "privilege": "select", "on": {"warehouse": warehouse}}],
        )

    return deploy("sharing-a"), deploy("sharing-b")


@pytest.mark.long
def test_tenants_are_isolated_in_a_shared_project(tenants: tuple[Tenant, Tenant], stack_http: httpx.Client) -> None:
    first, second = tenants
    names = {role["name"] for role in stack_http.get("/management/v1/role").json()["roles"]}
    assert {"sharing-a-analysts", "sharing-b-analysts", "sharing-a-sharing-a-results-writer"} <= names

    verified = first.run("verify", "--json")

    result = json.loads(verified.stdout)
    assert (verified.returncode, result["failed_probes"]) == (0, []), verified.stdout
    attempts = {check["attempt"] for check in result["checks"]}
    assert "load table results.t of tenant sharing-b's sharing-b-results" in attempts
    second.verb("preview", "--refresh", "--expect-no-changes")
    assert second.run("drift").returncode == 0

    first.output("destroy", "--yes", "--engine", "embedded")

    names = {role["name"] for role in stack_http.get("/management/v1/role").json()["roles"]}
    assert [name for name in names if name.startswith("sharing-a")] == []
    assert "sharing-b-analysts" in names
    second.verb("preview", "--refresh", "--expect-no-changes")
    second.output("destroy", "--yes", "--engine", "embedded")
