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

pytestmark = [pytest.mark.any_server, pytest.mark.since("0.13")]


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
    """Return a function that creates a role in the project and returns its id."""
    headers = {"x-project-id": light_project["project_id"]}
    return lambda name, **body: (
        light.post("/management/v1/role", json={"name": name, **body}, headers=headers).raise_for_status().json()["id"]
    )


@pytest.fixture
def members_props(light_project: Props, users: dict[str, str], new_role: Callable[..., str]) -> Props:
    """Declared members: two users and a role."""
    role_ids = [new_role("interns")]
    return light_project | {
        "role_id": new_role("analysts"),
        "users": [users["bob"], users["ann"], users["bob"]],
        "roles": role_ids,
    }


@pytest.fixture
def members(members_props: Props) -> Resource:
    resource = Resource(RoleMembersProvider())
    resource.up(**members_props)
    return resource


@pytest.fixture
def list_server_members(light: httpx.Client, members_props: Props) -> Callable[[], set[str]]:
    url, headers = (
        f"/management/v1/role/{members_props['role_id']}/members",
        {"x-project-id": members_props["project_id"]},
    )
    return lambda: {member["id"] for member in light.get(url, headers=headers).raise_for_status().json()["members"]}


def add_member(light: httpx.Client, members_props: Props, kind: str, member: str) -> None:
    url, headers = (
        f"/management/v1/role/{members_props['role_id']}/members",
        {"x-project-id": members_props["project_id"]},
    )
    light.post(url, json={"members": [{"type": kind, "id": member}]}, headers=headers).raise_for_status()


def remove_member(light: httpx.Client, members_props: Props, kind: str, member: str) -> None:
    url, headers = (
        f"/management/v1/role/{members_props['role_id']}/members",
        {"x-project-id": members_props["project_id"]},
    )
    light.delete(f"{url}/{kind}/{member}", headers=headers).raise_for_status()


def test_members_are_added_and_read(members: Resource, members_props: Props, list_server_members: Any) -> None:
    assert members.id == members_props["role_id"]
    assert list_server_members() == {*members_props["users"], *members_props["roles"]}
    assert members.outs["users"] == sorted(set(members_props["users"]))
    assert members.up(**members_props) == "same"
    assert members.refresh() == "same"


def test_users_and_roles_change_in_place(
    members: Resource, members_props: Props, users: dict[str, str], list_server_members: Any
) -> None:
    assert members.up(**members_props | {"users": [users["ann"], users["eve"]]}) == "update"
    assert list_server_members() == {users["ann"], users["eve"], *members_props["roles"]}
    assert members.up(**members_props | {"users": [], "roles": []}) == "update"
    assert list_server_members() == set()
    assert members.refresh() == "same"


def test_added_user_is_drift_and_removed(
    members: Resource, members_props: Props, users: dict[str, str], light: httpx.Client, list_server_members: Any
) -> None:
    add_member(light, members_props, "user", users["eve"])
    assert members.refresh() == "update"
    assert members.outs["users"] == sorted(users.values())
    assert members.up(**members_props) == "update"
    assert users["eve"] not in list_server_members()


def test_added_role_is_drift_and_removed(
    members: Resource, members_props: Props, new_role: Any, light: httpx.Client, list_server_members: Any
) -> None:
    intruders = new_role("intruders")
    add_member(light, members_props, "role", intruders)
    assert members.refresh() == "update"
    assert members.up(**members_props) == "update"
    assert intruders not in list_server_members()


@pytest.mark.parametrize("kind", ["user", "role"])
def test_removed_member_is_drift_and_added(
    members: Resource, members_props: Props, light: httpx.Client, list_server_members: Any, kind: str
) -> None:
    member = members_props[f"{kind}s"][0]
    remove_member(light, members_props, kind, member)
    assert members.refresh() == "update"
    assert members.up(**members_props) == "update"
    assert member in list_server_members()


def test_deleted_role_has_no_members(members: Resource, members_props: Props, light: httpx.Client) -> None:
    headers = {"x-project-id": members_props["project_id"]}
    light.delete(f"/management/v1/role/{members_props['role_id']}", headers=headers).raise_for_status()
    before = members.outs
    assert members.refresh() == "delete"
    members.provider.delete(members_props["role_id"], before)
    with pytest.raises(
        DeletedOutsideStackError, match=rf"role {members_props['role_id']} of project .* does not exist"
    ):
        members.up(**members_props)


def test_existing_undeclared_members_need_adopt(
    members_props: Props,
    users: dict[str, str],
    light: httpx.Client,
    list_server_members: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add_member(light, members_props, "user", users["eve"])
    with pytest.raises(NotOwnedError, match=rf"not declared: user {users['eve']}.*adopt=True"):
        Resource(RoleMembersProvider()).up(**members_props)
    assert list_server_members() == {users["eve"]}
    adopted = Resource(RoleMembersProvider())
    adopted.preview(**members_props, adopt=True)
    assert f"this changes: users: ['{users['eve']}'] -> [" in capsys.readouterr().err
    adopted.up(**members_props, adopt=True)
    assert list_server_members() == {*members_props["users"], *members_props["roles"]}
    assert adopted.refresh() == "same"


def test_killed_create_is_completed(
    members_props: Props, users: dict[str, str], light: httpx.Client, list_server_members: Any
) -> None:
    add_member(light, members_props, "user", users["bob"])
    Resource(RoleMembersProvider()).up(**members_props)
    assert list_server_members() == {*members_props["users"], *members_props["roles"]}


def test_destroy_removes_declared_members_only(
    members: Resource, members_props: Props, users: dict[str, str], light: httpx.Client, list_server_members: Any
) -> None:
    add_member(light, members_props, "user", users["eve"])
    members.destroy()
    assert list_server_members() == {users["eve"]}


def test_lost_response_of_an_addition_does_no_harm(
    members_props: Props, light: httpx.Client, list_server_members: Any
) -> None:
    rule = {"method": "POST", "path": "*/members", "action": "drop", "when": "after"}
    light.put("/sandbox/v1/faults", json=[rule]).raise_for_status()
    members = Resource(RoleMembersProvider())
    members.up(**members_props)
    assert list_server_members() == {*members_props["users"], *members_props["roles"]}
    assert members.refresh() == "same"


def test_more_members_than_one_call_takes(
    members_props: Props, light: httpx.Client, unique: str, list_server_members: Any
) -> None:
    many = [f"oidc~{unique}-{number}" for number in range(120)]
    for user_id in many:
        light.post("/management/v1/user", json={"id": user_id, "name": "x", "user-type": "human"}).raise_for_status()
    members = Resource(RoleMembersProvider())
    members.up(**members_props | {"users": many})
    assert members.refresh() == "same"
    members.destroy()
    assert list_server_members() == set()


@pytest.fixture
def _catalog_members(real: RealServers | None) -> None:
    """Leave a test out where OpenFGA keeps the members: it accepts users and roles that Lakekeeper does not know."""
    if real and real.client.server().authz_backend == "openfga":
        leave_out("needs a server without OpenFGA")


@pytest.mark.usefixtures("_catalog_members")
def test_unknown_user_is_named_with_the_solution(members_props: Props) -> None:
    with pytest.raises(NotGrantableError, match=r"oidc~nobody.*Declare a `User`"):
        Resource(RoleMembersProvider()).up(**members_props | {"users": ["oidc~nobody"]})


@pytest.mark.usefixtures("_catalog_members")
def test_role_of_an_identity_provider_has_its_own_members(members_props: Props, new_role: Any) -> None:
    body = {"provider-id": "idp", "source-id": "42"}
    with pytest.raises(RefusedError, match="RoleNotManuallyAssignable"):
        Resource(RoleMembersProvider()).up(**members_props | {"role_id": new_role("managed", **body)})


def test_all_mistakes_are_reported_at_once(members_props: Props) -> None:
    failures = Resource(RoleMembersProvider()).failures(**members_props | {"users": ["noidp"], "roles": ["analysts"]})
    assert {path.split(".")[0] for path in failures} == {"users", "roles"}
    assert "`role_id` of a `Role`" in next(reason for path, reason in failures.items() if path.startswith("roles"))
    itself = members_props | {"roles": [members_props["role_id"]]}
    assert "member of itself" in Resource(RoleMembersProvider()).failures(**itself)[""]


def test_two_resources_for_one_roles_members_are_refused(members_props: Props) -> None:
    first = Resource(RoleMembersProvider())
    first.up(**members_props, declared_as="first")
    failures = Resource(RoleMembersProvider()).failures(**members_props, declared_as="second")
    assert failures["role_id"] == (
        "RoleMembers `first` owns all members there already; there can be one such resource for each"
    )


def test_members_lookup(members: Resource, members_props: Props) -> None:
    lookup_args = {name: members_props[name] for name in ("server", "project_id", "role_id")}
    lookup = get_role_members(**lookup_args)
    assert set(lookup.users) == set(members_props["users"])
    assert list(lookup.roles) == members_props["roles"]
