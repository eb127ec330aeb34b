"""Users, roles and members under allow-all, beyond the recordings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

from tests.integration.lakekeeper.rules import get_refusal

V1 = "/management/v1"


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    database: Path = tmp_path_factory.mktemp("roles") / "lakekeeper.db"
    with (
        serve(create_app(Settings(database=f"sqlite:///{database}"))) as endpoint,
        httpx.Client(base_url=endpoint) as client,
    ):
        client.post(f"{V1}/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
        yield client


def new_role(http: httpx.Client, name: str, project: str | None = None, **fields: Any) -> str:
    headers = {"x-project-id": project} if project else {}
    response = http.post(f"{V1}/role", json={"name": name, **fields}, headers=headers)
    assert response.status_code == 201, response.text
    return response.json()["id"]


def new_user(http: httpx.Client, name: str) -> str:
    body = {"id": f"oidc~{name}", "name": name, "user-type": "human"}
    assert http.post(f"{V1}/user", json=body).status_code == 201
    return body["id"]


def add_members(http: httpx.Client, role: str, *members: str) -> httpx.Response:
    member_entries = [{"type": "user" if "~" in member else "role", "id": member} for member in members]
    return http.post(f"{V1}/role/{role}/members", json={"members": member_entries})


@pytest.mark.parametrize(
    ("user_id", "kind"),
    [("plain", "InvalidUserId"), ("oidc~", "EmptyUserIdError"), (f"oidc~{'x' * 128}", "UserIdTooLongError")],
)
def test_an_invalid_user_id_is_refused(http: httpx.Client, user_id: str, kind: str) -> None:
    assert get_refusal(http.get(f"{V1}/user/{user_id}")) == (400, kind)


def test_a_put_replaces_all_of_a_user(http: httpx.Client) -> None:
    user = new_user(http, "put")
    http.put(f"{V1}/user/{user}", json={"name": "New", "user-type": "application", "email": "a@example.org"})
    http.put(f"{V1}/user/{user}", json={"name": "New", "user-type": "application"})
    assert http.get(f"{V1}/user/{user}").json()["email"] is None
    absent = http.put(f"{V1}/user/oidc~absent", json={"name": "New", "user-type": "human"})
    assert get_refusal(absent) == (404, "UserNotFound")


def test_an_encoded_slash_is_part_of_an_id(http: httpx.Client) -> None:
    user = new_user(http, "https://issuer.example/user")
    path = f"{V1}/user/oidc~https:%2f%2fissuer.example%2Fuser"
    assert http.get(path).json()["id"] == user
    assert http.get(f"{path}/roles").status_code == 200
    assert http.delete(path).status_code == 204
    assert get_refusal(http.get(path)) == (404, "UserNotFound")
    assert http.get(f"{V1}/user/oidc~https:%252f%252fissuer.example").json()["error"]["type"] == "UserNotFound"


def test_a_user_type_that_is_missing_for_another_user(http: httpx.Client) -> None:
    assert get_refusal(http.post(f"{V1}/user", json={"id": "oidc~t", "name": "T"})) == (400, "MissingUserType")


def test_users_are_listed_in_pages_and_by_name(http: httpx.Client) -> None:
    for index in range(3):
        new_user(http, f"paged-{index}")
    names: list[str] = []
    params: dict[str, Any] = {"name": "PAGED", "pageSize": 2}
    while True:
        page = http.get(f"{V1}/user", params=params).json()
        names += [user["name"] for user in page["users"]]
        if page["next-page-token"] is None:
            break
        params["pageToken"] = page["next-page-token"]
    assert names == ["paged-0", "paged-1", "paged-2"]


def test_a_restored_user_has_no_roles(http: httpx.Client) -> None:
    user, role = new_user(http, "gone"), new_role(http, "of-gone")
    assert add_members(http, role, user).status_code == 200
    assert http.delete(f"{V1}/user/{user}").status_code == 204
    assert get_refusal(http.delete(f"{V1}/user/{user}")) == (404, "UserNotFound")
    user_body = {"id": user, "name": "gone", "user-type": "human"}
    assert get_refusal(http.post(f"{V1}/user", json=user_body)) == (409, "UserAlreadyExists")
    assert http.post(f"{V1}/user", json=user_body | {"update-if-exists": True}).status_code == 200
    assert http.get(f"{V1}/user/{user}/roles").json()["roles"] == []


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"provider-id": "idp"}, "InvalidRoleIdentifier"),
        ({"source-id": "1"}, "InvalidRoleIdentifier"),
        ({"provider-id": "system", "source-id": "1"}, "RoleProviderIdReserved"),
    ],
)
def test_an_invalid_role_identifier_is_refused(http: httpx.Client, fields: dict[str, str], kind: str) -> None:
    assert get_refusal(http.post(f"{V1}/role", json={"name": "bad", **fields})) == (400, kind)


def test_a_source_is_one_role_only(http: httpx.Client) -> None:
    new_role(http, "first-of-source", **{"provider-id": "idp", "source-id": "same"})
    body = {"name": "second-of-source", "provider-id": "idp", "source-id": "same"}
    assert get_refusal(http.post(f"{V1}/role", json=body)) == (409, "RoleSourceIdConflict")
    role = new_role(http, "third-of-source")
    moved = http.put(f"{V1}/role/{role}/source-system", json={"provider-id": "idp", "source-id": "same"})
    assert get_refusal(moved) == (409, "RoleSourceIdConflict")
    moved = http.put(f"{V1}/role/{role}/source-system", json={"provider-id": "idp", "source-id": "other"})
    assert moved.json()["ident"] == "idp~other"


def test_roles_are_listed_by_their_identifiers(http: httpx.Client) -> None:
    one = new_role(http, "filtered-1", **{"provider-id": "filter", "source-id": "1"})
    two = new_role(http, "filtered-2", **{"provider-id": "filter", "source-id": "2"})

    def list_role_ids(**params: Any) -> list[str]:
        return [role["id"] for role in http.get(f"{V1}/role", params=params).json()["roles"]]

    assert list_role_ids(providerIds=["filter"]) == [one, two]
    assert list_role_ids(providerIds=["filter"], sourceIds=["2"]) == [two]
    assert list_role_ids(roleIds=[one, two]) == [one, two]


def test_a_role_of_another_project_has_visible_metadata_only(http: httpx.Client) -> None:
    http.post(f"{V1}/project", json={"project-name": "other", "project-id": "other"})
    role = new_role(http, "foreign", "other")
    assert get_refusal(http.get(f"{V1}/role/{role}")) == (404, "RoleNotFoundInProject")
    metadata = http.get(f"{V1}/role/{role}/metadata").json()
    assert (metadata["name"], metadata["project-id"]) == ("foreign", "other")
    assert "description" not in metadata


def test_a_project_with_a_role_is_not_empty(http: httpx.Client) -> None:
    http.post(f"{V1}/project", json={"project-name": "full", "project-id": "full"})
    new_role(http, "last", "full")
    assert get_refusal(http.delete(f"{V1}/project", headers={"x-project-id": "full"})) == (409, "ProjectNotEmpty")


def test_members_are_listed_with_their_details(http: httpx.Client) -> None:
    role, inner, user = new_role(http, "outer"), new_role(http, "inner"), new_user(http, "member")
    assert add_members(http, role, user, inner, user).json()["members"] == [
        {"type": "user", "id": user},
        {"type": "role", "id": inner},
    ]
    path = f"{V1}/role/{role}/members"
    members = http.get(path).json()["members"]
    assert {"type": "user", "id": user, "name": "member", "email": None, "user-type": "human"} in members
    assert {"type": "role", "id": inner, "ident": f"lakekeeper~{inner}", "name": "inner"} in members
    assert [one["id"] for one in http.get(path, params={"type": "role"}).json()["members"]] == [inner]
    assert [one["id"] for one in http.get(f"{V1}/role/{inner}/member-of").json()["roles"]] == [role]
    assert [one["id"] for one in http.get(f"{V1}/user/{user}/roles").json()["roles"]] == [role]


def test_membership_reaches_through_roles(http: httpx.Client) -> None:
    top, middle, user = new_role(http, "top"), new_role(http, "middle"), new_user(http, "deep")
    add_members(http, top, middle)
    add_members(http, middle, user)
    assert {one["id"] for one in http.get(f"{V1}/role/{top}/members/transitive").json()["members"]} == {middle, user}
    assert {one["id"] for one in http.get(f"{V1}/user/{user}/roles/transitive").json()["roles"]} == {middle, top}
    assert [one["id"] for one in http.get(f"{V1}/role/{middle}/member-of/transitive").json()["roles"]] == [top]


def test_an_unknown_user_refuses_the_whole_batch_of_members(http: httpx.Client) -> None:
    role, user = new_role(http, "strict"), new_user(http, "known")
    assert get_refusal(add_members(http, role, user, "oidc~unknown")) == (404, "RoleAssignmentUserNotFound")
    assert http.get(f"{V1}/role/{role}/members").json()["members"] == []


def test_roles_make_no_cycle(http: httpx.Client) -> None:
    one, two = new_role(http, "cycle-1"), new_role(http, "cycle-2")
    assert get_refusal(add_members(http, one, one)) == (409, "RoleMembershipCycle")
    assert add_members(http, one, two).status_code == 200
    assert get_refusal(add_members(http, two, one)) == (409, "RoleMembershipCycle")


def test_roles_nest_ten_deep(http: httpx.Client) -> None:
    roles = [new_role(http, f"depth-{index}") for index in range(12)]
    for above, below in pairwise(roles[:11]):
        assert add_members(http, above, below).status_code == 200
    assert get_refusal(add_members(http, roles[10], roles[11])) == (409, "RoleMembershipDepthExceeded")


def test_a_role_of_another_project_is_no_member(http: httpx.Client) -> None:
    http.post(f"{V1}/project", json={"project-name": "abroad", "project-id": "abroad"})
    foreign, role = new_role(http, "abroad", "abroad"), new_role(http, "home")
    assert get_refusal(add_members(http, role, foreign)) == (404, "RoleNotFoundInProject")
