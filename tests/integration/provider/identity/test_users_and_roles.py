"""Users and roles: creation, update, drift, deletion, and adoption."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from lakewright.lakekeeper import get_role, get_roles, get_user, get_users
from lakewright.lakekeeper.api.connection.errors import (
    ForbiddenError,
    InvalidLookupError,
    NoSuchPathError,
    NothingFoundError,
    RefusedError,
)
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.identity.user import UserProvider
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, NotOwnedError

from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.any_server


@pytest.fixture
def alice(light_project: Props, unique: str) -> Props:
    """A declared user."""
    return {
        "server": light_project["server"],
        "user_id": f"oidc~auth0|alice ä {unique}",
        "name": "Alice",
        "user_type": "human",
        "email": "alice@example.org",
    }


@pytest.fixture
def user(alice: Props) -> Resource:
    resource = Resource(UserProvider())
    resource.up(**alice)
    return resource


@pytest.fixture
def analysts(light_project: Props) -> Props:
    """A declared role."""
    return light_project | {"name": "analysts", "description": "read"}


@pytest.fixture
def role(analysts: Props) -> Resource:
    resource = Resource(RoleProvider())
    resource.up(**analysts)
    return resource


def read_user(light: httpx.Client, user_id: str) -> Props:
    return next(
        item for item in light.get("/management/v1/user?pageSize=1000").json()["users"] if item["id"] == user_id
    )


def read_role(light: httpx.Client, role: Resource) -> Props:
    return light.get(f"/management/v1/role/{role.id}", headers=build_headers(role)).raise_for_status().json()


def build_headers(role: Resource) -> dict[str, str]:
    return {"x-project-id": role.inputs["project_id"]}


def test_user_is_created_and_read(user: Resource, alice: Props, light: httpx.Client) -> None:
    assert user.id == alice["user_id"]
    assert read_user(light, user.id)["email"] == "alice@example.org"
    assert user.up(**alice) == "same"
    assert user.refresh() == "same"


@pytest.mark.parametrize(("name", "value"), [("name", "Alice B"), ("user_type", "application"), ("email", "b@c.org")])
def test_user_properties_change_in_place(user: Resource, alice: Props, name: str, value: str) -> None:
    assert user.up(**alice | {name: value}) == "update"
    assert user.refresh() == "same"
    assert user.outs[name] == value


def test_empty_email_is_none_and_undeclared_is_the_servers(user: Resource, alice: Props, light: httpx.Client) -> None:
    undeclared = {name: value for name, value in alice.items() if name != "email"}
    assert user.up(**undeclared) == "same"
    assert user.up(**undeclared | {"name": "Alice B"}) == "update"
    assert read_user(light, user.id)["email"] == "alice@example.org"
    assert user.refresh() == "same"
    assert user.up(**alice | {"email": ""}) == "update"
    assert read_user(light, user.id)["email"] is None
    assert user.refresh() == "same"


def test_deleted_user_is_missed_instead_of_updated(user: Resource, alice: Props, light: httpx.Client) -> None:
    light.delete(f"/management/v1/user/{user.id}").raise_for_status()
    with pytest.raises(DeletedOutsideStackError, match="up --refresh"):
        user.up(**alice | {"name": "x"})


@pytest.mark.parametrize(
    "drift", [{"name": "X"}, {"user-type": "application"}, {"email": None}], ids=["name", "user_type", "email"]
)
def test_user_drift_is_restored(user: Resource, alice: Props, light: httpx.Client, drift: Props) -> None:
    body = {"name": "Alice", "user-type": "human", "email": "alice@example.org"} | drift
    light.put(f"/management/v1/user/{user.id}", json=body).raise_for_status()
    assert user.refresh() == "update"
    assert user.up(**alice) == "update"
    assert user.refresh() == "same"


def test_deleted_user_is_recreated(user: Resource, alice: Props, light: httpx.Client) -> None:
    path = f"/management/v1/user/{user.id}"
    light.delete(path).raise_for_status()
    assert user.refresh() == "delete"
    assert user.up(**alice) == "create"
    light.delete(path).raise_for_status()
    user.destroy()


def test_existing_user_needs_adopt(alice: Props, light: httpx.Client) -> None:
    body = {"id": alice["user_id"], "name": "A. from the token", "user-type": "human"}
    light.post("/management/v1/user", json=body).raise_for_status()
    assert "with other name, email " in Resource(UserProvider()).refusal(**alice)
    adopted = Resource(UserProvider())
    adopted.up(**alice, adopt=True)
    assert adopted.refresh() == "same"
    assert read_user(light, adopted.id)["name"] == "Alice"


def test_preview_reports_the_changes_of_adoption(
    user: Resource, alice: Props, role: Resource, analysts: Props, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Resource(UserProvider()).preview(**alice | {"name": "Alice B"}, adopt=True) == "create"
    assert Resource(RoleProvider()).preview(**analysts | {"description": "write"}, adopt=True) == "create"
    printed = capsys.readouterr().err
    assert f"user `{user.id}` at {alice['server']['endpoint']} ({user.id}) exists already and is adopted" in printed
    assert "this changes: name: 'Alice' -> 'Alice B'" in printed
    assert "this changes: description: 'read' -> 'write'" in printed


def test_existing_equal_user_is_taken_for_a_killed_create(
    user: Resource, alice: Props, report_interrupted_create: Any
) -> None:
    assert "this stack did not make it" in Resource(UserProvider()).refusal(**alice)
    report_interrupted_create("User", alice)
    assert Resource(UserProvider()).up(**alice) == "create"


def test_another_user_id_replaces(user: Resource, alice: Props) -> None:
    assert user.preview(**alice | {"user_id": "oidc~bob"}) == "replace"


def test_all_mistakes_of_a_user_are_reported(alice: Props) -> None:
    wrong = alice | {"user_id": "noidp", "name": "", "user_type": "robot"}
    failures = Resource(UserProvider()).failures(**wrong)
    assert failures.keys() == {"user_id", "name", "user_type"}
    assert "IDP~SUBJECT" in failures["user_id"]


@pytest.mark.since("0.12")
def test_role_is_created_and_read(role: Resource, analysts: Props, light: httpx.Client) -> None:
    live_role = read_role(light, role)
    assert (live_role["name"], live_role["description"]) == ("analysts", "read")
    assert role.outs["ident"] == live_role["ident"]
    assert role.up(**analysts) == "same"
    assert role.refresh() == "same"


@pytest.mark.parametrize(("name", "value"), [("name", "Analysts"), ("name", "readers"), ("description", "write")])
def test_role_properties_change_in_place(
    role: Resource, analysts: Props, light: httpx.Client, name: str, value: str
) -> None:
    assert role.up(**analysts | {name: value}) == "update"
    assert read_role(light, role)[name] == value
    assert role.refresh() == "same"


def test_empty_and_undeclared_description_of_a_role(role: Resource, analysts: Props, light: httpx.Client) -> None:
    """An empty description is none. The server keeps an undeclared description."""
    undeclared = {name: value for name, value in analysts.items() if name != "description"}
    assert role.up(**undeclared) == "same"
    assert role.up(**undeclared | {"name": "readers"}) == "update"
    assert read_role(light, role)["description"] == "read"
    assert role.refresh() == "same"
    assert role.up(**analysts | {"description": ""}) == "update"
    assert read_role(light, role)["description"] is None
    assert role.refresh() == "same"


@pytest.mark.parametrize(
    "drift", [{"name": "x"}, {"description": "x"}, {"description": None}], ids=["name", "description", "no description"]
)
def test_role_drift_is_restored(role: Resource, analysts: Props, light: httpx.Client, drift: Props) -> None:
    body = {"name": "analysts", "description": "read"} | drift
    light.post(f"/management/v1/role/{role.id}", json=body, headers=build_headers(role)).raise_for_status()
    assert role.refresh() == "update"
    assert role.up(**analysts) == "update"
    assert role.refresh() == "same"


@pytest.mark.since("0.12")
def test_role_of_an_identity_provider(light_project: Props, light: httpx.Client) -> None:
    role_props = light_project | {"name": "editors", "provider_id": "idp", "source_id": "42"}
    role = Resource(RoleProvider())
    role.up(**role_props)
    assert role.outs["ident"] == "idp~42"
    assert role.up(**role_props | {"source_id": "43"}) == "update"
    assert role.outs["ident"] == "idp~43"
    body = {"provider-id": "idp", "source-id": "44"}
    light.put(f"/management/v1/role/{role.id}/source-system", json=body, headers=build_headers(role)).raise_for_status()
    assert role.refresh() == "update"
    assert role.up(**role_props | {"source_id": "43"}) == "update"
    assert role.refresh() == "same"


def test_undeclared_source_is_the_servers_to_keep(role: Resource, light: httpx.Client) -> None:
    body = {"provider-id": "idp", "source-id": "7"}
    light.put(f"/management/v1/role/{role.id}/source-system", json=body, headers=build_headers(role)).raise_for_status()
    assert role.refresh() == "same"


def test_recreated_role_with_another_id_is_adopted(role: Resource, analysts: Props, light: httpx.Client) -> None:
    light.delete(f"/management/v1/role/{role.id}", headers=build_headers(role)).raise_for_status()
    body = {"name": "Analysts", "description": "read"}
    response = light.post("/management/v1/role", json=body, headers=build_headers(role)).raise_for_status().json()
    assert role.refresh() == "delete"
    assert "with other name" in role.refusal(**analysts)
    assert role.up(**analysts, adopt=True) == "create"
    assert role.id == response["id"]
    assert read_role(light, role)["name"] == "analysts"


@pytest.mark.since("0.12")
def test_role_is_adopted_by_its_source(light_project: Props, light: httpx.Client) -> None:
    body = {"name": "from-idp", "provider-id": "idp", "source-id": "42"}
    headers = {"x-project-id": light_project["project_id"]}
    response = light.post("/management/v1/role", json=body, headers=headers).raise_for_status().json()
    role_props = light_project | {"name": "editors", "provider_id": "idp", "source_id": "42"}
    role = Resource(RoleProvider())
    assert "with other name" in role.refusal(**role_props)
    role.up(**role_props, adopt=True)
    assert role.id == response["id"]
    assert role.refresh() == "same"


def test_deleted_role_is_missed_instead_of_updated(role: Resource, analysts: Props, light: httpx.Client) -> None:
    light.delete(f"/management/v1/role/{role.id}", headers=build_headers(role)).raise_for_status()
    with pytest.raises(DeletedOutsideStackError, match=r"role `analysts`.*up --refresh"):
        role.up(**analysts | {"name": "x"})
    role.destroy()


def test_taken_name_is_reported_with_its_role(role: Resource, analysts: Props) -> None:
    other = Resource(RoleProvider())
    other.up(**analysts | {"name": "editors"})
    with pytest.raises(NotOwnedError, match=rf"role {role.id} \(`analysts`\) has that name"):
        other.up(**analysts)


def test_another_project_replaces_a_role(role: Resource, analysts: Props) -> None:
    assert role.preview(**analysts | {"project_id": "other"}) == "replace"


def test_role_of_a_deleted_project_is_missing(light: httpx.Client, unique: str, analysts: Props) -> None:
    project = f"{unique}-2"
    body = {"project-id": project, "project-name": project}
    light.post("/management/v1/project", json=body).raise_for_status()
    role = Resource(RoleProvider())
    role.up(**analysts | {"project_id": project})
    light.delete(f"/management/v1/role/{role.id}", headers=build_headers(role)).raise_for_status()
    light.delete("/management/v1/project", headers=build_headers(role)).raise_for_status()
    assert role.refresh() == "delete"


def test_partial_source_and_lakekeepers_own_are_refused(analysts: Props) -> None:
    assert "go together" in Resource(RoleProvider()).failures(**analysts | {"source_id": "1"})[""]
    wrong = analysts | {"provider_id": "system", "source_id": "1"}
    assert "the roles of `system` belong to Lakekeeper" in Resource(RoleProvider()).failures(**wrong)[""]


@pytest.mark.parametrize(("status", "error"), [(404, NoSuchPathError), (403, ForbiddenError), (500, RefusedError)])
def test_refusals_and_foreign_responses_are_not_absence(
    user: Resource, light: httpx.Client, status: int, error: type[Exception]
) -> None:
    rule = {"path": "/management/v1/user*", "action": "answer", "status": status, "body": "text", "count": None}
    light.put("/sandbox/v1/faults", json=[rule]).raise_for_status()
    with pytest.raises(error, match=f"GET /management/v1/user/.* responded with {status}"):
        user.refresh()


@pytest.mark.parametrize("provider_class", [UserProvider, RoleProvider])
def test_lost_create_is_looked_up_and_not_repeated(
    provider_class: Any, alice: Props, analysts: Props, light: httpx.Client
) -> None:
    props, kind = (alice, "user") if provider_class is UserProvider else (analysts, "role")
    rule = {"method": "POST", "path": f"/management/v1/{kind}", "action": "drop", "when": "after"}
    light.put("/sandbox/v1/faults", json=[rule]).raise_for_status()
    light.delete("/sandbox/v1/calls").raise_for_status()
    resource = Resource(provider_class())
    resource.up(**props)
    assert resource.refresh() == "same"
    calls = light.get("/sandbox/v1/calls").json()["calls"]
    assert sum(1 for call in calls if (call["method"], call["path"]) == ("POST", f"/management/v1/{kind}")) == 1


def test_users_lookup(user: Resource, alice: Props) -> None:
    server = alice["server"]
    lookup = get_user(server=server, user_id=user.id)
    assert (lookup.name, lookup.user_type, lookup.email) == ("Alice", "human", "alice@example.org")
    assert lookup in get_users(server=server, name="Alice")
    with pytest.raises(NothingFoundError, match="user `oidc~nobody` is not at"):
        get_user(server=server, user_id="oidc~nobody")


@pytest.mark.since("0.12")
def test_roles_lookup_by_each_key(role: Resource, analysts: Props) -> None:
    project_props: dict[str, Any] = {"server": analysts["server"], "project_id": analysts["project_id"]}
    lookup = get_role(**project_props, name="ANALYSTS")
    assert (lookup.role_id, lookup.description) == (role.id, "read")
    assert get_role(**project_props, role_id=role.id) == lookup
    assert get_role(**project_props, provider_id="lakekeeper", source_id=role.id) == lookup
    assert get_roles(**project_props) == [lookup]
    with pytest.raises(NothingFoundError, match=r"role `editors` is not in project .* Available: `analysts`"):
        get_role(**project_props, name="editors")
    with pytest.raises(InvalidLookupError, match="by `role_id`, by `name`, or by"):
        get_role(**project_props)


def test_refresh_of_many_users_and_roles_is_one_list_each(alice: Props, analysts: Props, light: httpx.Client) -> None:
    users, roles = [Resource(UserProvider()) for _ in range(3)], [Resource(RoleProvider()) for _ in range(3)]
    for number, (user, role) in enumerate(zip(users, roles, strict=True)):
        user.up(**alice | {"user_id": f"{alice['user_id']}-{number}"})
        role.up(**analysts | {"name": f"analysts-{number}"})
    run_context.current().lists.forget()
    light.delete("/sandbox/v1/calls")
    assert all(item.provider.read(item.id, item.outs).id for item in (*users, *roles))
    calls = light.get("/sandbox/v1/calls").json()["calls"]
    pages = [call["path"] for call in calls if "pageToken=M" not in call["query"]]
    assert sorted(pages) == ["/management/v1/role", "/management/v1/user"]
