"""All grants on one object: undeclared grants are drift, but the creator keeps the ownership."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.lakekeeper.api.connection.errors import NotGrantableError
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.lakekeeper.grants.grants import GrantsProvider
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.errors import NotOwnedError, TargetMissingError

from tests.integration.provider.ground import KINDS, PreparedProject
from tests.integration.provider.resource import Props, Resource


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, ground: PreparedProject) -> str:
    """A kind of object without grants except the owner's."""
    if request.param not in ground.kinds:
        pytest.skip(f"the Grants API has no grants on a {request.param}")
    ground.clear(request.param)
    return request.param


@pytest.fixture
def space(ground: PreparedProject) -> str:
    ground.clear("namespace")
    return "namespace"


def build_entries(ground: PreparedProject, kind: str) -> list[Props]:
    """Return the first privilege for a user, declared twice, which is allowed; and for a role of the project."""
    privilege = ground.grant_privileges(kind)[0]
    ann = {"privilege": privilege, "user": ground.users["ann"]}
    return (
        [{"privilege": privilege, "role": ground.role_id}, ann, ann] if kind not in {"server", "role"} else [ann, ann]
    )


def declare_grants(ground: PreparedProject, kind: str, **changes: Any) -> Props:
    """Return the declared properties of all grants on an object."""
    return {"server": ground.server, "on": ground.build_target(kind), "grants": build_entries(ground, kind)} | changes


def create_grants(ground: PreparedProject, kind: str, **changes: Any) -> Resource:
    resource = Resource(GrantsProvider())
    resource.up(**declare_grants(ground, kind, **changes))
    return resource


def holders(ground: PreparedProject, kind: str) -> set[str]:
    """Return the holders of the first privilege, except the creator of the object."""
    principals = ground.holders(kind, ground.grant_privileges(kind)[0])
    return {principal_id for _, principal_id in principals} & {ground.role_id, *ground.users.values()}


def test_grants_are_created_and_read(ground: PreparedProject, kind: str) -> None:
    grants = create_grants(ground, kind)
    assert holders(ground, kind) == {entry.get("user") or entry.get("role") for entry in build_entries(ground, kind)}
    assert grants.up(**declare_grants(ground, kind)) == "same"
    assert grants.refresh() == "same"


def test_grants_change_in_place(ground: PreparedProject, kind: str) -> None:
    grants = create_grants(ground, kind)
    bob = [{"privilege": ground.grant_privileges(kind)[0], "user": ground.users["bob"]}]
    assert grants.up(**declare_grants(ground, kind, grants=bob)) == "update"
    assert holders(ground, kind) == {ground.users["bob"]}
    assert grants.up(**declare_grants(ground, kind, grants=[])) == "update"
    assert holders(ground, kind) == set()
    assert grants.refresh() == "same"


def test_undeclared_grant_is_drift_and_revoked(ground: PreparedProject, kind: str) -> None:
    grants = create_grants(ground, kind)
    ground.grant(kind, ground.grant_privileges(kind)[0], user=ground.users["eve"])
    assert grants.refresh() == "update"
    assert ground.users["eve"] in str(grants.outs["grants"])
    assert grants.up(**declare_grants(ground, kind)) == "update"
    assert ground.users["eve"] not in holders(ground, kind)
    assert grants.refresh() == "same"


def test_revoked_grant_is_drift_and_restored(ground: PreparedProject, space: str) -> None:
    grants = create_grants(ground, space)
    ground.revoke(space, ground.grant_privileges(space)[0], user=ground.users["ann"])
    assert grants.refresh() == "update"
    assert grants.up(**declare_grants(ground, space)) == "update"
    assert ground.users["ann"] in holders(ground, space)


@pytest.mark.parametrize("kind", ["project", "namespace"])
def test_existing_undeclared_grants_need_adopt(
    ground: PreparedProject, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ground.clear(kind)
    privilege = ground.grant_privileges(kind)[0]
    ground.grant(kind, privilege, user=ground.users["eve"])
    with pytest.raises(NotOwnedError, match=rf"not declared: {privilege} of user {ground.users['eve']}.*adopt=True"):
        create_grants(ground, kind)
    assert holders(ground, kind) == {ground.users["eve"]}
    Resource(GrantsProvider()).preview(**declare_grants(ground, kind, adopt=True))
    assert ground.users["eve"] in capsys.readouterr().err
    adopted = create_grants(ground, kind, adopt=True)
    assert ground.users["eve"] not in holders(ground, kind)
    assert adopted.refresh() == "same"


def test_killed_create_is_completed(ground: PreparedProject, space: str) -> None:
    ground.grant(space, ground.grant_privileges(space)[0], user=ground.users["ann"])
    assert create_grants(ground, space).refresh() == "same"


def test_destroy_revokes_declared_grants_only(ground: PreparedProject, space: str) -> None:
    grants = create_grants(ground, space)
    ground.grant(space, ground.grant_privileges(space)[0], user=ground.users["eve"])
    grants.destroy()
    assert holders(ground, space) == {ground.users["eve"]}


def test_lost_response_does_no_harm(ground: PreparedProject, space: str) -> None:
    rules = [
        {"method": "POST", "path": path, "action": "drop", "when": "after"} for path in ("*/grants", "*/assignments")
    ]
    ground.http.put("/sandbox/v1/faults", json=rules).raise_for_status()
    assert create_grants(ground, space).refresh() == "same"


def test_more_grants_than_one_call_takes(ground: PreparedProject, space: str) -> None:
    privilege = ground.grant_privileges(space)[0]
    many = [f"oidc~{ground.users['ann']}-{number}"[:100] for number in range(120)]
    for user_id in many:
        ground.post("/management/v1/user", {"id": user_id, "name": "x", "user-type": "human"})
    grants = create_grants(ground, space, grants=[{"privilege": privilege, "user": user_id} for user_id in many])
    assert grants.refresh() == "same"
    assert len(ground.holders(space, privilege)) >= 120
    grants.destroy()
    assert holders(ground, space) == set()


def test_another_object_replaces(ground: PreparedProject, space: str) -> None:
    grants = create_grants(ground, space)
    assert grants.preview(**declare_grants(ground, space, on=ground.build_target("table"))) == "replace"


def test_recreated_table_is_drift_and_granted_again(private_ground: PreparedProject) -> None:
    grants = create_grants(private_ground, "table")
    before = grants.outs["object_id"]
    private_ground.drop_table()
    private_ground.make_table()
    assert grants.refresh() == "update"
    assert grants.up(**declare_grants(private_ground, "table")) == "update"
    assert grants.refresh() == "same"
    assert grants.outs["object_id"] != before


def test_grants_on_a_deleted_table_are_gone_and_refused(private_ground: PreparedProject) -> None:
    grants = create_grants(private_ground, "table")
    outs = grants.outs
    private_ground.drop_table()
    assert grants.refresh() == "delete"
    grants.provider.delete("x", outs)
    with pytest.raises(TargetMissingError, match=r"table/sales\.orders does not exist at"):
        grants.up(**declare_grants(private_ground, "table"))


def test_grants_on_a_renamed_table_are_revoked(private_ground: PreparedProject) -> None:
    grants = create_grants(private_ground, "table")
    private_ground.rename_table("Invoices")
    assert [grants.refresh(), grants.refresh()] == ["update", "update"]
    assert "does not name now" in grants.outs["drift"][0]
    grants.destroy()
    assert holders(private_ground, "table") == set()


def test_grants_follow_their_name_to_another_table(private_ground: PreparedProject) -> None:
    grants = create_grants(private_ground, "table")
    former_path = private_ground.grants_path("table")
    private_ground.rename_table("Invoices")
    private_ground.make_table()
    grants.refresh()

    assert grants.up(**declare_grants(private_ground, "table")) == "update"

    assert grants.refresh() == "same"
    assert private_ground.users["ann"] not in private_ground.http.get(former_path).raise_for_status().text


def test_unknown_user_is_named_with_the_solution(ground: PreparedProject, space: str) -> None:
    entry = {"privilege": ground.grant_privileges(space)[0], "user": "oidc~nobody"}
    if ground.authorizer == "openfga":  # Here the server takes any user.
        assert create_grants(ground, space, grants=[entry]).refresh() == "same"
        return
    with pytest.raises(NotGrantableError, match=r"oidc~nobody.*Declare a `User`"):
        create_grants(ground, space, grants=[entry])


def test_all_mistakes_are_reported_at_once() -> None:
    wrong = {
        "server": {"endpoint": "http://lake.test"},
        "on": {"type": "namespace", "warehouse_id": "w", "namespace": "system"},
        "grants": [{"privilege": "Select!", "user": "oidc~a"}, {"privilege": "select"}],
        "keep_owners": "perhaps",
    }
    failures = Resource(GrantsProvider()).failures(**wrong)
    assert set(failures) == {"on.namespace", "grants.0.privilege", "grants.1", "keep_owners"}
    assert failures["grants.1"] == "expected `user` or `role`, and not both"


def test_role_members_are_not_grants_on_the_role() -> None:
    on = {"type": "role", "project_id": "p", "role_id": "01a1fc14-3286-77b2-abe7-eaa86568636b"}
    wrong = {"on": on, "grants": [{"privilege": "assignee", "user": "oidc~a"}]}
    failures = Resource(GrantsProvider()).failures(server={"endpoint": "http://lake.test"}, **wrong)
    assert failures[""] == "`assignee` is membership in a role: declare it by `RoleMembers`"


def test_grant_beside_grants_is_refused_in_any_order(ground: PreparedProject, space: str) -> None:
    entry = build_entries(ground, space)[0]
    target_props = {"server": ground.server, "on": ground.build_target(space)}
    beside = Resource(GrantProvider())
    owner = Resource(GrantsProvider())
    assert not owner.failures(**target_props, grants=[entry], declared_as="all-of-sales")
    assert not owner.failures(
        **target_props, grants=[], declared_as="all-of-sales"
    )  # The same resource, checked again.
    reason = beside.failures(**target_props | entry, declared_as="for-ann")["on"]
    assert reason == (
        "Grants `all-of-sales` owns all grants there, and would take away what Grant `for-ann` gives. Declare it in"
        " `all-of-sales`, or give everything there by `Grant` alone"
    )
    run_context.start(run_context.current().next())
    assert not beside.failures(**target_props | entry, declared_as="for-ann")
    assert owner.failures(**target_props, grants=[], declared_as="all-of-sales")["on"] == reason
    elsewhere = target_props | {"on": ground.build_target("warehouse")}
    assert not owner.failures(**elsewhere, grants=[], declared_as="all-of-it")


def test_object_ids_ignore_case(ground: PreparedProject, space: str) -> None:
    target_props = {"server": ground.server, "on": ground.build_target(space)}
    assert not Resource(GrantsProvider()).failures(**target_props, grants=[], declared_as="first")
    target_props["on"] = ground.build_target(space) | {"namespace": "SALES"}
    second = Resource(GrantsProvider()).failures(**target_props, grants=[], declared_as="second")
    assert second["on"] == "Grants `first` owns all grants there already; there can be one such resource for each"


def test_grant_that_moves_to_another_resource_is_kept(ground: PreparedProject, space: str) -> None:
    """A program moves a grant between `Grants` and `Grant`. The resource that loses it does not revoke it."""
    grants = create_grants(ground, space)
    run_context.start(run_context.current().next())  # The next run of the program declares one of them separately.
    grant = Resource(GrantProvider())
    ann = {"server": ground.server, "on": ground.build_target(space), **build_entries(ground, space)[1]}
    assert grant.up(**ann) == "create"
    grants.destroy()
    assert holders(ground, space) == {ground.users["ann"]}

    run_context.start(run_context.current().next())  # The run after that declares all of them together again.
    recombined = create_grants(ground, space)
    grant.destroy()
    assert recombined.refresh() == "same"
