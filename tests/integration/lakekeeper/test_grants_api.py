"""The Grants API: equal for every kind of object, idempotent, atomic; with both authorizers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import NEWEST

from tests.integration.lakekeeper.rules import get_refusal

V1 = "/management/v1"


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server that allows all actions; `oidc~known` is a user."""
    database: Path = tmp_path_factory.mktemp("grants") / "lakekeeper.db"
    with (
        serve(create_app(Settings(database=f"sqlite:///{database}", version=NEWEST))) as endpoint,
        httpx.Client(base_url=endpoint) as client,
    ):
        client.post(f"{V1}/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
        client.post(f"{V1}/user", json={"id": "oidc~known", "name": "Known", "user-type": "human"}).raise_for_status()
        yield client


def build_entry(privilege: str, user: str = "oidc~known") -> dict[str, Any]:
    return {"privilege": privilege, "principal": {"user": user}}


def post_grants(http: httpx.Client, path: str, **sides: list[dict[str, Any]]) -> httpx.Response:
    return http.post(f"{V1}/{path}/grants", json=sides)


def list_grants(http: httpx.Client, path: str, **params: Any) -> list[dict[str, Any]]:
    response = http.get(f"{V1}/{path}/grants", params=params)
    assert response.status_code == 200, response.text
    return response.json()["grants"]


@pytest.mark.parametrize("path", ["server", "project"])
def test_existing_and_missing_grants_are_ignored(http: httpx.Client, path: str) -> None:
    privilege = {"server": "list_users", "project": "list_roles"}[path]
    for _ in range(2):
        assert post_grants(http, path, writes=[build_entry(privilege)]).status_code == 204
    assert [one["privilege"] for one in list_grants(http, path)] == [privilege]
    for _ in range(2):
        assert post_grants(http, path, deletes=[build_entry(privilege)]).status_code == 204
    assert list_grants(http, path) == []


@pytest.mark.parametrize(
    ("sides", "kind"),
    [
        ({}, "EmptyGrantDiff"),
        ({"writes": [build_entry(f"p{index}") for index in range(101)]}, "GrantDiffTooLarge"),
        ({"writes": [build_entry("")]}, "InvalidGrantPrivilegeLength"),
        ({"writes": [build_entry("delete")], "deletes": [build_entry("delete")]}, "ContradictoryGrantDiff"),
        ({"writes": [build_entry("delete"), build_entry("delete")]}, "DuplicateGrantEntry"),
        ({"writes": [build_entry("select")]}, "InvalidGrantPrivilege"),
        ({"writes": [build_entry("delete", "oidc~unknown")]}, "GrantUserNotFound"),
        (
            {"writes": [{"privilege": "delete", "principal": {"role": str(uuid.uuid4())}}]},
            "GrantRoleNotInProject",
        ),
    ],
)
def test_an_invalid_difference_is_refused(http: httpx.Client, sides: Any, kind: str) -> None:
    assert get_refusal(post_grants(http, "project", **sides)) == (400, kind)
    assert list_grants(http, "project") == []


def test_unknown_fields_are_refused(http: httpx.Client) -> None:
    response = http.post(f"{V1}/project/grants", json={"writes": [build_entry("delete") | {"note": "x"}]})
    assert (response.status_code, response.headers["content-type"].split(";")[0]) == (422, "text/plain")


def test_pages_are_followed_up_to_the_last_token(http: httpx.Client) -> None:
    privileges = ["rename", "delete", "list_roles", "create_role", "search_roles"]
    post_grants(http, "project", writes=[build_entry(name) for name in privileges])
    listed_privileges: list[str] = []
    params: dict[str, Any] = {"pageSize": 2}
    while True:
        page = http.get(f"{V1}/project/grants", params=params).json()
        listed_privileges += [one["privilege"] for one in page["grants"]]
        if page["next-page-token"] is None:
            break
        params["pageToken"] = page["next-page-token"]
    assert listed_privileges == privileges
    post_grants(http, "project", deletes=[build_entry(name) for name in privileges])


def test_grants_are_listed_by_principal(http: httpx.Client) -> None:
    role = http.post(f"{V1}/role", json={"name": "grantee"}).json()["id"]
    post_grants(http, "project", writes=[{"privilege": "delete", "principal": {"role": role}}, build_entry("rename")])
    assert [one["privilege"] for one in list_grants(http, "project", principalRole=role)] == ["delete"]
    everything = http.get(f"{V1}/grants", params={"principalRole": role}).json()["grants"]
    project = http.get(f"{V1}/project").json()["project-id"]
    assert everything[0] | {"created-at": None} == {
        "principal": {"role": role},
        "resource": {"type": "project", "project-id": project},
        "privilege": "delete",
        "recognized": True,
        "created-at": None,
    }
    assert get_refusal(http.get(f"{V1}/grants")) == (400, "MissingGrantPrincipal")
    both = {"principalRole": role, "principalUser": "oidc~known"}
    assert get_refusal(http.get(f"{V1}/project/grants", params=both)) == (400, "AmbiguousGrantPrincipal")
    http.delete(f"{V1}/role/{role}")
    assert [one["privilege"] for one in list_grants(http, "project")] == ["rename"]
    post_grants(http, "project", deletes=[build_entry("rename")])


def test_the_vocabulary_of_all_kinds(http: httpx.Client, people: Any) -> None:
    actions = http.get(f"{V1}/grants/grantable-privileges").json()["privileges"]
    assert "read_data" in {one["name"] for one in actions["table"]}
    relations = people("root").get(f"{V1}/grants/grantable-privileges").json()["privileges"]
    assert [one["name"] for one in relations["server"]] == ["admin", "operator"]
    assert {one["category"] for one in relations["table"]} == {"security", "metadata", "read", "write"}


@pytest.fixture(scope="module")
def warehouse(people: Any, make_warehouse: Callable[..., str]) -> str:
    return make_warehouse(people("root"), "granted")


def test_under_openfga_grants_are_the_tuples(people: Any, warehouse: str) -> None:
    root, path = people("root"), f"warehouse/{warehouse}"
    for _ in range(2):
        assert post_grants(root, path, writes=[build_entry("select", "oidc~unknown")]).status_code == 204
    assignments = root.get(f"{V1}/permissions/{path}/assignments", params={"relations": "select"}).json()
    assert assignments == {"assignments": [{"type": "select", "user": "oidc~unknown"}]}
    assert {(one["privilege"], one["principal"]["user"]) for one in list_grants(root, path)} == {
        ("ownership", "oidc~root"),
        ("select", "oidc~unknown"),
    }
    assert get_refusal(post_grants(root, path, writes=[build_entry("get_metadata")])) == (400, "InvalidGrantPrivilege")


def test_openfga_lists_no_grants_of_a_principal_across_objects(people: Any) -> None:
    response = people("root").get(f"{V1}/grants", params={"principalUser": "oidc~root"})
    assert get_refusal(response) == (501, "GrantListingNotImplemented")


def test_granting_without_the_right_is_forbidden(people: Any, warehouse: str) -> None:
    path, grant_entry = f"warehouse/{warehouse}", build_entry("select", "oidc~friend")
    post_grants(
        people("root"), path, writes=[build_entry("pass_grants", "oidc~passer"), build_entry("select", "oidc~passer")]
    )
    assert post_grants(people("passer"), path, writes=[grant_entry]).status_code == 204
    refused = post_grants(people("passer"), path, writes=[grant_entry, build_entry("modify", "oidc~friend")])
    assert get_refusal(refused) == (403, "GrantActionForbidden")
    assert "`modify`" in refused.json()["error"]["message"]
    assert "`select`" not in refused.json()["error"]["message"]


def test_the_right_to_read_grants_makes_an_object_visible(people: Any, warehouse: str) -> None:
    path = f"warehouse/{warehouse}"
    post_grants(people("root"), path, writes=[build_entry("manage_grants", "oidc~granter")])
    granter = people("granter")
    assert get_refusal(granter.get(f"{V1}/{path}")) == (404, "NoSuchWarehouseException")
    assert list_grants(granter, path)
    assert get_refusal(people("mallory").get(f"{V1}/{path}/grants")) == (404, "NoSuchWarehouseException")


def test_callers_read_their_own_grants(people: Any, warehouse: str) -> None:
    path = f"warehouse/{warehouse}"
    post_grants(people("root"), path, writes=[build_entry("describe", "oidc~describer")])
    describer = people("describer")
    assert [one["privilege"] for one in list_grants(describer, path, principalUser="oidc~describer")] == ["describe"]
    assert get_refusal(describer.get(f"{V1}/{path}/grants")) == (403, "WarehouseActionForbidden")


def test_grantable_privileges_by_caller(people: Any, warehouse: str) -> None:
    path = f"{V1}/warehouse/{warehouse}/grants/grantable-privileges"

    def list_allowed(user: str, **params: str) -> set[str]:
        privileges = people(user).get(path, params=params).json()["privileges"]
        return {one["privilege"]["name"] for one in privileges if one["allowed"]}

    assert "modify" in list_allowed("root")
    assert list_allowed("root", principalUser="oidc~nobody") == set()
    refused = people("nobody").get(path, params={"principalUser": "oidc~root"})
    assert get_refusal(refused) == (403, "CannotInspectPermissions")
