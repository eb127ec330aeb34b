"""Lookups of existing objects: plain functions, typed results, and errors that list what exists."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import httpx
import pulumi
import pytest
from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper import (
    get_catalog_config,
    get_deleted_tables,
    get_namespace,
    get_namespaces,
    get_project,
    get_projects,
    get_server_info,
    get_warehouse,
    get_warehouse_output,
    get_warehouses,
)
from lakewright.lakekeeper.api.connection.errors import InvalidLookupError, NothingFoundError, UnreachableError

from tests.integration.provider.resource import Props, Resource


@pytest.fixture
def light_server(light_project: Props) -> Props:
    return light_project["server"]


@pytest.fixture
def main(light: httpx.Client, light_project: Props) -> str:
    """A warehouse that no stack declares."""
    profile = {"type": "s3", "bucket": "lake", "key-prefix": "main", "region": "us-east-1", "sts-enabled": False}
    key = {
        "type": "s3",
        "credential-type": "access-key",
        "aws-access-key-id": "AKIA1",
        "aws-secret-access-key": "hidden",
    }
    body = {"warehouse-name": "main", "storage-profile": profile, "storage-credential": key}
    headers = {"x-project-id": light_project["project_id"]}
    response = light.post("/management/v1/warehouse", json=body, headers=headers).raise_for_status().json()
    return response["warehouse-id"]


def add_namespace(light: httpx.Client, warehouse_id: str, *path: str, **properties: str) -> None:
    body = {"namespace": path, "properties": properties}
    light.post(f"/catalog/v1/{warehouse_id}/namespaces", json=body).raise_for_status()


def test_server(light_server: Props) -> None:
    info = get_server_info(server=light_server)
    assert info.endpoint == light_server["endpoint"]
    assert info.bootstrapped
    assert info.authz_backend == "allow-all"
    assert "tabular_purge" in info.queues


def test_projects_by_id_and_by_name(light: httpx.Client, light_project: Props) -> None:
    server, project_id = light_project["server"], light_project["project_id"]
    assert get_project(server=server, project_id=project_id).name == project_id
    assert get_project(server=server, name=project_id).project_id == project_id
    assert get_project(server=server).name == "Default Project"
    assert project_id in [project.project_id for project in get_projects(server=server)]
    body = {"project-id": f"{project_id}-2", "project-name": project_id}
    light.post("/management/v1/project", json=body).raise_for_status()
    with pytest.raises(NothingFoundError, match=rf"2 projects .* `{project_id}`, `{project_id}-2`.*by `project_id`"):
        get_project(server=server, name=project_id)
    with pytest.raises(
        NothingFoundError, match=r"project nowhere is not at http.* This identity sees: .*Default Project"
    ):
        get_project(server=server, project_id="nowhere")
    with pytest.raises(NothingFoundError, match=r"no project at http.* is named `nobody`"):
        get_project(server=server, name="nobody")


@pytest.mark.since("0.12")  # Older servers do not show the kind of a credential.
def test_warehouse_by_id_and_by_name(light_project: Props, main: str) -> None:
    server = light_project["server"]
    lookup = get_warehouse(server=server, warehouse_id=main)
    assert (lookup.name, lookup.project_id) == ("main", light_project["project_id"])
    assert (lookup.active, lookup.protected, lookup.soft_delete_seconds) == (True, False, None)
    assert lookup.storage["bucket"] == "lake"
    assert lookup.storage["sts_enabled"] is False
    assert lookup.credential_type == "access-key"
    assert "hidden" not in lookup.model_dump_json()
    assert get_warehouse(**light_project, name="MAIN") == lookup  # The server ignores the case of names.
    with pytest.raises(NothingFoundError, match=r"warehouse `other` is not in project .* Available: `main`\."):
        get_warehouse(**light_project, name="other")
    with pytest.raises(NothingFoundError, match="hidden from this identity"):
        get_warehouse(server=server, warehouse_id="00000000-0000-0000-0000-000000000001")
    with pytest.raises(InvalidLookupError, match="by `warehouse_id`, or by `project_id` and `name`"):
        get_warehouse(server=server, name="main")


@pytest.mark.since("0.14")
def test_inactive_warehouses_of_a_project_are_listed(light: httpx.Client, light_project: Props, main: str) -> None:
    light.post(f"/management/v1/warehouse/{main}/deactivate").raise_for_status()
    assert [warehouse.warehouse_id for warehouse in get_warehouses(**light_project)] == [main]
    assert [warehouse.active for warehouse in get_warehouses(**light_project, status="inactive")] == [False]
    assert get_warehouses(**light_project, status="active") == []


@pytest.mark.since("0.13")  # Older servers add an id to the location.
def test_namespaces_by_level_and_by_name(light: httpx.Client, light_server: Props, main: str) -> None:
    add_namespace(light, main, "sales", owner="a")
    add_namespace(light, main, "sales", "daily")
    add_namespace(light, main, "hr")
    warehouse_args = {"server": light_server, "warehouse_id": main}
    assert [namespace.name for namespace in get_namespaces(**warehouse_args)] == ["hr", "sales"]
    assert [namespace.name for namespace in get_namespaces(**warehouse_args, parent="sales")] == ["sales.daily"]
    assert [namespace.name for namespace in get_namespaces(**warehouse_args, recursive=True)] == [
        "hr",
        "sales",
        "sales.daily",
    ]
    sales = get_namespace(**warehouse_args, name="sales")
    assert (sales.properties, sales.protected, sales.location) == ({"owner": "a"}, False, "s3://lake/main")
    assert sales.namespace_id == get_namespaces(**warehouse_args)[1].namespace_id
    with pytest.raises(NothingFoundError, match=r"namespace `nothing` is not in warehouse `main`"):
        get_namespace(**warehouse_args, name="nothing")
    with pytest.raises(NothingFoundError, match=r"namespace `nothing` is not in warehouse `main`"):
        get_namespaces(**warehouse_args, parent="nothing")
    light.post(f"/management/v1/warehouse/{main}/deactivate").raise_for_status()
    with pytest.raises(NothingFoundError, match=r"warehouse `main` .* is inactive, so its contents cannot be seen"):
        get_namespace(**warehouse_args, name="sales")


def test_catalog_configuration(light_project: Props, main: str) -> None:
    server, project_id = light_project["server"], light_project["project_id"]
    config = get_catalog_config(server=server, project_id=project_id, warehouse="main")
    assert config.uri == f"{server['endpoint']}/catalog"
    assert config.prefix == main
    assert "GET /v1/{prefix}/namespaces" in config.endpoints
    with pytest.raises(NothingFoundError, match="no active warehouse `main` is in the default project"):
        get_catalog_config(server=server, warehouse="main")


def test_deleted_tables(warehouse: Resource, warehouse_props: Props, make_table: Any, http: httpx.Client) -> None:
    warehouse.up(**warehouse_props, delete_profile={"type": "soft", "expiration_seconds": 3600})
    warehouse_args = {"server": warehouse_props["server"], "warehouse_id": warehouse.id}
    make_table(warehouse.id, "sales", "orders")
    make_table(warehouse.id, "hr", "people")
    assert get_deleted_tables(**warehouse_args) == []
    for namespace, name in (("sales", "orders"), ("hr", "people")):
        http.delete(f"/catalog/v1/{warehouse.id}/namespaces/{namespace}/tables/{name}").raise_for_status()
    assert [f"{table.namespace}.{table.name}" for table in get_deleted_tables(**warehouse_args)] == [
        "hr.people",
        "sales.orders",
    ]
    (orders,) = get_deleted_tables(**warehouse_args, namespace="sales")
    assert orders.kind == "table"
    assert (orders.expires_at - orders.deleted_at).total_seconds() == pytest.approx(3600, abs=2)


def test_mistakes_are_named_without_secrets(light_server: Props) -> None:
    raw = {**light_server, "auth": {"kind": "token", "token": "ey.very.secret"}}
    with pytest.raises(InvalidLookupError, match=r"auth\.token\.token: .*must be a reference to a secret") as wrong:
        get_server_info(server=raw)
    assert "ey.very.secret" not in str(wrong.value)
    with pytest.raises(UnreachableError, match=r"Lakekeeper at http://127\.0\.0\.1:9 cannot be reached"):
        get_server_info(server={"endpoint": "http://127.0.0.1:9"})


def test_token_is_read_when_it_is_used(light_server: Props, monkeypatch: pytest.MonkeyPatch) -> None:
    by_token = {**light_server, "auth": {"kind": "token", "token": "env:LOOK_UP_TOKEN"}}
    with pytest.raises(UnresolvedCredentialError, match="set the environment variable LOOK_UP_TOKEN"):
        get_server_info(server=by_token)
    monkeypatch.setenv("LOOK_UP_TOKEN", "a-token")
    assert get_server_info(server=by_token).bootstrapped


def test_token_from_the_stack_configuration(light_server: Props, monkeypatch: pytest.MonkeyPatch) -> None:
    by_config = {**light_server, "auth": {"kind": "token", "token": "config:look-up-token"}}
    with pytest.raises(UnresolvedCredentialError, match="run `lakewright config set --secret look-up-token`"):
        get_server_info(server=by_config)
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({f"{pulumi.get_project()}:look-up-token": "a-token"}))
    assert get_server_info(server=by_config).bootstrapped


def test_wrong_argument_of_an_output_lookup_fails_at_its_line(light_server: Props) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'warehouse'"):
        get_warehouse_output(server=light_server, warehouse=pulumi.Output.from_input("main"))


def test_lookups_do_not_import_pulumi(light_server: Props) -> None:
    program = (
        "import sys; from lakewright.lakekeeper import get_server_info;"
        f"get_server_info(server={light_server!r}); assert 'pulumi' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
