"""Previews with `adopt=True`: the object to adopt, its changes, or the reason why adoption is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.grants.grants import GrantsProvider
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.identity.user import UserProvider
from lakewright.lakekeeper.provider.inputs import UNKNOWN
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.table.resource import TableProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.resource import Props, Resource

SOFT = {"type": "soft", "expiration_seconds": 60}


@pytest.fixture
def messages(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: capsys.readouterr().err


@pytest.fixture
def main(light_project: Props, monkeypatch: pytest.MonkeyPatch) -> Props:
    """Properties of a warehouse that another stack has created."""
    monkeypatch.setenv("STORAGE_KEY_ID", "AKIA1")
    monkeypatch.setenv("STORAGE_SECRET", "hidden")
    storage = {"bucket": "lake", "key_prefix": "main", "region": "us-east-1", "flavor": "s3-compat"}
    keys = {"type": "access-key", "access_key_id": "env:STORAGE_KEY_ID", "secret_access_key": "env:STORAGE_SECRET"}
    warehouse_props = light_project | {"name": "main", "storage": storage, "credential": keys}
    Resource(WarehouseProvider()).up(**warehouse_props)
    return warehouse_props | {"adopt": True}


@pytest.mark.since("0.12")  # Older servers do not show the kind of a credential.
def test_warehouse_with_the_changes_of_adoption(main: Props, messages: Any) -> None:
    changed = main | {"protected": True, "delete_profile": SOFT}
    assert Resource(WarehouseProvider()).preview(**changed) == "create"
    output = messages()
    assert "note: warehouse `main` in project" in output
    assert "exists already and is adopted; this changes: delete_profile: {'type': 'hard'} -> " in output
    assert "sent again, as the server does not show it: credential" in output
    assert "protected: False -> True" in output
    assert "hidden" not in output


def test_up_does_what_the_preview_reported(main: Props, light: httpx.Client) -> None:
    adopted = Resource(WarehouseProvider())
    adopted.up(**main | {"protected": True, "delete_profile": SOFT, "name": "MAIN"})
    live_warehouse = light.get(f"/management/v1/warehouse/{adopted.id}").json()
    assert (live_warehouse["name"], live_warehouse["protected"]) == ("MAIN", True)
    assert live_warehouse["delete-profile"] == {"type": "soft", "expiration-seconds": 60}
    assert adopted.refresh() == "same"


def test_unchangeable_difference_fails_the_preview(main: Props) -> None:
    props_in_other_bucket = main | {"storage": main["storage"] | {"bucket": "other"}}
    refused = Resource(WarehouseProvider()).failures(**props_in_other_bucket)["adopt"]
    assert "the server cannot change storage.bucket: 'lake' -> 'other'. Declare the values that it has." in refused


def test_nothing_is_reported_where_nothing_exists(main: Props, messages: Any) -> None:
    Resource(WarehouseProvider()).preview(**main | {"name": "new"})
    assert messages() == ""


def test_preview_refuses_an_existing_object_without_adopt(main: Props, messages: Any) -> None:
    refused = Resource(WarehouseProvider()).failures(**main | {"adopt": False})["adopt"]
    assert "warehouse `main` in project" in refused
    assert "exists already, and this stack did not make it" in refused
    assert messages() == ""


def test_nothing_is_reported_for_an_unknown_project(main: Props, guarded_project: Props, messages: Any) -> None:
    for target_props in (main, main | guarded_project):
        Resource(WarehouseProvider()).preview(**target_props | {"project_id": "still-to-be-made"})
    assert messages() == ""


def test_object_to_be_replaced_is_not_adopted(main: Props, messages: Any) -> None:
    """An engine checks the new object without state, while the old object still exists."""
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**main)
    messages()
    moved = main | {"storage": main["storage"] | {"key_prefix": "moved"}}
    assert warehouse.preview(**moved) == "replace"
    assert Resource(WarehouseProvider()).failures(**moved) == {}
    assert messages() == ""


def test_namespace_and_project(main: Props, light_project: Props, light: httpx.Client, messages: Any) -> None:
    response = light.get("/management/v1/warehouse", headers={"x-project-id": main["project_id"]}).json()
    warehouse_id = response["warehouses"][0]["id"]
    body = {"namespace": ["sales"], "properties": {"owner": "b"}}
    light.post(f"/catalog/v1/{warehouse_id}/namespaces", json=body).raise_for_status()
    namespace: Props = {"server": main["server"], "warehouse_id": warehouse_id, "name": "sales", "adopt": True}
    Resource(NamespaceProvider()).preview(**namespace, properties={"owner": "a"})
    assert "this changes: properties: {'owner': 'b'} -> {'owner': 'a'}" in messages()
    Resource(NamespaceProvider()).preview(**namespace)
    assert "nothing of it changes" in messages()
    Resource(ProjectProvider()).preview(**light_project, name="tenant", adopt=True)
    assert "this changes: name: " in messages()


def test_user_and_role(light_project: Props, light: httpx.Client, unique: str, messages: Any) -> None:
    server, user = light_project["server"], {"id": f"oidc~{unique}", "name": "Ann", "user-type": "human"}
    light.post("/management/v1/user", json=user).raise_for_status()
    user_props = {"user_id": user["id"], "name": "Anna", "user_type": "human"}
    Resource(UserProvider()).preview(server=server, **user_props, adopt=True)
    assert "this changes: name: 'Ann' -> 'Anna'" in messages()
    headers = {"x-project-id": light_project["project_id"]}
    light.post("/management/v1/role", json={"name": "analysts"}, headers=headers).raise_for_status()
    Resource(RoleProvider()).preview(**light_project, name="Analysts", description="all", adopt=True)
    output = messages()
    assert "note: role `Analysts` of project" in output
    assert "this changes: name: 'analysts' -> 'Analysts'" in output


def test_unknown_objects_are_not_looked_up(main: Props, messages: Any) -> None:
    for unknown in ({"project_id": UNKNOWN}, {"server": {"endpoint": UNKNOWN}}, {"name": UNKNOWN}):
        assert Resource(WarehouseProvider()).provider.check({}, main | unknown).failures == []
    assert messages() == ""


@pytest.mark.parametrize("name", ["storage", "credential"])
def test_warehouse_with_unknown_properties(main: Props, messages: Any, name: str) -> None:
    assert Resource(WarehouseProvider()).provider.check({}, main | {name: UNKNOWN}).failures == []
    assert f"until these properties are known: `{name}`" in messages()
    later = main | {"credential": {"type": "aws-system-identity", "external_id": UNKNOWN}}
    assert Resource(WarehouseProvider()).provider.check({}, later).failures == []
    assert "exists already and is adopted; this changes: credential" in messages()


def test_table_and_grants_with_unknown_properties(guarded_project: Props, messages: Any) -> None:
    server, project_id = guarded_project["server"], guarded_project["project_id"]
    table = {"warehouse_id": "w", "namespace": "a", "name": "t", "columns": UNKNOWN, "properties": UNKNOWN}
    assert Resource(TableProvider()).provider.check({}, {"server": server, **table, "adopt": True}).failures == []
    assert "until these properties are known: `columns`, `properties`" in messages()
    grants = {"on": {"type": "project", "project_id": project_id}, "grants": UNKNOWN, "declared_as": "all"}
    assert Resource(GrantsProvider()).provider.check({}, {"server": server, **grants, "adopt": True}).failures == []
    assert "until these properties are known: `grants`" in messages()


def test_unreachable_server_is_a_warning(main: Props, messages: Any) -> None:
    nowhere = main | {"server": {"endpoint": "http://127.0.0.1:9"}}
    assert Resource(WarehouseProvider()).failures(**nowhere) == {}
    assert "warning: warehouse `main`" in (output := messages())
    assert "could not check for an existing object to adopt: Lakekeeper at http://127.0.0.1:9 cannot" in output
