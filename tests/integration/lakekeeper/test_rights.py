"""Rights under OpenFGA: the actions of each relation, inheritance, visibility, and refusals."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.routing import APIRoute
from lakewright_sandbox.lakekeeper.authz.actions import ACTIONS
from lakewright_sandbox.lakekeeper.authz.enforcement.required_actions import (
    CATALOG_ACTIONS,
    PATH_ACTIONS,
    PROJECT_ACTIONS,
    SERVER_ACTIONS,
    is_unchecked,
)
from lakewright_sandbox.lakekeeper.authz.model import RULES
from lakewright_sandbox.lakekeeper.routers import all_routers

from tests.integration.lakekeeper.conftest import VIEW
from tests.integration.lakekeeper.rules import get_refusal

V1 = "/management/v1"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


@pytest.fixture
def asking(people: Any, warehouse: str, give: Any) -> tuple[Any, str, Any]:
    return people, warehouse, give


@pytest.fixture
def warehouse(session_warehouse: str) -> str:
    return session_warehouse


def namespace_id(people: Any, warehouse: str, name: str) -> str:
    response = people("root").get(f"/catalog/v1/{warehouse}/namespaces/{name}")
    return response.json()["properties"]["namespace_id"]


def table_id(people: Any, warehouse: str, namespace: str) -> str:
    response = people("root").get(f"/catalog/v1/{warehouse}/namespaces/{namespace}/tables/t")
    return response.json()["metadata"]["table-uuid"]


def test_every_call_has_a_required_action() -> None:
    routes = [route for router in all_routers() for route in router.routes]
    calls = {f"{method} {route.path}" for route in routes if isinstance(route, APIRoute) for method in route.methods}
    needs = PATH_ACTIONS.keys() | PROJECT_ACTIONS.keys() | SERVER_ACTIONS.keys() | CATALOG_ACTIONS.keys()
    assert needs - calls == set()
    assert {call for call in calls - needs if not is_unchecked(call)} == set()


def test_every_action_needs_a_relation_that_the_model_has() -> None:
    unknown = {
        (kind, relation)
        for kind, relations in ACTIONS.items()
        for relation in relations.values()
        if relation not in RULES[kind]
    }
    assert unknown == set()


@pytest.mark.parametrize(
    ("relation", "allowed", "refused"),
    [
        ("describe", {"get_metadata", "list_everything"}, {"create_namespace", "rename", "read_grants"}),
        ("select", {"get_metadata", "list_everything"}, {"create_namespace", "rename"}),
        ("create", {"get_metadata", "create_namespace"}, {"rename", "delete"}),
        ("modify", {"rename", "delete", "update_storage"}, {"create_namespace", "read_grants", "manage_tags"}),
        ("ownership", {"rename", "create_namespace", "read_grants"}, {"manage_tags"}),
        ("manage_grants", {"read_grants"}, {"get_metadata", "rename"}),
        ("pass_grants", set(), {"read_grants", "get_metadata"}),
        ("manage_tags", {"manage_tags"}, {"get_metadata"}),
    ],
)
def test_actions_of_a_relation_to_a_warehouse(
    asking: tuple[Any, str, Any], relation: str, allowed: set[str], refused: set[str]
) -> None:
    people, warehouse, give = asking
    user = f"w-{relation}"
    give(user, relation, f"warehouse/{warehouse}")
    path, params = f"{V1}/warehouse/{warehouse}/actions", {"principalUser": f"oidc~{user}"}
    actions = {entry["action"] for entry in people("root").get(path, params=params).json()["allowed-actions"]}
    assert allowed <= actions
    assert not refused & actions


@pytest.mark.parametrize(
    ("relation", "allowed", "refused"),
    [
        ("project_admin", {"create_warehouse", "rename", "create_role", "read_grants"}, set()),
        ("security_admin", {"create_role", "read_grants", "get_metadata"}, {"create_warehouse", "rename"}),
        ("data_admin", {"create_warehouse", "get_metadata"}, {"create_role", "read_grants", "rename"}),
        ("role_creator", {"create_role"}, {"get_metadata", "create_warehouse"}),
        ("tag_creator", {"create_tag"}, {"create_role"}),
        ("describe", {"get_metadata", "list_roles", "get_endpoint_statistics"}, {"create_warehouse"}),
        ("select", {"get_metadata"}, {"create_warehouse"}),
        ("create", {"create_warehouse", "get_metadata"}, {"rename"}),
        ("modify", {"rename", "delete", "get_metadata"}, {"create_warehouse", "create_role"}),
    ],
)
def test_actions_of_a_relation_to_a_project(
    people: Any, give: Any, relation: str, allowed: set[str], refused: set[str]
) -> None:
    user = f"p-{relation}"
    give(user, relation, "project")
    params = {"principalUser": f"oidc~{user}"}
    response = people("root").get(f"{V1}/project/actions", params=params)
    actions = {entry["action"] for entry in response.json()["allowed-actions"]}
    assert allowed <= actions
    assert not refused & actions


def test_rights_are_inherited_down_to_the_table(people: Any, warehouse: str, give: Any) -> None:
    path = f"/catalog/v1/{warehouse}/namespaces/a%1Fb/tables/t"
    for above in ("project", f"warehouse/{warehouse}", f"namespace/{namespace_id(people, warehouse, 'a')}"):
        user = f"reader-{uuid.uuid4()}"
        assert get_refusal(people(user).get(path)) == (404, "NoSuchTableException")
        give(user, "select", above)
        assert people(user).get(path).status_code == 200
        assert get_refusal(people(user).delete(path)) == (403, "TableActionForbidden")


@pytest.mark.parametrize("kind", ["table", "view"])
def test_moved_table_keeps_the_grants_of_its_namespace(people: Any, make_warehouse: Any, give: Any, kind: str) -> None:
    """A rename does not change the parent in OpenFGA, which the drop of that namespace deletes."""
    root, warehouse = people("root"), make_warehouse(people("root"), f"moved-{kind}")
    catalog = f"/catalog/v1/{warehouse}"
    for name in ("old", "new"):
        root.post(f"{catalog}/namespaces", json={"namespace": [name]}).raise_for_status()
        give(f"{kind}-{name}", "select", f"namespace/{namespace_id(people, warehouse, name)}")
    body = {"name": "t", "schema": SCHEMA} if kind == "table" else VIEW | {"name": "t"}
    root.post(f"{catalog}/namespaces/old/{kind}s", json=body).raise_for_status()
    source, destination = ({"namespace": [name], "name": "t"} for name in ("old", "new"))
    move = {"source": source, "destination": destination}
    root.post(f"{catalog}/{kind}s/rename", json=move).raise_for_status()

    path = f"{catalog}/namespaces/new/{kind}s/t"
    assert people(f"{kind}-old").get(path).status_code == 200
    assert people(f"{kind}-new").get(path).status_code == 404

    root.delete(f"{catalog}/namespaces/old").raise_for_status()
    assert people(f"{kind}-old").get(path).status_code == 404
    assert root.get(path).status_code == 200


def test_ancestors_of_visible_objects_are_visible_siblings_not(people: Any, warehouse: str, give: Any) -> None:
    table, user = table_id(people, warehouse, "a%1Fb"), people("peeper")
    give("peeper", "describe", f"warehouse/{warehouse}/table/{table}")
    path = f"/catalog/v1/{warehouse}/namespaces"
    assert user.get(f"{V1}/warehouse/{warehouse}").status_code == 200
    assert user.get(path, params={"parent": "a"}).json()["namespaces"] == [["a", "b"]]
    assert user.get(f"{path}/a%1Fb/tables").json()["identifiers"] == [{"namespace": ["a", "b"], "name": "t"}]
    assert user.get(f"{path}/a/tables").json()["identifiers"] == []
    assert get_refusal(user.get(f"{path}/a/tables/t")) == (404, "NoSuchTableException")
    warehouses = user.get(f"{V1}/warehouse").json()["warehouses"]
    assert [one["id"] for one in warehouses] == [warehouse]


def test_an_invisible_warehouse_is_missing(people: Any, warehouse: str) -> None:
    stranger = people("stranger")
    for response in (
        stranger.get(f"{V1}/warehouse/{warehouse}"),
        stranger.post(f"{V1}/warehouse/{warehouse}/rename", json={"new-name": "mine"}),
        stranger.delete(f"{V1}/warehouse/{warehouse}"),
        stranger.get(f"/catalog/v1/{warehouse}/namespaces"),
        stranger.get("/catalog/v1/config", params={"warehouse": "rights"}),
    ):
        assert get_refusal(response) == (404, "NoSuchWarehouseException")


def test_an_action_on_a_visible_object_is_forbidden_by_kind(people: Any, warehouse: str, give: Any) -> None:
    user = people("looker")
    give("looker", "describe", f"warehouse/{warehouse}")
    path, table = f"/catalog/v1/{warehouse}/namespaces", table_id(people, warehouse, "a")
    above = f"{V1}/warehouse/{warehouse}"
    inner = namespace_id(people, warehouse, "a")
    for response, kind in (
        (user.post(f"{above}/rename", json={"new-name": "mine"}), "Warehouse"),
        (user.post(path, json={"namespace": ["new"]}), "Warehouse"),
        (user.post(path, json={"namespace": ["a", "new"]}), "Namespace"),
        (user.post(f"{path}/a/properties", json={"updates": {"k": "v"}}), "Namespace"),
        (user.post(f"{above}/namespace/{inner}/protection", json={"protected": True}), "Namespace"),
        (user.post(f"{path}/a/tables", json={"name": "new", "schema": SCHEMA}), "Namespace"),
        (user.post(f"{path}/a/tables/t", json={"requirements": [], "updates": []}), "Table"),
        (user.post(f"{above}/table/{table}/protection", json={"protected": True}), "Table"),
        (user.delete(f"{path}/a/views/v"), "View"),
    ):
        assert get_refusal(response) == (403, f"{kind}ActionForbidden")


def test_moving_a_namespace_needs_rights_on_both_ends(people: Any, warehouse: str, give: Any) -> None:
    root, mover = people("root"), people("mover")
    path = f"/catalog/v1/{warehouse}/namespaces"
    ids = {}
    for name in ("moved", "target"):
        ids[name] = root.post(path, json={"namespace": [name]}).json()["properties"]["namespace_id"]
    move, body = f"{V1}/warehouse/{warehouse}/namespace/{ids['moved']}/move", {"destination": ["target", "moved"]}
    assert get_refusal(mover.post(move, json=body)) == (404, "NoSuchNamespaceException")
    give("mover", "describe", f"namespace/{ids['moved']}")
    assert get_refusal(mover.post(move, json=body)) == (403, "NamespaceActionForbidden")
    give("mover", "ownership", f"namespace/{ids['moved']}")
    assert get_refusal(mover.post(move, json=body)) == (404, "NoSuchNamespaceException")
    give("mover", "ownership", f"namespace/{ids['target']}")
    assert mover.post(move, json=body).status_code == 200


def test_listing_and_restoring_deleted_tables_needs_rights(
    people: Any, make_warehouse: Callable[..., str], give: Any
) -> None:
    root, warehouse = people("root"), make_warehouse(people("root"), "soft", soft_delete_seconds=3600)
    path, deleted = f"/catalog/v1/{warehouse}/namespaces", f"{V1}/warehouse/{warehouse}/deleted-tabulars"
    root.post(path, json={"namespace": ["n"]})
    ids = {}
    for name in ("seen", "hidden"):
        response = root.post(f"{path}/n/tables", json={"name": name, "schema": SCHEMA})
        ids[name] = response.json()["metadata"]["table-uuid"]
        root.delete(f"{path}/n/tables/{name}")
    give("undropper", "describe", f"warehouse/{warehouse}/table/{ids['seen']}")
    undropper = people("undropper")
    assert [one["name"] for one in undropper.get(deleted).json()["tabulars"]] == ["seen"]
    for name, refused in (("seen", (403, "TableActionForbidden")), ("hidden", (404, "NoSuchTableException"))):
        target = {"targets": [{"type": "table", "id": ids[name]}]}
        assert get_refusal(undropper.post(f"{deleted}/undrop", json=target)) == refused
    assert root.post(f"{deleted}/undrop", json=target).status_code == 204


def test_projects_server_and_users_are_refused_before_missing(people: Any) -> None:
    stranger = people("outsider")
    for project in (None, "never-made"):
        headers = {"x-project-id": project} if project else {}
        for response in (
            stranger.get(f"{V1}/project", headers=headers),
            stranger.get(f"{V1}/warehouse", headers=headers),
            stranger.post(f"{V1}/role", json={"name": "r"}, headers=headers),
        ):
            assert get_refusal(response) == (403, "ProjectActionForbidden")
    missing = people("root").get(f"{V1}/project", headers={"x-project-id": "never-made"})
    assert get_refusal(missing) == (403, "ProjectActionForbidden")
    assert get_refusal(stranger.post(f"{V1}/project", json={"project-name": "p"})) == (403, "ServerActionForbidden")
    assert get_refusal(stranger.get(f"{V1}/user")) == (403, "ServerActionForbidden")
    assert get_refusal(stranger.delete(f"{V1}/user/oidc~never-made")) == (403, "UserActionForbidden")


def test_projects_are_listed_by_right(people: Any, give: Any) -> None:
    root = people("root")
    root.post(f"{V1}/project", json={"project-name": "mine", "project-id": "listed"})
    assert people("lister").get(f"{V1}/project-list").json()["projects"] == []
    give("lister", "describe", "project/listed")
    assert [one["project-id"] for one in people("lister").get(f"{V1}/project-list").json()["projects"]] == ["listed"]
    assert len(root.get(f"{V1}/project-list").json()["projects"]) > 1


def test_an_admin_needs_a_grant_inside_a_project(people: Any, warehouse: str, give: Any) -> None:
    admin = people("admin")
    give("admin", "admin", "server")
    assert admin.get(f"{V1}/project").status_code == 200
    assert get_refusal(admin.get(f"{V1}/warehouse/{warehouse}")) == (404, "NoSuchWarehouseException")
    taken = {"writes": [{"type": "project_admin", "user": "oidc~admin"}]}
    assert admin.post(f"{V1}/permissions/project/assignments", json=taken).status_code == 204
    assert admin.get(f"{V1}/warehouse/{warehouse}").status_code == 200


def test_an_operator_may_do_everything(people: Any, warehouse: str, give: Any) -> None:
    give("machine", "operator", "server")
    machine = people("machine")
    body = {"project-name": "by machine", "project-id": "by-machine"}
    assert machine.post(f"{V1}/project", json=body).status_code == 201
    assert machine.post(f"/catalog/v1/{warehouse}/namespaces/a/properties", json={"updates": {"k": "v"}}).is_success
    assert machine.get(f"{V1}/permissions/warehouse/{warehouse}/assignments").is_success
