"""The provider on every server version: a test for each row of the table of differences, and the life cycle."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lakewright.lakekeeper.api.catalog import tabulars
from lakewright.lakekeeper.api.connection.errors import UnsupportedServerError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.lakekeeper.warehouse.task_queue_config import TaskQueueConfigProvider
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.protocol.versions import REPORTED
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.integration.provider.old_server import OldServer
from tests.integration.provider.resource import Props, Resource

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


def read_refusal(resource: Resource, **props: Any) -> str:
    """Return the error about properties that this version does not know."""
    with pytest.raises(UnsupportedServerError) as refusal:
        resource.up(**props)
    return str(refusal.value)


def test_life_of_a_warehouse_and_a_namespace(old: OldServer) -> None:
    warehouse_props = old.warehouse(delete_profile={"type": "soft", "expiration_seconds": 60})
    warehouse, namespace = Resource(WarehouseProvider()), Resource(NamespaceProvider())
    assert warehouse.up(**warehouse_props) == "create"
    namespace_props = {
        "server": old.server,
        "warehouse_id": warehouse.id,
        "name": "sales",
        "properties": {"owner": "a"},
    }
    assert namespace.up(**namespace_props) == "create"
    assert (warehouse.refresh(), namespace.refresh()) == ("same", "same")

    changed = warehouse_props | {
        "name": "other",
        "storage": warehouse_props["storage"] | {"push_s3_delete_disabled": False},
        "credential": warehouse_props["credential"] | {"secret_access_key": "env:OTHER_KEY"},
        "delete_profile": {"type": "hard"},
        "protected": True,
    }
    assert warehouse.up(**changed) == "update"
    assert namespace.up(**namespace_props | {"properties": {"owner": "b"}, "protected": True}) == "update"
    assert (warehouse.refresh(), namespace.refresh()) == ("same", "same")

    path = f"/management/v1/warehouse/{warehouse.id}"
    soft = {"delete-profile": {"type": "soft", "expiration-seconds": 5}}
    for call, body in {"delete-profile": soft, "protection": {"protected": False}, "deactivate": {}}.items():
        old.http.post(f"{path}/{call}", json=body).raise_for_status()
    assert warehouse.refresh() == "update"
    assert warehouse.up(**changed) == "update"
    property_changes = {"removals": ["owner"], "updates": {"stray": "x"}}
    old.http.post(f"/catalog/v1/{warehouse.id}/namespaces/sales/properties", json=property_changes).raise_for_status()
    assert namespace.refresh() == "update"
    assert namespace.up(**namespace_props | {"properties": {"owner": "b"}, "protected": True}) == "update"
    assert (warehouse.refresh(), namespace.refresh()) == ("same", "same")

    namespace.up(**namespace_props | {"protected": False})
    warehouse.up(**changed | {"protected": False})
    namespace.destroy()
    warehouse.destroy()
    assert old.http.get(path).status_code == 404


def test_row_default_project_calls_are_not_needed(old: OldServer) -> None:
    project, project_props = Resource(ProjectProvider()), old.project()
    assert project.up(**project_props) == "create"
    assert project.up(**project_props | {"name": "renamed"}) == "update"
    assert project.refresh() == "same"
    project.destroy()


def test_row_warehouse_id_key_and_s3_key_names(old: OldServer) -> None:
    """Any id key of the response works, and the server understands its access key under either name."""
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**old.warehouse())
    response = old.http.get(f"/management/v1/warehouse/{warehouse.id}").json()
    assert response["warehouse-id"] == warehouse.id
    assert ("storage-credential-type" in response) == old.is_at_least("0.12")
    assert warehouse.refresh() == "same"


@pytest.mark.parametrize(
    ("name", "since"),
    [("sts_endpoint", "0.12"), ("storage_layout", "0.12"), ("format versions", "0.13")],
)
def test_row_fields_that_would_be_dropped_are_refused(old: OldServer, name: str, since: str) -> None:
    warehouse_props = old.warehouse()
    changes: dict[str, Props] = {
        "sts_endpoint": {"storage": warehouse_props["storage"] | {"sts_endpoint": "http://sts.test"}},
        "storage_layout": {
            "storage": warehouse_props["storage"] | {"storage_layout": {"type": "tabular-only", "tabular": "{uuid}"}}
        },
        "format versions": {"allowed_format_versions": [2], "default_format_version": 2},
    }
    warehouse = Resource(WarehouseProvider())
    if old.is_at_least(since):
        assert warehouse.up(**warehouse_props | changes[name]) == "create"
        assert warehouse.refresh() == "same"
        return
    message = read_refusal(warehouse, **warehouse_props | changes[name])
    assert f"needs Lakekeeper {since} or newer; {old.server['endpoint']} runs {REPORTED[old.version]}" in message
    header = {"x-project-id": warehouse_props["project_id"]}
    assert old.http.get("/management/v1/warehouse", headers=header).json() == {"warehouses": []}


def test_row_region_update(old: OldServer) -> None:
    warehouse, warehouse_props = Resource(WarehouseProvider()), old.warehouse()
    warehouse.up(**warehouse_props)
    moved = warehouse_props | {"storage": warehouse_props["storage"] | {"region": "eu-west-1"}}
    assert warehouse.preview(**moved) == ("update" if old.is_at_least("0.12") else "replace")
    warehouse.up(**moved)
    assert warehouse.refresh() == "same"


def test_row_credential_kind_reported_or_not(old: OldServer) -> None:
    """A removed credential is drift where servers report the kind, and no false alarm elsewhere."""
    warehouse, warehouse_props = Resource(WarehouseProvider()), old.warehouse()
    warehouse.up(**warehouse_props)
    path = f"/management/v1/warehouse/{warehouse.id}/storage-credential"
    old.http.post(path, json={"new-storage-credential": None}).raise_for_status()
    assert warehouse.refresh() == ("update" if old.is_at_least("0.12") else "same")


def test_row_not_found_type_of_warehouses(old: OldServer) -> None:
    warehouse, namespace = Resource(WarehouseProvider()), Resource(NamespaceProvider())
    warehouse.up(**old.warehouse())
    namespace.up(server=old.server, warehouse_id=warehouse.id, name="n")
    old.http.delete(f"/catalog/v1/{warehouse.id}/namespaces/n").raise_for_status()
    old.http.delete(f"/management/v1/warehouse/{warehouse.id}").raise_for_status()
    assert (namespace.refresh(), warehouse.refresh()) == ("delete", "delete")


def test_row_name_clash_type(old: OldServer) -> None:
    """An existing warehouse is adopted, and no second warehouse is created."""
    warehouse_props = old.warehouse()
    first, adopted = Resource(WarehouseProvider()), Resource(WarehouseProvider())
    first.up(**warehouse_props)
    assert adopted.up(**warehouse_props, adopt=True) == "create"
    assert adopted.id == first.id


def test_row_task_queue_names(old: OldServer) -> None:
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**old.warehouse())
    queue = Resource(TaskQueueConfigProvider())
    queue_args = {"server": old.server, "warehouse_id": warehouse.id, "queue": "soft_deletion"}
    queue.up(**queue_args, max_seconds_since_last_heartbeat=77)
    assert queue.refresh() == "same"
    name = "soft_deletion" if old.is_at_least("0.14") else "tabular_expiration"
    response = old.http.get(f"/management/v1/warehouse/{warehouse.id}/task-queue/{name}/config").json()
    assert response == {"queue-config": {"queue-name": name}, "max-seconds-since-last-heartbeat": 77}


def test_row_undrop_path_and_default_layout(old: OldServer) -> None:
    """A table is found at the path of its version, and restored."""
    warehouse, namespace = Resource(WarehouseProvider()), Resource(NamespaceProvider())
    warehouse.up(**old.warehouse(delete_profile={"type": "soft", "expiration_seconds": 3600}))
    namespace.up(server=old.server, warehouse_id=warehouse.id, name="n")
    root = f"/catalog/v1/{warehouse.id}/namespaces/n/tables"
    location = (
        old.http.post(root, json={"name": "t", "schema": SCHEMA}).raise_for_status().json()["metadata"]["location"]
    )
    base = f"s3://{old.bucket}/{warehouse.inputs['storage']['key_prefix']}"
    assert len(location.removeprefix(f"{base}/").split("/")) == (1 if old.is_at_least("0.13") else 2)
    assert namespace.refresh() == "same"

    old.http.delete(f"{root}/t").raise_for_status()
    client = old.client()
    [dropped] = tabulars.list_dropped(client, warehouse.id)
    tabulars.undrop(client, warehouse.id, dropped)
    assert [tabular.name for tabular in tabulars.live(client, warehouse.id, ("n",))] == ["t"]


def test_row_role_identifiers(old: OldServer) -> None:
    project = old.project()
    Resource(ProjectProvider()).up(**project)
    role = Resource(RoleProvider())
    role_props = {"server": old.server, "project_id": project["project_id"], "name": "readers"}
    assert role.up(**role_props) == "create"
    assert role.refresh() == "same"
    assert (role.outs.get("ident") is not None) == old.is_at_least("0.12")
    sourced = role_props | {"name": "sourced", "provider_id": "okta", "source_id": "42"}
    if old.is_at_least("0.12"):
        assert Resource(RoleProvider()).up(**sourced) == "create"
    else:
        assert "`provider_id` needs Lakekeeper 0.12 or newer" in read_refusal(Resource(RoleProvider()), **sourced)


def test_row_grants(old: OldServer) -> None:
    """Under allow-all only the newest server keeps grants. Older servers are named, and receive no request."""
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**old.warehouse())
    grant = Resource(GrantProvider())
    grant_props = {
        "server": old.server,
        "on": {"type": "warehouse", "warehouse_id": warehouse.id},
        "privilege": "use",
        "user": "oidc~ci",
    }
    if old.is_at_least("0.14"):
        user = {"id": "oidc~ci", "name": "ci", "user-type": "application", "update-if-exists": True}
        old.http.post("/management/v1/user", json=user).raise_for_status()
        assert grant.up(**grant_props) == "create"
        assert grant.refresh() == "same"
        return
    refusal = grant.failures(**grant_props)["on"]
    assert re.match(f"{re.escape(old.server['endpoint'])} stores no .*runs Lakekeeper 0.1[123]", refusal)


def test_row_dry_runs(old: OldServer) -> None:
    project = old.project()
    Resource(ProjectProvider()).up(**project)
    profile = {"type": "s3", "bucket": old.bucket, "region": "us-east-1", "sts-enabled": False}
    body = {"warehouse-name": "x", "storage-profile": profile}
    checks = warehouses.validate_creation(old.client(), project["project_id"], body)
    assert (checks is not None) == old.is_at_least("0.14")


def test_row_info_keys(old: OldServer) -> None:
    server = old.client().server()
    assert ".".join(map(str, server.version)) == old.version
    assert server.version_text == REPORTED[old.version]


@pytest.mark.parametrize("text", ["0.9.5", "0.10.4"])
def test_older_servers_are_refused_by_name(text: str) -> None:
    async def info(_request: Any) -> JSONResponse:
        return JSONResponse({"version": text, "bootstrapped": True, "server-id": "x", "queues": []})

    with serve(Starlette(routes=[Route("/management/v1/info", info)])) as endpoint:
        project_props = {"server": {"endpoint": endpoint}, "project_id": "p", "name": "tenant"}
        with pytest.raises(UnsupportedServerError, match=f"{endpoint} runs Lakekeeper {text}; 0.11 or newer is needed"):
            Resource(ProjectProvider()).up(**project_props)
