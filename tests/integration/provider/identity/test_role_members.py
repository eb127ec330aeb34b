"""Members of a role, declared as a whole: any other member is drift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper import get_role_members
from lakewright.lakekeeper.api.connection.errors import NotGrantableError, RefusedError
from lakewright.lakekeeper.identity.role_members import RoleMembersProvider
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, NotOwnedError

from tests.integration.provider.resource import Props, Resource
from tests.real_servers import RealServers, leave_out

pytestmark = pytest.mark.any_server


@pytest.fixture
def users(light: httpx.Client, unique: str) -> dict[str, str]:
    """Ids of three users by their names."""
    ids = {name: f"oidc~{name}-{unique}" for name in ("ann", "bob", "eve")}
    for user_id in ids.values():
        body = {"id": user_id, "name": "x", "user-type": "human"}
        light.post("/management/v1/user", json=body).raise_for_status()
    return ids


@pytest.fixture
def new_role(light: httpx.Client, light_project: Props) -> Callable[..., str]:
    """Return a function that makes a role in the project and returns its id."""
    headers = {"x-project-id": light_project["project_id"]}
    return lambda name, **body: (
        light.post("/management/v1/role", json={"name": name, **body}, headers=headers).raise_for_status().json()["id"]
    )


@pytest.fixture
def declared(light_project: Props, users: dict[str, str], new_role: Callable[..., str]) -> Props:
    """Declared members: two users and a role."""
    role_ids = [new_role("interns")]
    return light_project | {
        "role_id": new_role("analysts"),
        "users": [users["bob"], users["ann"], users["bob"]],
        "roles": role_ids,
    }


@pytest.fixture
def members(declared: Props) -> Resource:
    resource = Resource(RoleMembersProvider())
    resource.up(**declared)
    return resource


@pytest.fixture
def members_on_server(light: httpx.Client, declared: Props) -> Callable[[], set[str]]:
    url, headers = f"/management/v1/role/{declared['role_id']}/members", {"x-project-id": declared["project_id"]}
    return lambda: {member["id"] for member in light.get(url, headers=headers).raise_for_status().json()["members"]}


def add_member(light: httpx.Client, declared: Props, kind: str, member: str) -> None:
    url, headers = f"/management/v1/role/{declared['role_id']}/members", {"x-project-id": declared["project_id"]}
    light.post(url, json={"members": [{"type": kind, "id": member}]}, headers=headers).raise_for_status()


def remove_member(light: httpx.Client, declared: Props, kind: str, member: str) -> None:
    url, headers = f"/management/v1/role/{declared['role_id']}/members", {"x-project-id": declared["project_id"]}
    light.delete(f"{url}/{kind}/{member}", headers=headers).raise_for_status()


def test_members_are_added_and_read(members: Resource, declared: Props, members_on_server: Any) -> None:
    assert members.id == declared["role_id"]
    assert members_on_server() == {*declared["users"], *declared["roles"]}
    assert members.outs["users"] == sorted(set(declared["users"]))
    assert members.up(**declared) == "same"
    assert members.refresh() == "same"


def test_users_and_roles_change_in_place(
    members: Resource, declared: Props, users: dict[str, str], members_on_server: Any
) -> None:
    assert members.up(**declared | {"users": [users["ann"], users["eve"]]}) == "update"
    assert members_on_server() == {users["ann"], users["eve"], *declared["roles"]}
    assert members.up(**declared | {"users": [], "roles": []}) == "update"
    assert members_on_server() == set()
    assert members.refresh() == "same"


def test_added_user_is_drift_and_removed(
    members: Resource, declared: Props, users: dict[str, str], light: httpx.Client, members_on_server: Any
) -> None:
    add_member(light, declared, "user", users["eve"])
    assert members.refresh() == "update"
    assert members.outs["users"] == sorted(users.values())
    assert members.up(**declared) == "update"
    assert users["eve"] not in members_on_server()


def test_added_role_is_drift_and_removed(
    members: Resource, declared: Props, new_role: Any, light: httpx.Client, members_on_server: Any
) -> None:
    intruders = new_role("intruders")
    add_member(light, declared, "role", intruders)
    assert members.refresh() == "update"
    assert members.up(**declared) == "update"
    assert intruders not in members_on_server()


@pytest.mark.parametrize("kind", ["user", "role"])
def test_removed_member_is_drift_and_added(
    members: Resource, declared: Props, light: httpx.Client, members_on_server: Any, kind: str
) -> None:
    member = declared[f"{kind}s"][0]
    remove_member(light, declared, kind, member)
    assert members.refresh() == "update"
    assert members.up(**declared) == "update"
    assert member in members_on_server()


def test_deleted_role_has_no_members(members: Resource, declared: Props, light: httpx.Client) -> None:
    headers = {"x-project-id": declared["project_id"]}
    light.delete(f"/management/v1/role/{declared['role_id']}", headers=headers).raise_for_status()
    before = members.outs
    assert members.refresh() == "delete"
    members.provider.delete(declared["role_id"], before)
    with pytest.raises(DeletedOutsideStackError, match=rf"role {declared['role_id']} of project .* does not exist"):
        members.up(**declared)


def test_existing_undeclared_members_need_adopt(
    declared: Props,
    users: dict[str, str],
    light: httpx.Client,
    members_on_server: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add_member(light, declared, "user", users["eve"])
    with pytest.raises(NotOwnedError, match=rf"not declared: user {users['eve']}.*adopt=True"):
        Resource(RoleMembersProvider()).up(**declared)
    assert members_on_server() == {users["eve"]}
    adopted = Resource(RoleMembersProvider())
    adopted.preview(**declared, adopt=True)
    assert f"this changes: users: ['{users['eve']}'] -> [" in capsys.readouterr().err
    adopted.up(**declared, adopt=True)
    assert members_on_server() == {*declared["users"], *declared["roles"]}
    assert adopted.refresh() == "same"


def test_killed_create_is_completed(
    declared: Props, users: dict[str, str], light: httpx.Client, members_on_server: Any
) -> None:
    add_member(light, declared, "user", users["bob"])
    Resource(RoleMembersProvider()).up(**declared)
    assert members_on_server() == {*declared["users"], *declared["roles"]}


def test_destroy_removes_declared_members_only(
    members: Resource, declared: Props, users: dict[str, str], light: httpx.Client, members_on_server: Any
) -> None:
    add_member(light, declared, "user", users["eve"])
    members.destroy()
    assert members_on_server() == {users["eve"]}


def test_lost_response_of_an_addition_does_no_harm(
    declared: Props, light: httpx.Client, members_on_server: Any
) -> None:
    rule = {"method": "POST", "path": "*/members", "action": "drop", "when": "after"}
    light.put("/sandbox/v1/faults", json=[rule]).raise_for_status()
    members = Resource(RoleMembersProvider())
    members.up(**declared)
    assert members_on_server() == {*declared["users"], *declared["roles"]}
    assert members.refresh() == "same"


def test_more_members_than_one_call_takes(
    declared: Props, light: httpx.Client, unique: str, members_on_server: Any
) -> None:
    many = [f"oidc~{unique}-{number}" for number in range(120)]
    for user_id in many:
        light.post("/management/v1/user", json={"id": user_id, "name": "x", "user-type": "human"}).raise_for_status()
    members = Resource(RoleMembersProvider())
    members.up(**declared | {"users": many})
    assert members.refresh() == "same"
    members.destroy()
    assert members_on_server() == set()


@pytest.fixture
def _catalog_members(real: RealServers | None) -> None:
    """Leave a test out where OpenFGA keeps the members: it accepts users and roles that Lakekeeper does not know."""
    if real and real.client.server().authz_backend == "openfga":
        leave_out("needs a server without OpenFGA")


@pytest.mark.usefixtures("_catalog_members")
def test_unknown_user_is_named_with_the_solution(declared: Props) -> None:
    with pytest.raises(NotGrantableError, match=r"oidc~nobody.*Declare a `User`"):
        Resource(RoleMembersProvider()).up(**declared | {"users": ["oidc~nobody"]})


@pytest.mark.usefixtures("_catalog_members")
def test_role_of_an_identity_provider_has_its_own_members(declared: Props, new_role: Any) -> None:
    body = {"provider-id": "idp", "source-id": "42"}
    with pytest.raises(RefusedError, match="RoleNotManuallyAssignable"):
        Resource(RoleMembersProvider()).up(**declared | {"role_id": new_role("managed", **body)})


def test_all_mistakes_are_reported_at_once(declared: Props) -> None:
    failures = Resource(RoleMembersProvider()).failures(**declared | {"users": ["noidp"], "roles": ["analysts"]})
    assert {path.split(".")[0] for path in failures} == {"users", "roles"}
    assert "`role_id` of a `Role`" in next(reason for path, reason in failures.items() if path.startswith("roles"))
    itself = declared | {"roles": [declared["role_id"]]}
    assert "member of itself" in Resource(RoleMembersProvider()).failures(**itself)[""]


def test_two_resources_for_one_roles_members_are_refused(declared: Props) -> None:
    first = Resource(RoleMembersProvider())
    first.up(**declared, declared_as="first")
    failures = Resource(RoleMembersProvider()).failures(**declared, declared_as="second")
    assert failures["role_id"] == (
        "RoleMembers `first` owns all members there already; there can be one such resource for each"
    )


def test_members_lookup(members: Resource, declared: Props) -> None:
    at = {name: declared[name] for name in ("server", "project_id", "role_id")}
    found = get_role_members(**at)
    assert set(found.users) == set(declared["users"])
    assert list(found.roles) == declared["roles"]
