"""One privilege of one user or role on one object: on every kind of object, under each authorizer."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from lakewright.lakekeeper import get_grants
from lakewright.lakekeeper.api.connection.errors import (
    ForbiddenError,
    InvalidLookupError,
    NoSuchPathError,
    NotGrantableError,
    NothingFoundError,
    RefusedError,
)
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.errors import InactiveWarehouseError, TargetMissingError

from tests.integration.provider.ground import KINDS, PreparedProject
from tests.integration.provider.resource import Props, Resource, wire


def declare_grant(ground: PreparedProject, kind: str, **changes: Any) -> Props:
    """Return the declared properties of a grant."""
    privilege, user = ground.privileges(kind)[0], ground.users["ann"]
    return {"server": ground.server, "on": ground.build_target(kind), "privilege": privilege, "user": user} | changes


def create_grant(ground: PreparedProject, kind: str, **changes: Any) -> Resource:
    resource = Resource(GrantProvider())
    resource.up(**declare_grant(ground, kind, **changes))
    return resource


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, ground: PreparedProject) -> str:
    if request.param not in ground.kinds:
        pytest.skip(f"the Grants API has no grants on a {request.param}")
    return request.param


def test_grant_is_created_read_and_deleted(ground: PreparedProject, kind: str) -> None:
    grant = create_grant(ground, kind)
    assert ("user", ground.users["ann"]) in ground.holders(kind, grant.outs["privilege"])
    assert grant.up(**declare_grant(ground, kind)) == "same"
    assert grant.refresh() == "same"
    grant.destroy()
    assert ("user", ground.users["ann"]) not in ground.holders(kind, ground.privileges(kind)[0])


def test_revoked_grant_is_drift_and_restored(ground: PreparedProject, kind: str) -> None:
    grant = create_grant(ground, kind)
    ground.revoke(kind, ground.privileges(kind)[0], user=ground.users["ann"])
    assert grant.refresh() == "delete"
    assert grant.up(**declare_grant(ground, kind)) == "create"
    assert grant.refresh() == "same"


def test_grants_of_others_are_ignored(ground: PreparedProject) -> None:
    ground.grant("table", ground.privileges("table")[0], user=ground.users["eve"])
    grant = create_grant(ground, "table")
    ground.grant("table", ground.privileges("table")[1], user=ground.users["ann"])
    assert grant.refresh() == "same"
    grant.destroy()
    assert ground.holders("table", ground.privileges("table")[0]) >= {("user", ground.users["eve"])}
    assert ground.holders("table", ground.privileges("table")[1]) >= {("user", ground.users["ann"])}


def test_role_is_granted_a_privilege(ground: PreparedProject) -> None:
    grant = create_grant(ground, "warehouse", user=None, role=ground.role_id)
    assert ("role", ground.role_id) in ground.holders("warehouse", grant.outs["privilege"])
    assert grant.refresh() == "same"
    grant.destroy()
    assert ("role", ground.role_id) not in ground.holders("warehouse", ground.privileges("warehouse")[0])


@pytest.mark.parametrize("changed", ["on", "privilege", "user"])
def test_changed_grant_replaces(ground: PreparedProject, changed: str) -> None:
    grant = create_grant(ground, "warehouse")
    before, ann = ground.privileges("warehouse")[0], ("user", ground.users["ann"])
    new_values = {
        "on": ground.build_target("namespace"),
        "privilege": ground.privileges("warehouse")[1],
        "user": ground.users["bob"],
    }
    assert grant.up(**declare_grant(ground, "warehouse") | {changed: new_values[changed]}) == "replace"
    assert ann not in ground.holders("warehouse", before)
    assert grant.refresh() == "same"


def test_existing_grant_is_taken_for_a_killed_create(ground: PreparedProject) -> None:
    ground.grant("table", ground.privileges("table")[0], user=ground.users["ann"])
    assert create_grant(ground, "table").refresh() == "same"


def test_deleting_a_missing_grant_is_no_error(ground: PreparedProject) -> None:
    grant = create_grant(ground, "table")
    ground.revoke("table", ground.privileges("table")[0], user=ground.users["ann"])
    grant.destroy()


def test_recreated_table_has_no_grants_until_the_next_up(private_ground: PreparedProject) -> None:
    grant = create_grant(private_ground, "table")
    private_ground.drop_table()
    private_ground.make_table()
    assert grant.refresh() == "delete"
    assert grant.up(**declare_grant(private_ground, "table")) == "create"
    assert grant.refresh() == "same"


def test_grant_on_a_deleted_table_is_gone_and_refused(private_ground: PreparedProject) -> None:
    grant = create_grant(private_ground, "table")
    outs = grant.outs
    private_ground.drop_table()
    assert grant.refresh() == "delete"
    grant.provider.delete("x", outs)
    with pytest.raises(TargetMissingError, match=r"table/sales\.orders does not exist at .*[Dd]eclare it"):
        grant.up(**declare_grant(private_ground, "table"))


def test_suspended_grant_on_a_deleted_table_is_not_restored(private_ground: PreparedProject) -> None:
    """The end of a limit grants it again, where the object exists."""
    grant = create_grant(private_ground, "table")
    private_ground.drop_table()
    assert grant.provider.restore(wire(grant.outs)) is False  # type: ignore[attr-defined]


def has_grant(ground: PreparedProject) -> bool:
    """Return whether `ann` has the privilege of `create_grant` on the only table, whatever its name is."""
    return ("user", ground.users["ann"]) in ground.holders("table", ground.privileges("table")[0])


def test_grant_on_a_renamed_table_is_revoked(private_ground: PreparedProject) -> None:
    grant = create_grant(private_ground, "table")
    private_ground.rename_table("Invoices")
    assert grant.refresh() == "update"
    (drift,) = grant.outs["drift"]
    assert re.fullmatch(r"remains on table \S+, which \S+/table/sales\.orders does not name now", drift)
    grant.destroy()
    assert not has_grant(private_ground)


def test_ended_grant_on_a_renamed_table_is_revoked(private_ground: PreparedProject) -> None:
    grant = create_grant(private_ground, "table", until="2020-01-01T00:00:00Z")
    private_ground.rename_table("Invoices")
    removed = [grant.provider.remove_ended(grant.id, wire(grant.outs)) for _ in range(2)]  # type: ignore[attr-defined]
    assert removed == [[f"user {private_ground.users['ann']}"], []]
    assert not has_grant(private_ground)


def test_grant_follows_its_name_to_another_table(private_ground: PreparedProject) -> None:
    grant = create_grant(private_ground, "table")
    former_path = private_ground.grants_path("table")
    private_ground.rename_table("Invoices")
    private_ground.make_table()
    assert [grant.refresh(), grant.refresh()] == ["update", "update"]

    assert grant.up(**declare_grant(private_ground, "table")) == "update"

    assert grant.refresh() == "same"
    assert private_ground.users["ann"] not in private_ground.http.get(former_path).raise_for_status().text
    private_ground.drop_table()
    assert grant.refresh() == "delete"


def test_grant_that_a_table_takes_to_its_new_name_remains(private_ground: PreparedProject) -> None:
    """A spec renames the table in its grants, too: the new grant exists before the earlier grant is deleted."""
    earlier_grant = create_grant(private_ground, "table", declared_as="earlier")
    private_ground.rename_table("Invoices")
    run_context.start(run_context.current().next())
    on = private_ground.build_target("table") | {"name": "invoices"}
    grant = create_grant(private_ground, "table", on=on, declared_as="later")
    earlier_grant.destroy()
    assert has_grant(private_ground)
    run_context.start(run_context.current().next())
    grant.destroy()
    assert not has_grant(private_ground)


def test_restored_table_does_not_restore_a_removed_grant(private_ground: PreparedProject) -> None:
    grant = create_grant(private_ground, "table")
    request = private_ground.drop_table_softly()
    grant.destroy()
    private_ground.restore_table(request)
    assert not has_grant(private_ground)


def test_earlier_states_have_no_id_of_the_table(private_ground: PreparedProject) -> None:
    grant = create_grant(private_ground, "table")
    table_id = grant.outs.pop("object_id")
    assert grant.up(**declare_grant(private_ground, "table")) == "same"
    assert (grant.refresh(), grant.outs["object_id"]) == ("same", table_id)
    del grant.outs["object_id"]
    private_ground.rename_table("Invoices")
    assert grant.refresh() == "delete"


def test_grant_on_a_deleted_warehouse_is_gone(private_ground: PreparedProject) -> None:
    grants = [create_grant(private_ground, kind) for kind in ("warehouse", "namespace", "table")]
    private_ground.drop_all()
    assert [grant.refresh() for grant in grants] == ["delete", "delete", "delete"]


def test_grant_in_an_inactive_warehouse_is_not_gone(
    private_ground: PreparedProject, capsys: pytest.CaptureFixture[str]
) -> None:
    grant = create_grant(private_ground, "namespace")
    private_ground.post(f"/management/v1/warehouse/{private_ground.warehouse_id}/deactivate", {})
    assert grant.refresh() == "same"
    assert "cannot be seen while its warehouse is inactive" in capsys.readouterr().err
    with pytest.raises(InactiveWarehouseError, match="active: true"):
        grant.destroy()


def test_refresh_of_many_grants_lists_table_and_grants_once(ground: PreparedProject) -> None:
    privileges, users = ground.privileges("table"), ground.users.values()
    grants = [
        create_grant(ground, "table", privilege=privilege, user=user) for privilege in privileges for user in users
    ]
    ground.http.delete("/sandbox/v1/calls")
    run_context.current().lists.forget()
    assert all(grant.provider.read(grant.id, grant.outs).id for grant in grants)
    calls = ground.http.get("/sandbox/v1/calls").json()["calls"]
    first_pages = Counter(call["path"] for call in calls if "pageToken=M" not in call["query"])
    assert set(first_pages.values()) == {1}, calls
    assert len(first_pages) <= 3, calls


@pytest.mark.parametrize(("status", "error"), [(403, ForbiddenError), (404, NoSuchPathError), (500, RefusedError)])
def test_refusals_and_foreign_responses_are_not_absence(
    ground: PreparedProject, status: int, error: type[Exception]
) -> None:
    """A gateway's 404 is reported: the authorizer may keep no grants. It never means that one grant is missing."""
    grant = create_grant(ground, "warehouse")
    rules = [
        {"method": "GET", "path": path, "action": "answer", "status": status, "body": "text", "count": None}
        for path in ("*/grants", "*/assignments")
    ]
    ground.http.put("/sandbox/v1/faults", json=rules).raise_for_status()
    with pytest.raises(error, match=rf"GET /management/v1/\S+ at {re.escape(grant.inputs['server']['endpoint'])} "):
        grant.refresh()


def test_unknown_privilege_lists_the_known_ones(ground: PreparedProject) -> None:
    with pytest.raises(NotGrantableError, match=rf"(?i)`nonsense`.*expected one of .*{ground.privileges('table')[1]}"):
        create_grant(ground, "table", privilege="nonsense")


def test_grants_lookup(ground: PreparedProject) -> None:
    grant = create_grant(ground, "table")
    lookup_args: dict[str, Any] = {"server": ground.server, "on": ground.build_target("table")}
    assert (grant.outs["privilege"], ground.users["ann"], None) in [
        (item.privilege, item.user, item.role) for item in get_grants(**lookup_args)
    ]
    grant.destroy()


def test_lookup_reports_missing_or_wrong_arguments(ground: PreparedProject) -> None:
    with pytest.raises(NothingFoundError, match=r"table/sales\.missing is not at"):
        get_grants(server=ground.server, on=ground.build_target("table") | {"name": "missing"})
    with pytest.raises(InvalidLookupError, match="`type` must be one of `server`, `project`"):
        get_grants(server=ground.server, on={"type": "galaxy"})


def test_lost_response_does_no_harm(ground: PreparedProject) -> None:
    grant = Resource(GrantProvider())
    for verb in ("give", "take"):
        rule = {"method": "POST", "path": "*/grants", "action": "drop", "when": "after"}
        other = rule | {"path": "*/assignments"}
        ground.http.put("/sandbox/v1/faults", json=[rule, other]).raise_for_status()
        if verb == "give":
            grant = create_grant(ground, "table")
            assert grant.refresh() == "same"
        else:
            grant.destroy()
    assert ("user", ground.users["ann"]) not in ground.holders("table", ground.privileges("table")[0])
