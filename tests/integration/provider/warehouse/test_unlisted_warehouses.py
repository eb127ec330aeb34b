"""Inactive warehouses on servers before 0.14, which no list shows: access by id, and messages about them."""

from __future__ import annotations

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import (
    AlreadyExistsError,
    NotEmptyError,
    NothingFoundError,
    UnsupportedServerError,
)
from lakewright.lakekeeper.identity.user import UserProvider
from lakewright.lakekeeper.provider.errors import CannotCountError, NotOwnedError
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright.lakekeeper.warehouse.lookup import get_warehouse, get_warehouses
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.old_server import OldServer
from tests.integration.provider.resource import Props, Resource

RELEASES = pytest.mark.parametrize("old", ["0.11", "0.13"], indirect=True)


@pytest.fixture
def warehouse_props(old: OldServer) -> Props:
    return old.warehouse()


@pytest.fixture
def inactive(old: OldServer, warehouse_props: Props) -> Resource:
    """A warehouse that a stack made and another user deactivated."""
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**warehouse_props)
    old.http.post(f"/management/v1/warehouse/{warehouse.id}/deactivate").raise_for_status()
    return warehouse


def test_deactivated_warehouse_is_read_and_restored(old: OldServer, warehouse_props: Props, inactive: Resource) -> None:
    assert inactive.refresh() == "update"
    assert inactive.up(**warehouse_props) == "update"
    assert inactive.refresh() == "same"
    old.http.post(f"/management/v1/warehouse/{inactive.id}/deactivate").raise_for_status()
    inactive.destroy()
    assert old.http.get(f"/management/v1/warehouse/{inactive.id}").status_code == 404


def test_inactive_warehouse_is_renamed_by_its_id(old: OldServer, warehouse_props: Props) -> None:
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**warehouse_props | {"active": False})
    assert warehouse.up(**warehouse_props | {"active": False, "name": "other"}) == "update"
    now = old.http.get(f"/management/v1/warehouse/{warehouse.id}").json()
    assert (now["name"], now["status"]) == ("other", "inactive")


@RELEASES
def test_name_of_an_unlisted_warehouse_is_taken(warehouse_props: Props, inactive: Resource, old: OldServer) -> None:
    elsewhere = warehouse_props | {"storage": old.storage()}
    with pytest.raises(
        AlreadyExistsError, match=r"409 WarehouseAlreadyExists: .* is not listed, since Lakekeeper 0\.1"
    ):
        Resource(WarehouseProvider()).up(**elsewhere)
    with pytest.raises(AlreadyExistsError, match=r"is not listed, since .* take it over with `adopt=True`"):
        Resource(WarehouseProvider()).up(**elsewhere | {"adopt": True})


@RELEASES
def test_location_of_an_unlisted_warehouse_is_taken(warehouse_props: Props, inactive: Resource) -> None:
    with pytest.raises(AlreadyExistsError, match=r"StorageProfileOverlap: .* may not be listed, since Lakekeeper 0\.1"):
        Resource(WarehouseProvider()).up(**warehouse_props)


@RELEASES
def test_rename_onto_an_unlisted_name_is_refused(warehouse_props: Props, inactive: Resource, old: OldServer) -> None:
    other = warehouse_props | {"name": "other", "storage": old.storage()}
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**other)
    with pytest.raises(
        NotOwnedError, match=r"cannot be named `main`: another warehouse .* is not listed, since Lakekeeper"
    ):
        warehouse.up(**other | {"name": "main"})


def test_reactivated_unlisted_warehouse_is_adopted(warehouse_props: Props, inactive: Resource, old: OldServer) -> None:
    old.http.post(f"/management/v1/warehouse/{inactive.id}/activate").raise_for_status()
    adopting = Resource(WarehouseProvider())
    assert adopting.up(**warehouse_props | {"adopt": True}) == "create"
    assert adopting.id == inactive.id


def test_guard_reaches_an_inactive_warehouse_by_its_id(warehouse_props: Props, inactive: Resource) -> None:
    guard = Resource(DeletionGuardProvider())
    guard.up(server=warehouse_props["server"], warehouses={"main": inactive.id}, deletion="protect")
    with pytest.raises(CannotCountError, match=r"warehouse `main` .* is inactive, so its tables cannot be counted"):
        guard.destroy()


@RELEASES
def test_project_that_holds_an_unlisted_warehouse(warehouse_props: Props, inactive: Resource) -> None:
    project = Resource(ProjectProvider())
    project.up(server=warehouse_props["server"], project_id=warehouse_props["project_id"], name="tenant", adopt=True)
    with pytest.raises(NotEmptyError, match=r"ProjectNotEmpty: .* may not be listed, since Lakekeeper"):
        project.destroy()


def test_lookups_of_inactive_warehouses(warehouse_props: Props, inactive: Resource, old: OldServer) -> None:
    server, project_id = warehouse_props["server"], warehouse_props["project_id"]
    assert get_warehouse(server=server, warehouse_id=inactive.id).active is False
    if old.is_at_least("0.14"):
        assert [
            warehouse.name for warehouse in get_warehouses(server=server, project_id=project_id, status="inactive")
        ] == ["main"]
        return
    assert get_warehouses(server=server, project_id=project_id) == []
    with pytest.raises(UnsupportedServerError, match="Look up each inactive warehouse by `warehouse_id`"):
        get_warehouses(server=server, project_id=project_id, status="inactive")
    with pytest.raises(NothingFoundError, match="Inactive warehouses are found only by `warehouse_id`"):
        get_warehouse(server=server, project_id=project_id, name="main")


def test_deleted_user_can_be_recreated(old: OldServer) -> None:
    """The server keeps the row of a deleted user, so its id remains taken."""
    user_props = {"server": old.server, "user_id": "oidc~again", "name": "Ada", "user_type": "human"}
    user = Resource(UserProvider())
    user.up(**user_props)
    user.destroy()
    assert old.http.get("/management/v1/user/oidc~again").status_code == 404
    assert user.up(**user_props | {"name": "Ada L."}) == "create"
    assert user.refresh() == "same"
    assert user.up(**user_props) == "update"


def test_empty_page_tokens_are_refused_by_releases_only(
    old: OldServer, inactive: Resource, warehouse_props: Props
) -> None:
    """The stand-in responds as each version does to parameters that the client must omit."""
    header = {"x-project-id": warehouse_props["project_id"]}
    refused = {
        path: old.http.get(f"/management/v1/{path}", params={"pageToken": ""}, headers=header).status_code
        for path in ("user", "role")
    }
    assert refused == dict.fromkeys(("user", "role"), 200 if old.is_at_least("0.14") else 400)
    both = {"warehouseStatus": ["active", "inactive"]}
    response: httpx.Response = old.http.get("/management/v1/warehouse", params=both, headers=header)
    assert response.status_code == (200 if old.is_at_least("0.14") else 400)
