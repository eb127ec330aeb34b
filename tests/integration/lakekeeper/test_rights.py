"""Rights under OpenFGA: what each relation allows, what is inherited, who sees what, and how a refusal looks."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from lakewright_sandbox.lakekeeper import catalog, management
from lakewright_sandbox.lakekeeper.authz.actions import ACTIONS
from lakewright_sandbox.lakekeeper.authz.model import RULES
from lakewright_sandbox.lakekeeper.authz.needs import NAMED, PATH, PROJECT, SERVER, answers_for_itself

V1 = "/management/v1"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}

VIEW = {
    "name": "v",
    "schema": {**SCHEMA, "schema-id": 0},
    "properties": {},
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["a"],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    },
}


@pytest.fixture(scope="module")
def warehouse(people: Any, make_warehouse: Callable[..., str]) -> str:
    """Of `root`, with the namespaces `a` and `a.b`, each with a table `t`, and a view `a.v`."""
    root, made = people("root"), make_warehouse(people("root"), "rights")
    path = f"/catalog/v1/{made}/namespaces"
    for namespace in (["a"], ["a", "b"]):
        assert root.post(path, json={"namespace": namespace}).status_code == 200
        table = root.post(f"{path}/{'%1F'.join(namespace)}/tables", json={"name": "t", "schema": SCHEMA})
        assert table.status_code == 200
    assert root.post(f"{path}/a/views", json=VIEW).status_code == 200
    return made


@pytest.fixture
def give(people: Any) -> Callable[..., None]:
    """`give("alice", "select", "warehouse/...")`."""

    def give(user: str, relation: str, path: str, *, take: bool = False, headers: Any = None) -> None:
        side = "deletes" if take else "writes"
        body = {side: [{"type": relation, "user": f"oidc~{user}"}]}
        answer = people("root").post(f"{V1}/permissions/{path}/assignments", json=body, headers=headers)
        assert answer.status_code == 204, answer.text

    return give


@pytest.fixture
def asking(people: Any, warehouse: str, give: Any) -> tuple[Any, str, Any]:
    return people, warehouse, give


def kind_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


def namespace_id(people: Any, warehouse: str, name: str) -> str:
    shown = people("root").get(f"/catalog/v1/{warehouse}/namespaces/{name}")
    return shown.json()["properties"]["namespace_id"]


def table_id(people: Any, warehouse: str, namespace: str) -> str:
    shown = people("root").get(f"/catalog/v1/{warehouse}/namespaces/{namespace}/tables/t")
    return shown.json()["metadata"]["table-uuid"]


def test_every_call_says_what_it_needs() -> None:
    routes = [route for router in (*management.routers(), *catalog.routers()) for route in router.routes]
    calls = {f"{method} {route.path}" for route in routes if isinstance(route, APIRoute) for method in route.methods}
    needs = PATH.keys() | PROJECT.keys() | SERVER.keys() | NAMED.keys()
    assert needs - calls == set()
    assert {call for call in calls - needs if not answers_for_itself(call)} == set()


def test_every_action_needs_a_relation_that_the_model_has() -> None:
    unknown = {
        (kind, relation)
        for kind, named in ACTIONS.items()
        for relation in named.values()
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
def test_what_a_relation_to_a_warehouse_allows(
    asking: tuple[Any, str, Any], relation: str, allowed: set[str], refused: set[str]
) -> None:
    people, warehouse, give = asking
    user = f"w-{relation}"
    give(user, relation, f"warehouse/{warehouse}")
    path, params = f"{V1}/warehouse/{warehouse}/actions", {"principalUser": f"oidc~{user}"}
    found = {one["action"] for one in people("root").get(path, params=params).json()["allowed-actions"]}
    assert allowed <= found
    assert not refused & found


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
def test_what_a_relation_to_a_project_allows(
    people: Any, give: Any, relation: str, allowed: set[str], refused: set[str]
) -> None:
    user = f"p-{relation}"
    give(user, relation, "project")
    params = {"principalUser": f"oidc~{user}"}
    answer = people("root").get(f"{V1}/project/actions", params=params)
    found = {one["action"] for one in answer.json()["allowed-actions"]}
    assert allowed <= found
    assert not refused & found


def test_rights_are_inherited_down_to_the_table(people: Any, warehouse: str, give: Any) -> None:
    path = f"/catalog/v1/{warehouse}/namespaces/a%1Fb/tables/t"
    for above in ("project", f"warehouse/{warehouse}", f"namespace/{namespace_id(people, warehouse, 'a')}"):
        user = f"reader-{uuid.uuid4()}"
        assert kind_of(people(user).get(path)) == (404, "NoSuchWarehouseException")
        give(user, "select", above)
        assert people(user).get(path).status_code == 200
        assert kind_of(people(user).delete(path)) == (403, "TableActionForbidden")


def test_what_lies_above_something_visible_is_visible_but_nothing_beside_it(
    people: Any, warehouse: str, give: Any
) -> None:
    table, user = table_id(people, warehouse, "a%1Fb"), people("peeper")
    give("peeper", "describe", f"warehouse/{warehouse}/table/{table}")
    path = f"/catalog/v1/{warehouse}/namespaces"
    assert user.get(f"{V1}/warehouse/{warehouse}").status_code == 200
    assert user.get(path, params={"parent": "a"}).json()["namespaces"] == [["a", "b"]]
    assert user.get(f"{path}/a%1Fb/tables").json()["identifiers"] == [{"namespace": ["a", "b"], "name": "t"}]
    assert user.get(f"{path}/a/tables").json()["identifiers"] == []
    assert kind_of(user.get(f"{path}/a/tables/t")) == (404, "NoSuchTableException")
    listed = user.get(f"{V1}/warehouse").json()["warehouses"]
    assert [one["id"] for one in listed] == [warehouse]


def test_a_warehouse_that_one_may_not_see_is_not_there(people: Any, warehouse: str) -> None:
    stranger = people("stranger")
    for answer in (
        stranger.get(f"{V1}/warehouse/{warehouse}"),
        stranger.post(f"{V1}/warehouse/{warehouse}/rename", json={"new-name": "mine"}),
        stranger.delete(f"{V1}/warehouse/{warehouse}"),
        stranger.get(f"/catalog/v1/{warehouse}/namespaces"),
        stranger.get("/catalog/v1/config", params={"warehouse": "rights"}),
    ):
        assert kind_of(answer) == (404, "NoSuchWarehouseException")


def test_an_action_on_what_one_sees_is_forbidden_by_kind(people: Any, warehouse: str, give: Any) -> None:
    user = people("looker")
    give("looker", "describe", f"warehouse/{warehouse}")
    path, table = f"/catalog/v1/{warehouse}/namespaces", table_id(people, warehouse, "a")
    above = f"{V1}/warehouse/{warehouse}"
    inner = namespace_id(people, warehouse, "a")
    for answer, kind in (
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
        assert kind_of(answer) == (403, f"{kind}ActionForbidden")


def test_whoever_moves_a_namespace_may_change_it_and_what_takes_it_in(people: Any, warehouse: str, give: Any) -> None:
    root, mover = people("root"), people("mover")
    path = f"/catalog/v1/{warehouse}/namespaces"
    ids = {}
    for name in ("moved", "target"):
        ids[name] = root.post(path, json={"namespace": [name]}).json()["properties"]["namespace_id"]
    move, body = f"{V1}/warehouse/{warehouse}/namespace/{ids['moved']}/move", {"destination": ["target", "moved"]}
    assert kind_of(mover.post(move, json=body)) == (404, "NoSuchNamespaceException")
    give("mover", "describe", f"namespace/{ids['moved']}")
    assert kind_of(mover.post(move, json=body)) == (403, "NamespaceActionForbidden")
    give("mover", "ownership", f"namespace/{ids['moved']}")
    assert kind_of(mover.post(move, json=body)) == (404, "NoSuchNamespaceException")
    give("mover", "ownership", f"namespace/{ids['target']}")
    assert mover.post(move, json=body).status_code == 200


def test_deleted_tables_are_listed_and_brought_back_by_right(
    people: Any, make_warehouse: Callable[..., str], give: Any
) -> None:
    root, warehouse = people("root"), make_warehouse(people("root"), "soft", soft_delete_seconds=3600)
    path, deleted = f"/catalog/v1/{warehouse}/namespaces", f"{V1}/warehouse/{warehouse}/deleted-tabulars"
    root.post(path, json={"namespace": ["n"]})
    ids = {}
    for name in ("seen", "hidden"):
        made = root.post(f"{path}/n/tables", json={"name": name, "schema": SCHEMA})
        ids[name] = made.json()["metadata"]["table-uuid"]
        root.delete(f"{path}/n/tables/{name}")
    give("undropper", "describe", f"warehouse/{warehouse}/table/{ids['seen']}")
    undropper = people("undropper")
    assert [one["name"] for one in undropper.get(deleted).json()["tabulars"]] == ["seen"]
    for name, refused in (("seen", (403, "TableActionForbidden")), ("hidden", (404, "NoSuchTableException"))):
        target = {"targets": [{"type": "table", "id": ids[name]}]}
        assert kind_of(undropper.post(f"{deleted}/undrop", json=target)) == refused
    assert root.post(f"{deleted}/undrop", json=target).status_code == 204


def test_of_projects_the_server_and_users_a_refusal_comes_first(people: Any) -> None:
    stranger = people("outsider")
    for project in (None, "never-made"):
        headers = {"x-project-id": project} if project else {}
        for answer in (
            stranger.get(f"{V1}/project", headers=headers),
            stranger.get(f"{V1}/warehouse", headers=headers),
            stranger.post(f"{V1}/role", json={"name": "r"}, headers=headers),
        ):
            assert kind_of(answer) == (403, "ProjectActionForbidden")
    missing = people("root").get(f"{V1}/project", headers={"x-project-id": "never-made"})
    assert kind_of(missing) == (403, "ProjectActionForbidden")
    assert kind_of(stranger.post(f"{V1}/project", json={"project-name": "p"})) == (403, "ServerActionForbidden")
    assert kind_of(stranger.get(f"{V1}/user")) == (403, "ServerActionForbidden")
    assert kind_of(stranger.delete(f"{V1}/user/oidc~never-made")) == (403, "UserActionForbidden")


def test_projects_are_listed_by_right(people: Any, give: Any) -> None:
    root = people("root")
    root.post(f"{V1}/project", json={"project-name": "mine", "project-id": "listed"})
    assert people("lister").get(f"{V1}/project-list").json()["projects"] == []
    give("lister", "describe", "project/listed")
    assert [one["project-id"] for one in people("lister").get(f"{V1}/project-list").json()["projects"]] == ["listed"]
    assert len(root.get(f"{V1}/project-list").json()["projects"]) > 1


def test_an_admin_has_no_access_inside_a_project_until_it_takes_it(people: Any, warehouse: str, give: Any) -> None:
    admin = people("admin")
    give("admin", "admin", "server")
    assert admin.get(f"{V1}/project").status_code == 200
    assert kind_of(admin.get(f"{V1}/warehouse/{warehouse}")) == (404, "NoSuchWarehouseException")
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


def test_whoever_makes_an_object_owns_it(people: Any, make_warehouse: Callable[..., str], give: Any) -> None:
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
    shown = people("root").get(f"{V1}/permissions/project/made/assignments").json()["assignments"]
    assert shown == [{"type": "project_admin", "user": "oidc~root"}]


def test_what_was_granted_on_an_object_goes_with_it(people: Any, give: Any) -> None:
    for project in ("again", "again"):
        people("root").post(f"{V1}/project", json={"project-name": project, "project-id": project})
        headers = {"x-project-id": project}
        assert kind_of(people("early").get(f"{V1}/project", headers=headers)) == (403, "ProjectActionForbidden")
        give("early", "describe", f"project/{project}")
        assert people("early").get(f"{V1}/project", headers=headers).is_success
        assert people("root").delete(f"{V1}/project", headers=headers).status_code == 204


def test_a_role_gives_its_members_what_it_was_granted(people: Any, warehouse: str) -> None:
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
    assert kind_of(member.post(path, json={"protected": False})) == (404, "NoSuchWarehouseException")


def test_members_of_roles_are_the_assignee_tuples(people: Any) -> None:
    root = people("root")
    role = root.post(f"{V1}/role", json={"name": "tuples"}).json()["id"]
    added = root.post(f"{V1}/role/{role}/members", json={"members": [{"type": "user", "id": "oidc~unknown"}]})
    assert added.status_code == 200  # OpenFGA takes users that nobody has provisioned
    shown = root.get(f"{V1}/permissions/role/{role}/assignments", params={"relations": "assignee"})
    assert shown.json()["assignments"] == [{"type": "assignee", "user": "oidc~unknown"}]
    nobody = {"type": "user", "id": "oidc~unknown", "name": None, "email": None, "user-type": None}
    assert root.get(f"{V1}/role/{role}/members").json()["members"] == [nobody]
    transitive = root.get(f"{V1}/role/{role}/members/transitive")
    assert kind_of(transitive) == (501, "TransitiveRoleMembershipListingNotImplemented")


def test_roles_are_changed_by_their_owners_and_read_by_all_of_the_project(people: Any, give: Any) -> None:
    role = people("root").post(f"{V1}/role", json={"name": "read by all"}).json()["id"]
    give("colleague", "describe", "project")
    assert people("colleague").get(f"{V1}/role/{role}").status_code == 200
    refused = people("colleague").post(f"{V1}/role/{role}", json={"name": "mine"})
    assert kind_of(refused) == (403, "RoleActionForbidden")
    assert kind_of(people("nobody").get(f"{V1}/role/{role}")) == (403, "RoleActionForbidden")
    assert people("nobody").get(f"{V1}/role/{role}/metadata").status_code == 200
    give("colleague", "ownership", f"role/{role}")
    assert people("colleague").post(f"{V1}/role/{role}", json={"name": "mine"}).status_code == 200


def test_users_provision_themselves_and_are_changed_by_themselves(people: Any, warehouse: str, give: Any) -> None:
    new = people("newcomer")
    assert kind_of(new.get(f"{V1}/whoami")) == (404, "UserNotFound")
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
    assert kind_of(other) == (403, "UserActionForbidden")
    provisioned = people("stranger").post(f"{V1}/user", json={"id": "oidc~z", "name": "Z", "user-type": "human"})
    assert kind_of(provisioned) == (403, "ServerActionForbidden")


def test_credentials_are_vended_as_far_as_the_right_goes(people: Any, warehouse: str, give: Any, aws: Any) -> None:
    table, headers = table_id(people, warehouse, "a"), {"x-iceberg-access-delegation": "vended-credentials"}
    path = f"/catalog/v1/{warehouse}/namespaces/a/tables/t"

    def vended(user: str) -> dict[str, str]:
        return people(user).get(path, headers=headers).json()["config"]

    def put(user: str) -> None:
        config, location = vended(user), people("root").get(path).json()["metadata"]["location"]
        keys = {
            "aws_access_key_id": config["s3.access-key-id"],
            "aws_secret_access_key": config["s3.secret-access-key"],
            "aws_session_token": config["s3.session-token"],
        }
        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        aws.client("s3", **keys).put_object(Bucket=bucket, Key=f"{prefix}/data/{user}", Body=b"")

    for user, relation in (("describes", "describe"), ("selects", "select"), ("modifies", "modify")):
        give(user, relation, f"warehouse/{warehouse}/table/{table}")
    assert "s3.access-key-id" not in vended("describes")
    put("modifies")
    with pytest.raises(Exception, match="AccessDenied"):
        put("selects")


def test_a_batch_of_checks_is_answered_in_order(people: Any, warehouse: str, give: Any) -> None:
    give("batched", "select", f"warehouse/{warehouse}")
    table = {"warehouse-id": warehouse, "namespace": ["a"], "table": "t"}
    identity = {"user": "oidc~batched"}
    checks = [
        {"id": "read", "identity": identity, "operation": {"table": table | {"action": "read_data"}}},
        {"identity": identity, "operation": {"table": table | {"action": "write_data"}}},
        {"operation": {"server": {"action": "create_project"}}},
        {"operation": {"warehouse": {"warehouse-id": str(uuid.uuid4()), "action": "use"}}},
    ]
    root = people("root")
    found = root.post(f"{V1}/action/batch-check", json={"checks": checks}).json()["results"]
    assert found == [{"allowed": True, "id": "read"}, {"allowed": False}, {"allowed": True}, {"allowed": False}]
    strict = root.post(f"{V1}/action/batch-check", json={"checks": checks, "error-on-not-found": True})
    assert kind_of(strict) == (404, "NoSuchWarehouseException")
    curious = people("batched").post(
        f"{V1}/action/batch-check", json={"checks": [checks[0] | {"identity": {"user": "oidc~root"}}]}
    )
    assert kind_of(curious) == (403, "CannotInspectPermissions")


def test_where_everybody_may_do_everything_all_actions_are_allowed(lakekeeper: httpx.Client) -> None:
    found = lakekeeper.get(f"{V1}/server/actions").json()["allowed-actions"]
    assert {one["action"] for one in found} == set(ACTIONS["server"])
    both = {"principalUser": "oidc~a", "principalRole": str(uuid.uuid4())}
    assert kind_of(lakekeeper.get(f"{V1}/server/actions", params=both)) == (400, "InvalidGetAccessQuery")
    check = {"checks": [{"operation": {"project": {"action": "delete"}}}]}
    assert lakekeeper.post(f"{V1}/action/batch-check", json=check).json() == {"results": [{"allowed": True}]}


def test_nobody_bootstraps_without_a_token(start_openfga: Any) -> None:
    server = start_openfga()
    assert kind_of(server(None).post(f"{V1}/bootstrap", json={"accept-terms-of-use": True})) == (
        401,
        "AnonymousBootstrap",
    )
    again = server("root").post(f"{V1}/bootstrap", json={"accept-terms-of-use": True})
    assert kind_of(again) == (400, "CatalogAlreadyBootstrapped")
