"""Marks of warehouses and roles in a project that several tenants share: each object has its own owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.management import project_record
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.ownership.consent import ADOPT
from lakewright.ownership.mark import Claimant, OwnershipMark
from lakewright.ownership.record_role import format_warehouse_record

from tests.integration.provider.resource import Props, Resource, wire
from tests.integration.provider.runs import run_with_record

pytestmark = pytest.mark.any_server

OWNER, COPY = "acme", "copy"
RECORD, OTHER_RECORD = "0123456789abcdef", "fedcba9876543210"
COPY_MARK = OwnershipMark("lakewright/copy", OTHER_RECORD)


@pytest.fixture(autouse=True)
def _no_consent(_permit_test_project: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADOPT)


@pytest.fixture
def shared_props(warehouse_props: Props) -> Props:
    """A warehouse of a shared project."""
    return warehouse_props | {"record": RECORD, "deletion": "purge"}


def describe_role(http: httpx.Client, project_id: str, role_id: str, name: str, mark: OwnershipMark) -> None:
    """Write a mark into the description of a role, and set the role's name."""
    body = {"name": name, "description": mark.to_description()}
    header = {"x-project-id": project_id}
    http.post(f"/management/v1/role/{role_id}", json=body, headers=header).raise_for_status()


def hand_over(http: httpx.Client, warehouse: Resource, project_id: str) -> None:
    """Give a warehouse to the other stack, which renames it."""
    header = {"x-project-id": project_id}
    roles = http.get("/management/v1/role", headers=header).json()["roles"]
    name = format_warehouse_record(warehouse.id)
    (role_id,) = [role["id"] for role in roles if role["name"] == name]
    describe_role(http, project_id, role_id, name, COPY_MARK)
    path = f"/management/v1/warehouse/{warehouse.id}/rename"
    http.post(path, json={"new-name": "renamed"}, headers=header).raise_for_status()


def test_renamed_warehouse_of_another_stack_is_kept(http: httpx.Client, shared_props: Props) -> None:
    """The state of the former owner has the former name."""
    warehouse = Resource(WarehouseProvider())
    run_with_record(OWNER, RECORD, lambda: warehouse.up(**shared_props))
    hand_over(http, warehouse, shared_props["project_id"])
    soft = {"delete_profile": {"type": "soft", "expiration_seconds": 3600}}

    attacks: list[Callable[[], Any]] = [lambda: warehouse.up(**shared_props, **soft), warehouse.destroy]
    for attack in attacks:
        with pytest.raises(NotOwnedError, match="belongs to stack `lakewright/copy`"):
            run_with_record(OWNER, RECORD, attack)

    live = http.get(f"/management/v1/warehouse/{warehouse.id}").raise_for_status().json()
    assert (live["name"], live["delete-profile"]["type"]) == ("renamed", "hard")


def test_renamed_role_of_another_stack_is_kept(http: httpx.Client, server: Props, project_id: str) -> None:
    role = Resource(RoleProvider())
    props = {"server": server, "project_id": project_id, "name": "acme-analysts"}
    mark = OwnershipMark("lakewright/acme", RECORD).to_description()
    run_with_record(OWNER, RECORD, lambda: role.up(**props, description=mark))
    describe_role(http, project_id, role.id, "copy-analysts", COPY_MARK)

    attacks: list[Callable[[], Any]] = [lambda: role.up(**props, description="taken"), role.destroy]
    for attack in attacks:
        with pytest.raises(NotOwnedError, match="belongs to stack `lakewright/copy`"):
            run_with_record(OWNER, RECORD, attack)


def test_consent_for_the_project_covers_no_owned_warehouse(
    server: Props, shared_props: Props, use_client: Callable[..., Client]
) -> None:
    """A project belongs to one tenant only if its mark names an owner."""
    warehouse = Resource(WarehouseProvider())
    run_with_record(OWNER, RECORD, lambda: warehouse.up(**shared_props))
    client = use_client(server)
    project_record.write_mark(client, shared_props["project_id"], OwnershipMark(adopt="lakewright/copy"))

    marked = project_record.find_marked_warehouse(client, warehouse.id)

    assert marked is not None
    assert marked.mark == OwnershipMark("lakewright/acme", RECORD)
    assert marked.find_adoption_problem(Claimant("lakewright/copy", OTHER_RECORD)) is not None
    with pytest.raises(NotOwnedError, match="belongs to stack `lakewright/acme`"):
        run_with_record(
            COPY,
            OTHER_RECORD,
            lambda: warehouse.provider.create(wire(shared_props | {"record": OTHER_RECORD, "adopt": True})),
        )
