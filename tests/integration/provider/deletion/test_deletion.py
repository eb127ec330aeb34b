"""Destroying under protect, retain and purge, and the guard that checks first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import NotEmptyError, ProtectedError
from lakewright.lakekeeper.provider.errors import CannotCountError, HoldsTablesError, StillHeldError
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.resource import Props, Resource

SOFT = {"type": "soft", "expiration_seconds": 86400}


def exists(http: httpx.Client, warehouse_id: str) -> bool:
    return http.get(f"/management/v1/warehouse/{warehouse_id}").status_code == 200


@pytest.fixture
def drop(http: httpx.Client) -> Callable[..., None]:
    """Return a function that drops a table as a user does, and keeps its files."""

    def drop_table(warehouse_id: str, namespace: str, name: str) -> None:
        url = f"/catalog/v1/{warehouse_id}/namespaces/{namespace}/tables/{name}"
        http.delete(url, params={"purgeRequested": "false"}).raise_for_status()

    return drop_table


@pytest.fixture
def guard(warehouse: Resource, server: Props) -> Resource:
    resource = Resource(DeletionGuardProvider())
    resource.up(server=server, warehouses={"main": warehouse.id})
    return resource


def test_guard_counts_and_names_soft_deleted_tables_too(
    guard: Resource, warehouse: Resource, warehouse_props: Props, make_table: Any, drop: Any
) -> None:
    warehouse.up(**warehouse_props, delete_profile=SOFT)
    make_table(warehouse.id, "sales", "orders")
    make_table(warehouse.id, "sales.daily", "totals")
    make_table(warehouse.id, "sales", "old")
    drop(warehouse.id, "sales", "old")
    names = r"sales\.daily\.totals, sales\.old \(soft-deleted\), sales\.orders"
    with pytest.raises(HoldsTablesError, match=rf"`main` holds 3 tables, 1 of them soft-deleted: {names}"):
        guard.destroy()


@pytest.fixture
def generic_tables(http: httpx.Client, warehouse: Resource) -> str:
    """The path of a namespace's generic tables: a table and a soft-deleted table."""
    http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["files"]}).raise_for_status()
    path = f"/lakekeeper/v1/{warehouse.id}/namespaces/files/generic-tables"
    for name in ("vectors", "old"):
        http.post(path, json={"name": name, "format": "lance"}).raise_for_status()
    soft = {"delete-profile": {"type": "soft", "expiration-seconds": 86400}}
    http.post(f"/management/v1/warehouse/{warehouse.id}/delete-profile", json=soft).raise_for_status()
    http.delete(f"{path}/old").raise_for_status()
    return path


@pytest.mark.since("0.13")
@pytest.mark.usefixtures("generic_tables")
def test_guard_counts_generic_tables(guard: Resource) -> None:
    names = r"files\.old \(soft-deleted\), files\.vectors"
    with pytest.raises(HoldsTablesError, match=rf"`main` holds 2 tables, 1 of them soft-deleted: {names}"):
        guard.destroy()


@pytest.mark.since("0.13")
def test_purge_removes_generic_tables_unless_protected(
    warehouse: Resource, warehouse_props: Props, http: httpx.Client, generic_tables: str
) -> None:
    table = http.get(generic_tables).json()["identifiers"][0]["id"]
    protection = f"/management/v1/warehouse/{warehouse.id}/generic-table/{table}/protection"
    http.post(protection, json={"protected": True}).raise_for_status()
    warehouse.up(**warehouse_props, deletion="purge")
    with pytest.raises(ProtectedError, match=r"protected: files\.vectors"):
        warehouse.destroy()
    assert http.get(f"{generic_tables}/vectors").status_code == 200
    http.post(protection, json={"protected": False}).raise_for_status()
    warehouse_id = warehouse.id
    warehouse.destroy()
    assert not exists(http, warehouse_id)


def test_guard_allows_an_empty_or_a_missing_warehouse(guard: Resource, warehouse: Resource, http: httpx.Client) -> None:
    http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["empty"]}).raise_for_status()
    guard.provider.delete(guard.id, guard.outs)
    http.delete(f"/catalog/v1/{warehouse.id}/namespaces/empty").raise_for_status()
    http.delete(f"/management/v1/warehouse/{warehouse.id}").raise_for_status()
    guard.destroy()


@pytest.mark.parametrize("deletion", ["retain", "purge"])
def test_guard_allows_intended_deletions(
    guard: Resource, warehouse: Resource, server: Props, make_table: Any, deletion: str
) -> None:
    make_table(warehouse.id, "sales", "orders")
    assert guard.up(server=server, warehouses={"main": warehouse.id}, deletion=deletion) == "update"
    guard.destroy()


def test_guard_refuses_if_it_cannot_count_tables(guard: Resource, warehouse: Resource, http: httpx.Client) -> None:
    http.post(f"/management/v1/warehouse/{warehouse.id}/deactivate").raise_for_status()
    with pytest.raises(CannotCountError, match=r"`main`.*is inactive"):
        guard.destroy()


def test_many_tables_are_counted_and_not_all_named(guard: Resource, warehouse: Resource, make_table: Any) -> None:
    for number in range(12):
        make_table(warehouse.id, "many", f"t{number:02}")
    with pytest.raises(HoldsTablesError, match=r"12 tables: many\.t00, .* and 2 more"):
        guard.destroy()


def test_protect_keeps_a_warehouse_without_the_guard(warehouse: Resource, make_table: Any, http: httpx.Client) -> None:
    """A warehouse with tables under `deletion: protect` is not deleted even if the guard did not run."""
    make_table(warehouse.id, "sales", "orders")
    with pytest.raises(HoldsTablesError, match=r"`main` .* is not deleted: it holds 1 table: sales\.orders"):
        warehouse.provider.delete(warehouse.id, warehouse.outs)
    assert exists(http, warehouse.id)


def test_undeclared_empty_namespaces_are_named(warehouse: Resource, http: httpx.Client) -> None:
    http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["stray"]}).raise_for_status()
    with pytest.raises(NotEmptyError, match="namespaces that are not declared: stray"):
        warehouse.destroy()


def test_empty_or_missing_warehouse_is_deleted(warehouse: Resource, http: httpx.Client) -> None:
    outs, warehouse_id = warehouse.outs, warehouse.id
    warehouse.destroy()
    assert not exists(http, warehouse_id)
    warehouse.provider.delete(warehouse_id, outs)


def test_purge_leaves_no_object_in_catalog_or_storage(  # noqa: PLR0917 - fixtures
    warehouse: Resource, warehouse_props: Props, make_table: Any, drop: Any, http: httpx.Client, objects: Any
) -> None:
    warehouse.up(**warehouse_props, delete_profile=SOFT, deletion="purge")
    make_table(warehouse.id, "sales", "orders")
    make_table(warehouse.id, "sales.daily", "totals")
    make_table(warehouse.id, "sales", "again")
    drop(warehouse.id, "sales", "again")
    make_table(warehouse.id, "sales", "again")
    drop(warehouse.id, "sales", "again")
    assert objects() != []
    warehouse_id = warehouse.id
    warehouse.destroy()
    assert not exists(http, warehouse_id)
    assert objects() == []


def test_purge_removes_views_too(warehouse: Resource, warehouse_props: Props, http: httpx.Client) -> None:
    warehouse.up(**warehouse_props, deletion="purge")
    root = f"/catalog/v1/{warehouse.id}/namespaces"
    http.post(root, json={"namespace": ["sales"]}).raise_for_status()
    view = {
        "name": "v",
        "schema": {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 0, "name": "x", "required": False, "type": "int"}],
        },
        "view-version": {
            "version-id": 1,
            "schema-id": 0,
            "timestamp-ms": 1,
            "summary": {},
            "default-namespace": ["sales"],
            "representations": [{"type": "sql", "sql": "select 1 as x", "dialect": "spark"}],
        },
        "properties": {},
    }
    http.post(f"{root}/sales/views", json=view).raise_for_status()
    warehouse_id = warehouse.id
    warehouse.destroy()
    assert not exists(http, warehouse_id)


def test_purge_activates_an_inactive_warehouse(
    warehouse: Resource, warehouse_props: Props, make_table: Any, http: httpx.Client, objects: Any
) -> None:
    make_table(warehouse.id, "sales", "orders")
    warehouse.up(**warehouse_props, deletion="purge", active=False)
    warehouse_id = warehouse.id
    warehouse.destroy()
    assert not exists(http, warehouse_id)
    assert objects() == []


def test_protected_objects_stop_a_purge_before_it_starts(
    warehouse: Resource, warehouse_props: Props, make_table: Any, http: httpx.Client
) -> None:
    warehouse.up(**warehouse_props, deletion="purge")
    make_table(warehouse.id, "a", "first")
    make_table(warehouse.id, "z", "last")
    namespaces = http.get(f"/catalog/v1/{warehouse.id}/namespaces", params={"returnUuids": "true"}).json()
    namespace_id = namespaces["namespace-uuids"][namespaces["namespaces"].index(["z"])]
    url = f"/management/v1/warehouse/{warehouse.id}/namespace/{namespace_id}/protection"
    http.post(url, json={"protected": True}).raise_for_status()
    with pytest.raises(ProtectedError, match=r"nothing was removed.*: z"):
        warehouse.destroy()
    assert http.head(f"/catalog/v1/{warehouse.id}/namespaces/a/tables/first").status_code == 204


def test_protected_warehouse_is_not_purged(
    warehouse: Resource, warehouse_props: Props, make_table: Any, http: httpx.Client
) -> None:
    warehouse.up(**warehouse_props, deletion="purge", protected=True)
    make_table(warehouse.id, "a", "first")
    with pytest.raises(ProtectedError):
        warehouse.destroy()
    assert http.head(f"/catalog/v1/{warehouse.id}/namespaces/a/tables/first").status_code == 204


def test_retain_leaves_everything_readable(
    warehouse: Resource, warehouse_props: Props, make_table: Any, http: httpx.Client
) -> None:
    warehouse.up(**warehouse_props, deletion="retain")
    make_table(warehouse.id, "a", "first")
    warehouse_id = warehouse.id
    warehouse.destroy()
    assert http.get(f"/catalog/v1/{warehouse_id}/namespaces/a/tables/first").status_code == 200


def test_destroy_uses_the_state_not_the_declaration(
    warehouse: Resource, warehouse_props: Props, make_table: Any, server: Props
) -> None:
    """A changed `deletion` takes effect with an `up`, which makes no call for it."""
    make_table(warehouse.id, "a", "first")
    news = warehouse.provider.check(warehouse.inputs, warehouse_props | {"deletion": "purge"}).inputs
    with pytest.raises(HoldsTablesError):
        warehouse.provider.delete(warehouse.id, warehouse.outs)
    outs = warehouse.provider.update(warehouse.id, warehouse.outs, news).outs
    assert outs is not None
    warehouse.provider.delete(warehouse.id, outs)


def test_guard_names_the_obstacles_of_a_destroy(
    guard: Resource, warehouse: Resource, server: Props, project_id: str, http: httpx.Client
) -> None:
    """None of these objects holds a table. Each would be refused after compute and roles are deleted."""
    http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["stray"]}).raise_for_status()
    http.post(f"/management/v1/warehouse/{warehouse.id}/protection", json={"protected": True}).raise_for_status()
    guard.up(
        server=server, warehouses={"main": warehouse.id}, namespaces={"main": ["sales"]}, projects={project_id: []}
    )
    with pytest.raises(StillHeldError) as refused:
        guard.destroy()
    message = str(refused.value)
    assert "warehouse `main` is protected" in message
    assert "namespaces that the stack does not declare: stray" in message
    assert f"project {project_id} holds warehouses that the stack does not declare" in message


def test_guard_names_undeclared_roles(
    guard: Resource, warehouse: Resource, server: Props, project_id: str, http: httpx.Client
) -> None:
    """A project with a role in it is not deleted. The server ignores the case of names."""
    ids = {}
    for name in ("Analysts", "strangers", "Others"):
        response = http.post("/management/v1/role", json={"name": name}, headers={"x-project-id": project_id})
        ids[name] = response.raise_for_status().json()["id"]
    guard_props: Props = {
        "server": server,
        "warehouses": {"main": warehouse.id},
        "projects": {project_id: [warehouse.id]},
    }
    guard.up(**guard_props, roles={project_id: ["analysts"]})
    refusal = "holds roles that the stack does not declare (delete them first): Others, strangers"
    with pytest.raises(StillHeldError, match=re.escape(f"project {project_id} {refusal}.")):
        guard.destroy()
    for name in ("strangers", "Others"):
        http.delete(f"/management/v1/role/{ids[name]}", headers={"x-project-id": project_id}).raise_for_status()
    guard.destroy()


def test_guard_ignores_a_deleted_project(guard: Resource, server: Props) -> None:
    guard.up(server=server, warehouses={}, projects={"gone": []}, roles={"gone": []})
    guard.destroy()


def test_guard_refuses_when_a_bucket_cannot_be_listed(
    guard: Resource, server: Props, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket_props = {"bucket": "any", "region": sandbox.aws.region, "endpoint": sandbox.aws.endpoint}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAUNKNOWN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "unknown")
    guard.up(server=server, warehouses={}, buckets=[bucket_props])
    with pytest.raises(CannotCountError, match=rf"bucket `any` at {sandbox.aws.endpoint} holds cannot be listed"):
        guard.destroy()


def test_guard_refuses_to_drop_a_full_warehouse(
    guard: Resource, warehouse: Resource, server: Props, make_table: Any
) -> None:
    """A rename or a changed `deletion` is no removal. Ids of new warehouses are unknown, as in a preview."""
    guard_props = {"server": server, "warehouses": {"main": warehouse.id}}
    guard.up(**guard_props, declared={"main": warehouse.id})
    make_table(warehouse.id, "sales", "orders")
    with pytest.raises(HoldsTablesError, match=r"`main` is no longer declared.* 1 table: sales\.orders"):
        guard.preview(server=server, warehouses={}, declared={"other": "unknown"})
    assert guard.preview(server=server, warehouses={"new": warehouse.id}, declared={"new": warehouse.id}) == "update"
    assert guard.preview(server=server, warehouses={}, declared={"main": warehouse.id}) == "update"


def test_project_is_kept_for_a_retained_warehouse(
    warehouse: Resource, server: Props, project_id: str, http: httpx.Client
) -> None:
    project = Resource(ProjectProvider())
    project.up(server=server, project_id=project_id, name=project_id, kept_warehouses=["MAIN", "gone"], adopt=True)
    project.provider.delete(project.id, project.outs)
    assert exists(http, warehouse.id)
    warehouse.destroy()
    project.provider.delete(project.id, project.outs)
    projects = http.get("/management/v1/project-list").json()["projects"]
    assert project_id not in [item["project-id"] for item in projects]


def test_guard_refuses_state_of_an_earlier_version(guard: Resource, server: Props) -> None:
    """Such state has buckets that the `aws` plugin would empty, and no record of their contents."""
    earlier: Props = {"server": server, "warehouses": {}, "roles": {"acme": []}, "buckets": []}
    guard.up(**earlier)
    with pytest.raises(StillHeldError, match="Run `up` first"):
        guard.destroy()
    guard.up(**earlier, declared={})
    guard.destroy()
