"""The permissions API under OpenFGA: assignments on every kind of object, managed access, checks of rights."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.integration.lakekeeper.rules import get_refusal

V1 = "/management/v1"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
OBJECT = ["ownership", "pass_grants", "manage_grants", "describe", "select", "create", "modify", "manage_tags"]
TABULAR = [name for name in OBJECT if name != "create"]
PROJECT = ["project_admin", "security_admin", "data_admin", "role_creator", "tag_creator"]
RELATIONS = {
    "server": ["admin", "operator"],
    "project": [*PROJECT, "describe", "select", "create", "modify"],
    "warehouse": OBJECT,
    "namespace": OBJECT,
    "table": TABULAR,
    "view": TABULAR,
    "role": ["assignee", "ownership"],
}


@dataclass(frozen=True)
class GrantedObjects:
    """An object of each kind, created by `root`."""

    warehouse: str
    namespace: str
    table: str
    view: str
    role: str

    def permissions(self, kind: str) -> str:
        above = f"warehouse/{self.warehouse}/" if kind in ("table", "view") else ""
        object_path = kind if kind in ("server", "project") else f"{kind}/{getattr(self, kind)}"
        return f"{V1}/permissions/{above}{object_path}"


@pytest.fixture(scope="module")
def objects(people: Any, make_warehouse: Callable[..., str]) -> GrantedObjects:
    root = people("root")
    warehouse = make_warehouse(root, "permissions")
    path = f"/catalog/v1/{warehouse}/namespaces"
    namespace = root.post(path, json={"namespace": ["n"]}).json()["properties"]["namespace_id"]
    table = root.post(f"{path}/n/tables", json={"name": "t", "schema": SCHEMA}).json()["metadata"]["table-uuid"]
    version = {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["n"]}
    representation = {"type": "sql", "sql": "SELECT 1", "dialect": "spark"}
    body = {"name": "v", "schema": {**SCHEMA, "schema-id": 0}, "properties": {}}
    body["view-version"] = version | {"representations": [representation]}
    response = root.post(f"{path}/n/views", json=body)
    assert response.status_code == 200, response.text
    role = root.post(f"{V1}/role", json={"name": "permissions"}).json()["id"]
    return GrantedObjects(warehouse, namespace, table, response.json()["metadata"]["view-uuid"], role)


def post_changes(http: httpx.Client, path: str, **sides: list[dict[str, str]]) -> httpx.Response:
    return http.post(f"{path}/assignments", json=sides)


def list_assignments(http: httpx.Client, path: str, **params: Any) -> list[dict[str, str]]:
    response = http.get(f"{path}/assignments", params=params)
    assert response.status_code == 200, response.text
    return response.json()["assignments"]


@pytest.mark.parametrize("kind", RELATIONS)
def test_every_relation_is_written_read_and_deleted(people: Any, objects: GrantedObjects, kind: str) -> None:
    root, path = people("root"), objects.permissions(kind)
    for name in RELATIONS[kind]:
        tuples = [{"type": name, "user": "oidc~someone"}, {"type": name, "role": str(uuid.uuid4())}]
        assert post_changes(root, path, writes=tuples).status_code == 204
        assert all(entry in list_assignments(root, path, relations=[name]) for entry in tuples)
        assert post_changes(root, path, deletes=tuples).status_code == 204
        assert not any(entry in list_assignments(root, path) for entry in tuples)


@pytest.mark.parametrize("kind", RELATIONS)
def test_a_relation_that_the_kind_lacks(people: Any, objects: GrantedObjects, kind: str) -> None:
    wrong = {"type": "admin" if kind != "server" else "select", "user": "oidc~someone"}
    response = post_changes(people("root"), objects.permissions(kind), writes=[wrong])
    assert (response.status_code, response.headers["content-type"].split(";")[0]) == (422, "text/plain")


def test_allow_all_has_no_permissions_api(lakekeeper: httpx.Client) -> None:
    some = str(uuid.uuid4())
    for path in ("server", "project", f"warehouse/{some}", f"namespace/{some}", f"role/{some}"):
        for response in (
            lakekeeper.get(f"{V1}/permissions/{path}/assignments"),
            lakekeeper.post(f"{V1}/permissions/{path}/assignments", json={"writes": []}),
            lakekeeper.put(f"{V1}/permissions/{path}/assignments", json={}),
            lakekeeper.get(f"{V1}/permissions/{path}/access"),
        ):
            assert (response.status_code, response.content) == (404, b"")
    check = {"operation": {"server": {"action": "create_project"}}}
    assert lakekeeper.post(f"{V1}/permissions/check", json=check).content == b""


def test_the_server_reports_its_authorizer(people: Any, lakekeeper: httpx.Client) -> None:
    root = people("root")
    assert root.get(f"{V1}/info").json()["authz-backend"] == "openfga"
    assert [service["name"] for service in root.get("/health").json()["services"]["auth"]] == ["openfga"]
    assert lakekeeper.get(f"{V1}/info").json()["authz-backend"] == "allow-all"


def test_project_assignments_by_header_and_by_path(people: Any, objects: GrantedObjects) -> None:
    root, path = people("root"), objects.permissions("project")
    project = root.get(f"{V1}/project").json()["project-id"]
    by_header, by_path = (root.get(f"{base_path}/assignments").json() for base_path in (path, f"{path}/{project}"))
    assert by_header == by_path
    assert by_header["project-id"] == project


def test_only_direct_assignments_are_listed_by_relation(people: Any, objects: GrantedObjects) -> None:
    root, path = people("root"), objects.permissions("warehouse")
    above = {"type": "select", "user": "oidc~reader-above"}
    post_changes(root, objects.permissions("project"), writes=[above])
    post_changes(root, path, writes=[{"type": "describe", "user": "oidc~d"}, {"type": "modify", "user": "oidc~m"}])
    assignments = list_assignments(root, path)
    assert above not in assignments
    assert {"type": "ownership", "user": "oidc~root"} in assignments  # the creator owns it
    assert list_assignments(root, path, relations=["describe", "modify"]) == [
        {"type": "describe", "user": "oidc~d"},
        {"type": "modify", "user": "oidc~m"},
    ]


def test_an_existing_tuple_rejects_the_whole_batch(people: Any, objects: GrantedObjects) -> None:
    root, path = people("root"), objects.permissions("namespace")
    existing, new = {"type": "select", "user": "oidc~there"}, {"type": "select", "user": "oidc~new"}
    post_changes(root, path, writes=[existing])
    assert get_refusal(post_changes(root, path, writes=[new, existing])) == (409, "TupleAlreadyExistsError")
    assert new not in list_assignments(root, path)


def test_a_missing_tuple_rejects_the_whole_batch(people: Any, objects: GrantedObjects) -> None:
    root, path = people("root"), objects.permissions("namespace")
    absent, new = {"type": "select", "user": "oidc~absent"}, {"type": "modify", "user": "oidc~new"}
    assert get_refusal(post_changes(root, path, writes=[new], deletes=[absent])) == (404, "TupleNotFoundError")
    assert new not in list_assignments(root, path)


def test_a_batch_has_a_hundred_tuples_at_most(people: Any, objects: GrantedObjects) -> None:
    root, path = people("root"), objects.permissions("namespace")
    batch = [{"type": "describe", "user": f"oidc~many-{index}"} for index in range(101)]
    assert post_changes(root, path, writes=batch).status_code >= 500
    assert post_changes(root, path, writes=batch[:100]).status_code == 204
    assert post_changes(root, path, deletes=batch[:100]).status_code == 204


def test_an_assignment_names_a_user_or_a_role(people: Any, objects: GrantedObjects) -> None:
    both = {"type": "select", "user": "oidc~a", "role": objects.role}
    for wrong in ({"type": "select"}, both):
        assert post_changes(people("root"), objects.permissions("table"), writes=[wrong]).status_code == 422


def test_assigning_without_the_right_is_unauthorized(people: Any, objects: GrantedObjects) -> None:
    assignment = {"type": "select", "user": "oidc~mallory"}
    for kind in ("server", "project", "warehouse", "namespace", "table", "view", "role"):
        relation = RELATIONS[kind][0]
        response = post_changes(people("mallory"), objects.permissions(kind), writes=[assignment | {"type": relation}])
        assert get_refusal(response) == (401, "Unauthorized")
        assert get_refusal(people("mallory").get(f"{objects.permissions(kind)}/assignments")) == (401, "Unauthorized")


def test_nobody_grants_without_a_token(people: Any, objects: GrantedObjects) -> None:
    assignment = {"type": "select", "user": "oidc~x"}
    response = post_changes(people(None), objects.permissions("warehouse"), writes=[assignment])
    assert get_refusal(response) == (401, "AuthenticationRequired")


def test_a_role_is_not_assigned_to_itself(people: Any, objects: GrantedObjects) -> None:
    itself = {"type": "assignee", "role": objects.role}
    assert get_refusal(post_changes(people("root"), objects.permissions("role"), writes=[itself])) == (
        400,
        "SelfAssignment",
    )


def test_nobody_grants_below_a_warehouse_in_an_assumed_role(people: Any, objects: GrantedObjects) -> None:
    root = people("root")
    post_changes(root, objects.permissions("warehouse"), writes=[{"type": "manage_grants", "role": objects.role}])
    headers, writes = {"x-assume-role": objects.role}, {"writes": [{"type": "select", "user": "oidc~by-role"}]}
    below = root.post(f"{objects.permissions('table')}/assignments", json=writes, headers=headers)
    assert get_refusal(below) == (400, "GrantRoleWithAssumedRole")
    on_it = root.post(f"{objects.permissions('warehouse')}/assignments", json=writes, headers=headers)
    assert on_it.status_code == 204
    stranger = people("stranger").get(f"{V1}/whoami", headers=headers)
    assert get_refusal(stranger) == (403, "AssumeRoleForbidden")


def test_managed_access_is_idempotent_and_inherited(people: Any, objects: GrantedObjects) -> None:
    root, warehouse, namespace = people("root"), objects.permissions("warehouse"), objects.permissions("namespace")
    for managed in (True, True, False, False):
        response = root.post(f"{warehouse}/managed-access", json={"managed-access": managed})
        assert (response.status_code, response.content) == (200, b"")
        assert root.get(warehouse).json() == {"managed-access": managed}
        below = {"managed-access": False, "managed-access-inherited": managed}
        assert root.get(namespace).json() == below
    assert get_refusal(people("mallory").get(warehouse)) == (401, "Unauthorized")


def test_under_managed_access_ownership_alone_grants_nothing(people: Any, objects: GrantedObjects) -> None:
    root, owner, path = people("root"), people("owner"), objects.permissions("table")
    assignment = {"type": "select", "user": "oidc~friend"}
    post_changes(root, path, writes=[{"type": "ownership", "user": "oidc~owner"}])
    assert post_changes(owner, path, writes=[assignment]).status_code == 204
    root.post(f"{objects.permissions('namespace')}/managed-access", json={"managed-access": True})
    assert get_refusal(post_changes(owner, path, deletes=[assignment])) == (401, "Unauthorized")
    root.post(f"{objects.permissions('namespace')}/managed-access", json={"managed-access": False})
    assert post_changes(owner, path, deletes=[assignment]).status_code == 204


def test_pass_grants_passes_on_own_privileges(people: Any, objects: GrantedObjects) -> None:
    root, passer, path = people("root"), people("passer"), objects.permissions("table")
    post_changes(root, path, writes=[{"type": name, "user": "oidc~passer"} for name in ("pass_grants", "select")])
    assert post_changes(passer, path, writes=[{"type": "select", "user": "oidc~next"}]).status_code == 204
    assert get_refusal(post_changes(passer, path, writes=[{"type": "modify", "user": "oidc~next"}])) == (
        401,
        "Unauthorized",
    )


@pytest.mark.parametrize("kind", RELATIONS)
def test_the_authorizer_s_own_actions(people: Any, objects: GrantedObjects, kind: str) -> None:
    root, path = people("root"), objects.permissions(kind)
    mine = root.get(f"{path}/authorizer-actions").json()["allowed-actions"]
    assert "read_assignments" in mine
    assert all(isinstance(name, str) for name in mine)
    assert set(mine) <= set(root.get(f"{path}/access").json()["allowed-actions"])
    of_other = {"principalUser": "oidc~nobody"}
    assert root.get(f"{path}/authorizer-actions", params=of_other).json()["allowed-actions"] == []
    refused = people("mallory").get(f"{path}/authorizer-actions", params={"principalUser": "oidc~root"})
    assert get_refusal(refused) == (401, "Unauthorized")
    both = of_other | {"principalRole": objects.role}
    assert get_refusal(root.get(f"{path}/access", params=both)) == (400, "InvalidGetAccessQuery")


def test_checks_of_own_rights_and_of_another_users(people: Any, objects: GrantedObjects) -> None:
    root = people("root")
    post_changes(root, objects.permissions("table"), writes=[{"type": "select", "user": "oidc~checked"}])

    def check(http: httpx.Client, action: str, **identity: Any) -> httpx.Response:
        table = {"warehouse-id": objects.warehouse, "table-id": objects.table, "action": action}
        return http.post(f"{V1}/permissions/check", json={"operation": {"table": table}} | identity)

    other = {"identity": {"user": "oidc~checked"}}
    assert check(root, "read_data", **other).json() == {"allowed": True}
    assert check(root, "write_data", **other).json() == {"allowed": False}
    assert check(people("checked"), "read_data").json() == {"allowed": True}
    assert get_refusal(check(people("mallory"), "read_data")) == (401, "Unauthorized")
    by_name = {"warehouse-id": objects.warehouse, "namespace": ["n"], "table": "T", "action": "drop"}
    assert root.post(f"{V1}/permissions/check", json={"operation": {"table": by_name}}).json() == {"allowed": True}


def test_no_caller_has_rights_on_a_missing_object(people: Any) -> None:
    response = people("root").get(f"{V1}/permissions/warehouse/{uuid.uuid4()}/assignments")
    assert get_refusal(response) == (401, "Unauthorized")


@pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="the same once more on Postgres: test-all")
def test_tuples_on_postgres(start_openfga: Any, postgres: str) -> None:
    people = start_openfga(database=postgres)
    root, member = people("root"), people("member")
    outer, inner = (root.post(f"{V1}/role", json={"name": name}).json()["id"] for name in ("outer", "inner"))
    assert get_refusal(root.post(f"{V1}/role", json={"name": "INNER"})) == (409, "RoleNameAlreadyExists")
    sourced = {"provider-id": "idp", "source-id": "1"}
    assert root.post(f"{V1}/role", json={"name": "one"} | sourced).status_code == 201
    assert get_refusal(root.post(f"{V1}/role", json={"name": "two"} | sourced)) == (409, "RoleSourceIdConflict")
    for role, principal in ((outer, {"role": inner}), (inner, {"user": "oidc~member"})):
        assert (
            post_changes(root, f"{V1}/permissions/role/{role}", writes=[principal | {"type": "assignee"}]).status_code
            == 204
        )
    describe = {"type": "describe", "role": outer}
    assert post_changes(root, f"{V1}/permissions/project", writes=[describe]).status_code == 204
    response = post_changes(root, f"{V1}/permissions/project", writes=[describe])
    assert get_refusal(response) == (409, "TupleAlreadyExistsError")
    assert member.get(f"{V1}/role").status_code == 200
    assert root.delete(f"{V1}/role/{outer}").status_code == 204
    assert get_refusal(member.get(f"{V1}/role")) == (403, "ProjectActionForbidden")
    tuples = {"type": "describe", "user": "oidc~at-once"}
    with ThreadPoolExecutor(8) as pool:
        statuses = pool.map(
            lambda _: post_changes(root, f"{V1}/permissions/project", writes=[tuples]).status_code, range(8)
        )
    assert sorted(statuses) == [204, *[409] * 7]
    people.stop()  # before its database is deleted
