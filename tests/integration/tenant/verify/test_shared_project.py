"""Tenants of one project folder that share Lakekeeper's default project, on a catalog that enforces grants."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from lakewright.project_files.stack_files import DEFAULT_PROJECT_ID
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


@pytest.mark.long
def test_lost_state_is_adopted_again_object_by_object(
    project: Path, sandbox: Sandbox, stack_http: httpx.Client
) -> None:
    """A consent for the project would cover the warehouses of all tenants."""
    tenant = deploy_tenant(
        project,
        sandbox,
        "sharing-c",
        project={"shared": True},
        warehouses=[{"name": "sharing-c-results", "namespaces": ["results"], "deletion": "purge"}],
        grants=[{"to": "role:analysts", "privilege": "select", "on": {"warehouse": "sharing-c-results"}}],
    )
    tenant.output("stack", "forget", "--yes")
    tenant.spec["adopt"] = True
    tenant.write()

    error = " ".join(tenant.error("adopt", "consent", f"project={DEFAULT_PROJECT_ID}").split())
    assert f"expected warehouse={DEFAULT_PROJECT_ID}/NAME or role={DEFAULT_PROJECT_ID}/NAME" in error
    roles = [role["name"] for role in stack_http.get("/management/v1/role").json()["roles"]]
    names = [name for name in roles if name.startswith("sharing-c-")]
    assert "sharing-c-analysts" in names
    on_server = ["warehouse=sharing-c-results", *(f"role={name}" for name in names)]
    objects = [text.replace("=", f"={DEFAULT_PROJECT_ID}/") for text in on_server]
    tenant.output(
        "adopt", "consent", *objects[:1], f"bucket={tenant.bucket}", "role=lakewright.sharing-c.sharing-c-results"
    )
    assert f"adopt consent --stack sharing-c {objects[1]}" in " ".join(tenant.error("preview").split())
    tenant.output("adopt", "consent", *objects[1:])
    tenant.up()

    descriptions = {role["name"]: role["description"] for role in stack_http.get("/management/v1/role").json()["roles"]}
    assert not [name for name in names if "adopt" in descriptions[name]]
    tenant.verb("preview", "--refresh", "--expect-no-changes")
    tenant.output("destroy", "--yes", "--engine", "embedded")
