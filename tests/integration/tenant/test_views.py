"""Views of a tenant's spec: created, changed, compared for drift, accepted, renamed, written from a server, dropped."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import yaml

from tests.integration.tenant.conftest import MakeTenant, Tenant, list_changes

TABLE: dict[str, Any] = {"name": "executions.results.orders", "columns": [{"name": "id", "type": "long"}]}
VIEW: dict[str, Any] = {
    "name": "executions.results.large_orders",
    "columns": [{"name": "id", "type": "long"}],
    "sql": {"spark": "SELECT id FROM orders WHERE id > 10"},
    "properties": {"comment": "large orders"},
}


def write_views(tenant: Tenant, *views: dict[str, Any]) -> None:
    tenant.spec["views"] = list(views)
    tenant.write()


def view_url(tenant: Tenant, name: str) -> str:
    warehouse = tenant.verb("up", "--yes")["outputs"]["warehouse_ids"]["executions"]
    return f"/catalog/v1/{warehouse}/namespaces/results/views/{name}"


def change_query(lakekeeper: httpx.Client, url: str, sql: str) -> None:
    """Give a view another query, as an engine's `CREATE OR REPLACE VIEW` does."""
    metadata = lakekeeper.get(url).raise_for_status().json()["metadata"]
    (current,) = [entry for entry in metadata["versions"] if entry["version-id"] == metadata["current-version-id"]]
    version = current | {
        "version-id": 99,
        "representations": [{"type": "sql", "dialect": "spark", "sql": sql}],
    }
    updates = [
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    requirements = [{"type": "assert-view-uuid", "uuid": metadata["view-uuid"]}]
    lakekeeper.post(url, json={"requirements": requirements, "updates": updates}).raise_for_status()


def test_views_from_creation_to_removal(make_tenant: MakeTenant, lakekeeper: httpx.Client) -> None:
    tenant = make_tenant(tables=[TABLE], views=[VIEW])
    assert ("create", "View", f"{tenant.name}-{VIEW['name']}") in list_changes(tenant.up())
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()
    url = view_url(tenant, "large_orders")

    change_query(lakekeeper, url, "SELECT id FROM orders WHERE id > 20")
    (report,) = json.loads(tenant.run("drift", "--json").stdout)["stacks"]
    (change,) = report["differences"]
    assert (change["property"], change["found"]) == ("sql", {"spark": "SELECT id FROM orders WHERE id > 20"})
    tenant.output("drift", "--accept", "--yes")
    document = yaml.safe_load((tenant.folder / "tenants" / f"Pulumi.{tenant.name}.yaml").read_text())
    (written,) = document["config"]["lakewright:tenant"]["views"]
    assert written == VIEW | {"sql": {"spark": "SELECT id FROM orders WHERE id > 20"}}

    renamed = VIEW | {"name": "executions.results.huge_orders", "renamed_from": VIEW["name"], "protected": True}
    write_views(tenant, renamed)
    assert ("update", "View", f"{tenant.name}-executions.results.huge_orders") in list_changes(tenant.up())
    assert lakekeeper.get(url).status_code == httpx.codes.NOT_FOUND

    write_views(tenant)
    assert "is protected, and was not dropped" in tenant.error("up", "--yes", "--engine", "embedded")
    write_views(tenant, renamed | {"protected": False})
    tenant.up()
    write_views(tenant)
    assert ("delete", "View", f"{tenant.name}-executions.results.huge_orders") in list_changes(tenant.up())
    views = lakekeeper.get(url.rpartition("/")[0]).raise_for_status().json()["identifiers"]
    assert views == []
    tenant.verb("destroy", "--yes")


def test_view_depends_on_its_default_namespace(make_tenant: MakeTenant) -> None:
    """So it is dropped first: the server does not drop the default namespace of a view."""
    warehouse = {"name": "executions", "namespaces": ["results", "raw"], "deletion": "purge"}
    tenant = make_tenant(warehouses=[warehouse], views=[VIEW | {"default_namespace": "raw"}])
    tenant.up()

    resources = json.loads(tenant.output("stack", "export"))["deployment"]["resources"]
    (view,) = (resource for resource in resources if resource["type"].endswith(":View"))
    namespaces = {resource["urn"] for resource in resources if resource["type"].endswith(":Namespace")}
    assert len(namespaces) == 2
    assert namespaces <= {*view["dependencies"]}
    tenant.verb("destroy", "--yes")


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (VIEW | {"name": "executions.results.orders"}, "expected another name than that of the table"),
        (VIEW | {"name": "executions.raw.orders"}, "expected one of the namespaces of warehouse executions"),
        (VIEW | {"name": "other.results.orders"}, "expected one of the warehouses executions"),
        (VIEW | {"renamed_from": "other.results.orders"}, "views cannot move between warehouses"),
    ],
)
def test_views_that_fit_nowhere_are_refused(make_tenant: MakeTenant, view: dict[str, Any], message: str) -> None:
    tenant = make_tenant(tables=[TABLE], views=[view])

    assert message in tenant.error("preview", "--engine", "embedded")
