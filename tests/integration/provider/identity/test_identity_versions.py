"""Users, roles, members and grants on older servers: other calls, and missing features."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from lakewright.lakekeeper import get_grants, get_role
from lakewright.lakekeeper.api.connection.errors import (
    NotGrantableError,
    UnsupportedServerError,
)
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.lakekeeper.grants.grants import GrantsProvider
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.identity.role_members import RoleMembersProvider
from lakewright.lakekeeper.identity.user import UserProvider
from lakewright.lakekeeper.provider import run_context
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.ground import TOKEN, run_authorizer_server
from tests.integration.provider.resource import Props, Resource

StartProject = Callable[[str, str], Props]


@pytest.fixture(scope="module")
def start(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, str], str]]:
    """Return a function that starts a server with an authorizer and a version, and returns its endpoint."""
    endpoints: dict[tuple[str, str], str] = {}
    with ExitStack() as servers:

        def endpoint(authorizer: str, version: str) -> str:
            if (authorizer, version) not in endpoints:
                server = run_authorizer_server(authorizer, sandbox, tmp_path_factory.mktemp("old"), version=version)
                endpoints[authorizer, version] = servers.enter_context(server).endpoint
            return endpoints[authorizer, version]

        yield endpoint


@pytest.fixture
def project(start: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch) -> StartProject:
    """`server` and `project_id` of the server's default project."""
    monkeypatch.setenv(TOKEN, "operator")
    return lambda authorizer, version: {
        "server": {"endpoint": start(authorizer, version), "auth": {"kind": "token", "token": f"env:{TOKEN}"}},
        "project_id": "00000000-0000-0000-0000-000000000000",
    }


@pytest.mark.parametrize("authorizer", ["allow-all", "openfga"])
@pytest.mark.parametrize("version", ["0.11", "0.12", "0.13", "0.14"])
def test_users_and_roles_on_every_version(project: StartProject, authorizer: str, version: str, unique: str) -> None:
    project_props = project(authorizer, version)
    user, role = Resource(UserProvider()), Resource(RoleProvider())
    user.up(server=project_props["server"], user_id=f"oidc~{unique}", name="Ann", user_type="human")
    role.up(**project_props, name=unique, description="read")
    assert (user.refresh(), role.refresh()) == ("same", "same")
    assert role.up(**project_props, name=unique, description="write") == "update"
    assert role.refresh() == "same"
    assert get_role(**project_props, name=unique).role_id == role.id
    role.destroy()
    user.destroy()


def test_role_of_an_identity_provider_needs_a_newer_server(project: StartProject) -> None:
    with pytest.raises(UnsupportedServerError, match=r"`provider_id` needs Lakekeeper 0\.12 or newer"):
        Resource(RoleProvider()).up(**project("allow-all", "0.11"), name="x", provider_id="idp", source_id="1")


@pytest.mark.parametrize(
    ("authorizer", "version"), [("openfga", "0.11"), ("openfga", "0.13"), ("allow-all", "0.13"), ("openfga", "0.14")]
)
def test_members_are_tuples_before_the_members_call(
    project: StartProject, authorizer: str, version: str, unique: str
) -> None:
    project_props = project(authorizer, version)
    users = [f"oidc~{name}-{unique}" for name in ("ann", "bob")]
    for user_id in users:
        Resource(UserProvider()).up(server=project_props["server"], user_id=user_id, name="x", user_type="human")
    role, other = Resource(RoleProvider()), Resource(RoleProvider())
    role.up(**project_props, name=unique)
    other.up(**project_props, name=f"{unique}-2")
    members = Resource(RoleMembersProvider())
    members.up(**project_props, role_id=role.id, users=users, roles=[other.id], declared_as=unique)
    assert members.refresh() == "same"
    assert members.up(**project_props, role_id=role.id, users=users[:1], declared_as=unique) == "update"
    assert members.refresh() == "same"
    assert members.outs["users"] == users[:1]
    members.destroy()


def test_unsupported_members_are_refused_with_the_reason(project: StartProject) -> None:
    project_props = project("allow-all", "0.11")
    role = Resource(RoleProvider())
    role.up(**project_props, name="memberless")
    with pytest.raises(UnsupportedServerError, match=r"members of roles need Lakekeeper 0\.13 or newer, or OpenFGA"):
        Resource(RoleMembersProvider()).up(**project_props, role_id=role.id, users=["oidc~ann"])


@pytest.mark.parametrize("version", ["0.11", "0.12", "0.13", "0.14"])
def test_tuples_are_the_same_in_every_version(project: StartProject, version: str, unique: str) -> None:
    project_props = project("openfga", version)
    on = {"type": "project", "project_id": project_props["project_id"]}
    grant, grants = Resource(GrantProvider()), Resource(GrantsProvider())
    grant.up(server=project_props["server"], on=on, privilege="describe", user=f"oidc~{unique}")
    assert grant.refresh() == "same"
    assert f"oidc~{unique}" in [grant_entry.user for grant_entry in get_grants(server=project_props["server"], on=on)]
    grant.destroy()
    role = Resource(RoleProvider())
    role.up(**project_props, name=unique)
    ann = [{"privilege": "ownership", "user": "oidc~ann"}]
    grants.up(server=project_props["server"], on={"type": "role", **locate_role(project_props, role)}, grants=ann)
    assert grants.refresh() == "same"


@pytest.mark.parametrize(
    ("kind", "privilege", "version"), [("project", "tag_creator", "0.13"), ("project", "tag_creator", "0.11")]
)
def test_newer_privilege_is_refused_by_name(project: StartProject, kind: str, privilege: str, version: str) -> None:
    project_props = project("openfga", version)
    on = {"type": kind, "project_id": project_props["project_id"]}
    with pytest.raises(NotGrantableError, match=rf"`{privilege}` cannot be granted on a {kind} at .* in this version"):
        Resource(GrantProvider()).up(server=project_props["server"], on=on, privilege=privilege, user="oidc~ann")


@pytest.mark.parametrize("version", ["0.11", "0.13"])
def test_server_without_grants_differs_from_empty_grants(project: StartProject, version: str) -> None:
    project_props = project("allow-all", version)
    on = {"type": "project", "project_id": project_props["project_id"]}
    expected = (
        rf"stores no grants: it runs Lakekeeper {version}.* with authorizer `allow-all`.*run the server with OpenFGA"
    )
    target_props = {"server": project_props["server"], "on": on}
    check_refusal(GrantProvider(), expected, **target_props, privilege="describe", user="oidc~ann")
    run_context.start(run_context.current().next())
    check_refusal(GrantsProvider(), expected, **target_props, grants=[])


def test_grants_api_has_no_grants_on_roles(project: StartProject) -> None:
    project_props = project("allow-all", "0.14")
    role = Resource(RoleProvider())
    role.up(**project_props, name="ungranted")
    on = {"type": "role", **locate_role(project_props, role)}
    expected = "stores no grants on roles"
    check_refusal(
        GrantProvider(), expected, server=project_props["server"], on=on, privilege="ownership", user="oidc~ann"
    )


def check_refusal(provider: Any, expected: str, **props: Any) -> None:
    """Check that a preview refuses a declaration with the same reason as `up`."""
    (reason,) = Resource(provider).failures(**props).values()
    assert re.search(expected, reason)
    with pytest.raises(UnsupportedServerError, match=expected):
        provider.create(props)


def locate_role(project_props: Props, role: Resource) -> Props:
    return {"project_id": project_props["project_id"], "role_id": role.id}


@pytest.mark.parametrize(
    ("version", "on", "requirement"),
    [
        ("0.11", {"type": "generic-table", "namespace": "n", "name": "t"}, "generic-table needs Lakekeeper 0.13"),
        ("0.13", {"type": "tag", "name": "pii"}, "tag needs Lakekeeper 0.14"),
    ],
)
@pytest.mark.parametrize("authorizer", ["allow-all", "openfga"])
def test_grant_on_an_unsupported_kind_names_the_version(
    project: StartProject, authorizer: str, version: str, on: Props, requirement: str
) -> None:
    project_props = project(authorizer, version)
    target = {"project_id": project_props["project_id"]} if on["type"] == "tag" else {"warehouse_id": str(uuid.uuid4())}
    grant_props = {"server": project_props["server"], "on": on | target, "privilege": "ownership", "user": "oidc~ann"}
    check_refusal(GrantProvider(), f"a {requirement} or newer; .* runs {version}", **grant_props)
