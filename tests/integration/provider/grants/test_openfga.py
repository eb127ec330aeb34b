"""A server that enforces grants: owners, refusals that are not absence, and confirmed absence."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.credentials.references import resolve
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, RefusedError
from lakewright.lakekeeper.api.connection.privileges import Object
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.api.management import grants
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.lakekeeper.grants.grants import GrantsProvider
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.identity.role_members import RoleMembersProvider
from lakewright.lakekeeper.identity.user import UserProvider
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError
from lakewright.lakekeeper.server.project import ProjectProvider

from tests.integration.provider.ground import TOKEN, PreparedProject
from tests.integration.provider.resource import Props, Resource

OWNING = {
    "server": "operator",
    "project": "project_admin",
    **dict.fromkeys(("warehouse", "namespace", "table", "view", "role"), "ownership"),
}
CREATOR = ("user", "oidc~operator")

pytestmark = pytest.mark.parametrize("authorizer_server", ["openfga"], indirect=True, scope="session")


@pytest.fixture(params=list(OWNING))
def kind(request: pytest.FixtureRequest, ground: PreparedProject) -> str:
    ground.clear(request.param)
    return request.param


def declare_grants(ground: PreparedProject, kind: str, **changes: Any) -> Props:
    return {"server": ground.server, "on": ground.build_target(kind)} | changes


def create_grants(ground: PreparedProject, kind: str, **changes: Any) -> Resource:
    resource = Resource(GrantsProvider())
    resource.up(**declare_grants(ground, kind, **{"grants": []} | changes))
    return resource


def build_owner(ground: PreparedProject, kind: str, name: str) -> Props:
    return {"privilege": OWNING[kind], "user": ground.users.get(name, name)}


def test_creator_remains_owner_and_is_reported(ground: PreparedProject, kind: str) -> None:
    grants = create_grants(ground, kind)
    assert {"privilege": OWNING[kind], "user": "oidc~operator"} in grants.outs["kept_owners"]
    assert CREATOR in ground.holders(kind, OWNING[kind])
    assert grants.refresh() == "same"
    grants.up(**declare_grants(ground, kind, grants=[build_owner(ground, kind, "ann")]))
    grants.destroy()
    assert ground.holders(kind, OWNING[kind]) >= {CREATOR}
    assert ("user", ground.users["ann"]) not in ground.holders(kind, OWNING[kind])


def test_later_owner_is_drift(ground: PreparedProject, kind: str) -> None:
    grants = create_grants(ground, kind)
    ground.grant(kind, OWNING[kind], user=ground.users["eve"])
    assert grants.refresh() == "update"
    assert grants.outs["grants"] == [build_owner(ground, kind, "eve")]
    assert grants.up(**declare_grants(ground, kind, grants=[])) == "update"
    assert ("user", ground.users["eve"]) not in ground.holders(kind, OWNING[kind])
    assert CREATOR in ground.holders(kind, OWNING[kind])


def test_owners_may_be_declared_exclusively(ground: PreparedProject) -> None:
    ground.clear("view")
    ground.grant("view", "ownership", user=ground.users["eve"])
    grants = create_grants(ground, "view")
    assert ("user", ground.users["eve"]) in ground.holders("view", "ownership")
    only = [build_owner(ground, "view", "ann"), build_owner(ground, "view", "oidc~operator")]
    assert grants.up(**declare_grants(ground, "view", grants=only, keep_owners=False)) == "update"
    assert ground.holders("view", "ownership") == {CREATOR, ("user", ground.users["ann"])}
    assert grants.refresh() == "same"


def test_undeclared_ownership_of_the_stack_is_kept(ground: PreparedProject) -> None:
    ground.clear("table")
    grants = create_grants(
        ground, "table", grants=[build_owner(ground, "table", "oidc~operator"), build_owner(ground, "table", "ann")]
    )
    assert grants.up(**declare_grants(ground, "table", grants=[build_owner(ground, "table", "ann")])) == "update"
    assert ground.holders("table", "ownership") == {CREATOR, ("user", ground.users["ann"])}
    assert grants.refresh() == "same"
    grants.destroy()
    assert ground.holders("table", "ownership") == {CREATOR}


def test_creator_of_a_recreated_table_remains_owner(private_ground: PreparedProject) -> None:
    describe = [{"privilege": "describe", "user": private_ground.users["ann"]}]
    grants = create_grants(private_ground, "table", grants=describe)
    private_ground.drop_table()
    private_ground.make_table()
    assert grants.refresh() == "update"
    assert grants.outs["grants"] == []
    assert grants.up(**declare_grants(private_ground, "table", grants=describe)) == "update"
    assert CREATOR in private_ground.holders("table", "ownership")
    assert grants.refresh() == "same"


@pytest.mark.parametrize("kind", ["TupleAlreadyExistsError", "TupleNotFoundError"])
def test_grants_are_reread_after_a_concurrent_change(ground: PreparedProject, kind: str) -> None:
    ground.clear("namespace")
    status = 409 if kind == "TupleAlreadyExistsError" else 404
    rule = {"method": "POST", "path": "*/assignments", "action": "answer", "status": status, "type": kind}
    ground.http.put("/sandbox/v1/faults", json=[rule]).raise_for_status()
    grants = create_grants(ground, "namespace", grants=[{"privilege": "describe", "user": ground.users["ann"]}])
    assert grants.refresh() == "same"


def test_missing_grant_right_is_named(ground: PreparedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    ground.grant("warehouse", "describe", user="oidc~visitor")
    server = as_user(ground, monkeypatch, "visitor")
    describe = declare_grants(ground, "warehouse", privilege="describe", user=ground.users["ann"]) | {"server": server}
    with pytest.raises(ForbiddenError, match=r"401 Unauthorized: .*needs `ownership`, `manage_grants`"):
        Resource(GrantProvider()).up(**describe)


def test_unreadable_grants_are_not_missing(ground: PreparedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    looker_grant = {"privilege": "describe", "user": "oidc~looker"}
    grant, grants = Resource(GrantProvider()), Resource(GrantsProvider())
    grant.up(**declare_grants(ground, "warehouse", **looker_grant))
    grants.up(**declare_grants(ground, "project", grants=[looker_grant]), adopt=True)
    members = Resource(RoleMembersProvider())
    members.up(server=ground.server, project_id=ground.project_id, role_id=ground.role_id, adopt=True)
    outsider = as_user(ground, monkeypatch, "outsider")
    for resource in (grants, members):
        resource.outs["server"] = outsider
        with pytest.raises(ForbiddenError):
            resource.refresh()
    grant.outs["server"] = as_user(ground, monkeypatch, "looker")
    with pytest.raises(ForbiddenError, match="can_read_assignments"):
        grant.refresh()


def test_refusal_in_an_inactive_warehouse_is_no_absence(
    private_ground: PreparedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An inactive warehouse hides its tables, so a missing table does not prove that the table was deleted."""
    private_ground.grant("warehouse", "describe", user="oidc~visitor")
    table = Object("table", private_ground.table_id(), private_ground.project_id, private_ground.warehouse_id)
    private_ground.post(f"/management/v1/warehouse/{private_ground.warehouse_id}/deactivate", {})
    client = Client(ServerRef(**as_user(private_ground, monkeypatch, "visitor")), resolve)

    with pytest.raises(ForbiddenError):
        grants.list_grants(client, table)


def test_grants_of_a_deleted_project_are_gone(private_ground: PreparedProject) -> None:
    project_id = f"{private_ground.project_id}-2"
    server = private_ground.server
    project, role, members = Resource(ProjectProvider()), Resource(RoleProvider()), Resource(RoleMembersProvider())
    project.up(server=server, project_id=project_id, name="second")
    role.up(server=server, project_id=project_id, name="analysts")
    members.up(server=server, project_id=project_id, role_id=role.id, users=["oidc~ann"])
    grant, grants = Resource(GrantProvider()), Resource(GrantsProvider())
    target = {"type": "project", "project_id": project_id}
    grant.up(server=server, on=target, privilege="describe", user="oidc~ann")
    grants.up(server=server, on={"type": "role", "project_id": project_id, "role_id": role.id}, grants=[])
    resources = [grants, grant, members, role, project]
    outs = [(resource.provider, resource.id, resource.outs) for resource in resources]
    project_header = {"x-project-id": project_id}
    private_ground.http.delete(f"/management/v1/role/{role.id}", headers=project_header).raise_for_status()
    private_ground.http.delete("/management/v1/project", headers=project_header).raise_for_status()
    assert [resource.refresh() for resource in resources] == ["delete"] * 5
    for provider, object_id, props in outs:
        provider.delete(object_id, props)


def test_role_cannot_be_granted_to_itself(ground: PreparedProject) -> None:
    with pytest.raises(RefusedError, match="SelfAssignment"):
        Resource(GrantProvider()).up(**declare_grants(ground, "role", privilege="ownership", role=ground.role_id))


def test_role_membership_conflicts_with_members_only(ground: PreparedProject) -> None:
    """A grant of membership is allowed beside grants on the role, but not beside the role's declared members."""
    assignee = declare_grants(ground, "role", privilege="assignee", user=ground.users["ann"])
    role = {"server": ground.server, "project_id": ground.project_id, "role_id": ground.role_id}
    grant, grants = Resource(GrantProvider()), create_grants(ground, "role", declared_as="owners")
    assert grant.up(**assignee, declared_as="ann-in") == "create"
    assert grants.refresh() == "same"
    refused = Resource(RoleMembersProvider()).failures(**role, declared_as="everybody")["role_id"]
    assert "RoleMembers `everybody` owns all members there, and would take away what Grant `ann-in` gives" in refused
    grant.destroy()


def test_users_roles_and_members_with_openfga(ground: PreparedProject) -> None:
    project_props = {"server": ground.server, "project_id": ground.project_id}
    user, role, members = Resource(UserProvider()), Resource(RoleProvider()), Resource(RoleMembersProvider())
    user.up(server=ground.server, user_id=f"oidc~zoe-{ground.project_id}", name="Zoe", user_type="human")
    role.up(**project_props, name="zoes")
    members.up(**project_props, role_id=role.id, users=[user.id])
    assert [resource.refresh() for resource in (user, role, members)] == ["same"] * 3
    assert members.up(**project_props, role_id=role.id, roles=[ground.role_id]) == "update"
    assert members.refresh() == "same"
    members.destroy()
    role.destroy()
    with pytest.raises(DeletedOutsideStackError):
        members.up(**project_props, role_id=role.id or "01a1fc14-3286-77b2-abe7-eaa86568636b", users=[])
    user.destroy()


def as_user(ground: PreparedProject, monkeypatch: pytest.MonkeyPatch, name: str) -> Props:
    """Return the server as that user's token reaches it."""
    variable = f"{TOKEN}_{name.upper()}"
    monkeypatch.setenv(variable, name)
    return {"endpoint": ground.server["endpoint"], "auth": {"kind": "token", "token": f"env:{variable}"}}
