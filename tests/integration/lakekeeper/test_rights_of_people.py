"""Rights of principals under OpenFGA: owners, members of roles, users themselves, and inspection of rights."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright_sandbox.lakekeeper.authz.actions import ACTIONS

from tests.integration.lakekeeper.rules import get_refusal

V1 = "/management/v1"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


@pytest.fixture
def warehouse(session_warehouse: str) -> str:
    return session_warehouse


def table_id(people: Any, warehouse: str, namespace: str) -> str:
    response = people("root").get(f"/catalog/v1/{warehouse}/namespaces/{namespace}/tables/t")
    return response.json()["metadata"]["table-uuid"]


def test_the_creator_owns_an_object(people: Any, make_warehouse: Callable[..., str], give: Any) -> None:
    for relation in ("data_admin", "role_creator"):
        give("maker", relation, "project")
    maker, warehouse = people("maker"), make_warehouse(people("maker"), "made")
    path = f"/catalog/v1/{warehouse}/namespaces"
    namespace = maker.post(path, json={"namespace": ["n"]}).json()["properties"]["namespace_id"]
    table = maker.post(f"{path}/n/tables", json={"name": "t", "schema": SCHEMA}).json()["metadata"]["table-uuid"]
    role = maker.post(f"{V1}/role", json={"name": "made"}).json()["id"]
    owner = {"type": "ownership", "user": "oidc~maker"}
    objects = (
        f"warehouse/{warehouse}",
        f"namespace/{namespace}",
        f"warehouse/{warehouse}/table/{table}",
        f"role/{role}",
    )
    for path in objects:
        assert owner in people("root").get(f"{V1}/permissions/{path}/assignments").json()["assignments"]
    people("root").post(f"{V1}/project", json={"project-name": "made", "project-id": "made"})
    response = people("root").get(f"{V1}/permissions/project/made/assignments").json()["assignments"]
    assert response == [{"type": "project_admin", "user": "oidc~root"}]


def test_grants_are_deleted_with_their_object(people: Any, give: Any) -> None:
    for project in ("again", "again"):
        people("root").post(f"{V1}/project", json={"project-name": project, "project-id": project})
        headers = {"x-project-id": project}
        assert get_refusal(people("early").get(f"{V1}/project", headers=headers)) == (403, "ProjectActionForbidden")
        give("early", "describe", f"project/{project}")
        assert people("early").get(f"{V1}/project", headers=headers).is_success
        assert people("root").delete(f"{V1}/project", headers=headers).status_code == 204


def test_members_of_a_role_get_its_grants(people: Any, warehouse: str) -> None:
    root, member = people("root"), people("member")
    outer, inner = (root.post(f"{V1}/role", json={"name": name}).json()["id"] for name in ("outer", "inner"))
    root.post(f"{V1}/role/{outer}/members", json={"members": [{"type": "role", "id": inner}]})
    root.post(f"{V1}/role/{inner}/members", json={"members": [{"type": "user", "id": "oidc~member"}]})
    writes = {"writes": [{"type": "modify", "role": outer}]}
    root.post(f"{V1}/permissions/warehouse/{warehouse}/assignments", json=writes)
    path = f"{V1}/warehouse/{warehouse}/protection"
    assert member.post(path, json={"protected": False}).is_success
    assert member.post(path, json={"protected": False}, headers={"x-assume-role": inner}).is_success
    assert root.delete(f"{V1}/role/{inner}/members/user/oidc~member").status_code == 204
    assert get_refusal(member.post(path, json={"protected": False})) == (404, "NoSuchWarehouseException")


def test_members_of_roles_are_the_assignee_tuples(people: Any) -> None:
    root = people("root")
    role = root.post(f"{V1}/role", json={"name": "tuples"}).json()["id"]
    added = root.post(f"{V1}/role/{role}/members", json={"members": [{"type": "user", "id": "oidc~unknown"}]})
    assert added.status_code == 200  # OpenFGA accepts users that are not provisioned
    response = root.get(f"{V1}/permissions/role/{role}/assignments", params={"relations": "assignee"})
    assert response.json()["assignments"] == [{"type": "assignee", "user": "oidc~unknown"}]
    nobody = {"type": "user", "id": "oidc~unknown", "name": None, "email": None, "user-type": None}
    assert root.get(f"{V1}/role/{role}/members").json()["members"] == [nobody]
    transitive = root.get(f"{V1}/role/{role}/members/transitive")
    assert get_refusal(transitive) == (501, "TransitiveRoleMembershipListingNotImplemented")


def test_owners_change_roles_and_project_members_read_them(people: Any, give: Any) -> None:
    role = people("root").post(f"{V1}/role", json={"name": "read by all"}).json()["id"]
    give("colleague", "describe", "project")
    assert people("colleague").get(f"{V1}/role/{role}").status_code == 200
    refused = people("colleague").post(f"{V1}/role/{role}", json={"name": "mine"})
    assert get_refusal(refused) == (403, "RoleActionForbidden")
    assert get_refusal(people("nobody").get(f"{V1}/role/{role}")) == (403, "RoleActionForbidden")
    assert people("nobody").get(f"{V1}/role/{role}/metadata").status_code == 200
    give("colleague", "ownership", f"role/{role}")
    assert people("colleague").post(f"{V1}/role/{role}", json={"name": "mine"}).status_code == 200


def test_users_create_and_change_themselves(people: Any, warehouse: str, give: Any) -> None:
    new = people("newcomer")
    assert get_refusal(new.get(f"{V1}/whoami")) == (404, "UserNotFound")
    give("newcomer", "describe", f"warehouse/{warehouse}")
    assert new.get("/catalog/v1/config", params={"warehouse": "rights"}).status_code == 200
    me = new.get(f"{V1}/whoami").json()
    assert (me["id"], me["name"], me["last-updated-with"]) == ("oidc~newcomer", "newcomer", "config-call-creation")
    assert me["is-instance-admin"] is False
    assert new.post(f"{V1}/user", json={"update-if-exists": True, "name": "New"}).json()["name"] == "New"
    assert new.put(f"{V1}/user/oidc~newcomer", json={"name": "N", "user-type": "human"}).status_code == 200
    refused = people("root").get(f"{V1}/user/oidc~newcomer/actions", params={"principalUser": "oidc~stranger"})
    assert refused.json()["allowed-actions"] == [{"action": "read"}]
    other = people("stranger").put(f"{V1}/user/oidc~newcomer", json={"name": "X", "user-type": "human"})
    assert get_refusal(other) == (403, "UserActionForbidden")
    provisioned = people("stranger").post(f"{V1}/user", json={"id": "oidc~z", "name": "Z", "user-type": "human"})
    assert get_refusal(provisioned) == (403, "ServerActionForbidden")


def test_vended_credentials_match_the_callers_rights(people: Any, warehouse: str, give: Any, aws: Any) -> None:
    table, headers = table_id(people, warehouse, "a"), {"x-iceberg-access-delegation": "vended-credentials"}
    path = f"/catalog/v1/{warehouse}/namespaces/a/tables/t"

    def vend(user: str) -> dict[str, str]:
        return people(user).get(path, headers=headers).json()["config"]

    def write(user: str) -> None:
        config, location = vend(user), people("root").get(path).json()["metadata"]["location"]
        keys = {
            "aws_access_key_id": config["s3.access-key-id"],
            "aws_secret_access_key": config["s3.secret-access-key"],
            "aws_session_token": config["s3.session-token"],
        }
        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        aws.client("s3", **keys).put_object(Bucket=bucket, Key=f"{prefix}/data/{user}", Body=b"")

    for user, relation in (("describes", "describe"), ("selects", "select"), ("modifies", "modify")):
        give(user, relation, f"warehouse/{warehouse}/table/{table}")
    assert "s3.access-key-id" not in vend("describes")
    write("modifies")
    with pytest.raises(Exception, match="AccessDenied"):
        write("selects")


def test_results_of_a_batch_of_checks_are_in_order(people: Any, warehouse: str, give: Any) -> None:
    give("batched", "select", f"warehouse/{warehouse}")
    table = {"warehouse-id": warehouse, "namespace": ["a"], "table": "t"}
    identity = {"user": "oidc~batched"}
    checks = [
        {"id": "read", "identity": identity, "operation": {"table": table | {"action": {"action": "read_data"}}}},
        {"identity": identity, "operation": {"table": table | {"action": {"action": "write_data"}}}},
        {"operation": {"server": {"action": {"action": "create_project"}}}},
        {"operation": {"warehouse": {"warehouse-id": str(uuid.uuid4()), "action": {"action": "use"}}}},
    ]
    root = people("root")
    results = root.post(f"{V1}/action/batch-check", json={"checks": checks}).json()["results"]
    assert results == [{"allowed": True, "id": "read"}, {"allowed": False}, {"allowed": True}, {"allowed": False}]
    strict = root.post(f"{V1}/action/batch-check", json={"checks": checks, "error-on-not-found": True})
    assert get_refusal(strict) == (404, "NoSuchWarehouseException")
    plain = {"checks": [{"operation": {"server": {"action": "create_project"}}}]}
    assert root.post(f"{V1}/action/batch-check", json=plain).status_code == 422
    curious = people("batched").post(
        f"{V1}/action/batch-check", json={"checks": [checks[0] | {"identity": {"user": "oidc~root"}}]}
    )
    assert get_refusal(curious) == (403, "CannotInspectPermissions")


def test_allow_all_allows_all_actions(lakekeeper: httpx.Client) -> None:
    actions = lakekeeper.get(f"{V1}/server/actions").json()["allowed-actions"]
    assert {one["action"] for one in actions} == set(ACTIONS["server"])
    both = {"principalUser": "oidc~a", "principalRole": str(uuid.uuid4())}
    assert get_refusal(lakekeeper.get(f"{V1}/server/actions", params=both)) == (400, "InvalidGetAccessQuery")
    check = {"checks": [{"operation": {"project": {"action": {"action": "delete"}}}}]}
    assert lakekeeper.post(f"{V1}/action/batch-check", json=check).json() == {"results": [{"allowed": True}]}


def test_nobody_bootstraps_without_a_token(start_openfga: Any) -> None:
    server = start_openfga()
    assert get_refusal(server(None).post(f"{V1}/bootstrap", json={"accept-terms-of-use": True})) == (
        401,
        "AnonymousBootstrap",
    )
    response = server("root").post(f"{V1}/bootstrap", json={"accept-terms-of-use": True})
    assert get_refusal(response) == (400, "CatalogAlreadyBootstrapped")
