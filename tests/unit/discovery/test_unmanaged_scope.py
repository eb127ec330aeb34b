"""Which objects count as unmanaged, without a server."""

from __future__ import annotations

from typing import Any

from lakewright.discovery.listing.managed_objects import LAKEKEEPER
from lakewright.discovery.unmanaged.finding import UnmanagedObject, to_lakekeeper_type
from lakewright.discovery.unmanaged.project_scan import select_creator_grants
from lakewright.discovery.unmanaged.tenant_scope import find_tenant_scopes
from lakewright.drift.model import DifferenceKind
from lakewright.drift.session import StackResource
from lakewright.lakekeeper.api.connection.privileges import GrantEntry
from lakewright_engine.model.resources import ResourceState

ME = GrantEntry("ownership", "user", "oidc~me")
ADA = GrantEntry("ownership", "user", "oidc~ada")
READER = GrantEntry("select", "user", "oidc~ada")


def resource(kind: str, object_id: str, outputs: dict[str, Any] | None = None, **inputs: Any) -> StackResource:
    properties: dict[str, Any] = {"server": {"endpoint": "http://lakekeeper"}, **inputs}
    state = ResourceState(
        "urn", f"{LAKEKEEPER}{kind}", custom=True, id=object_id, inputs=properties, outputs=outputs or {}
    )
    return StackResource("acme", "acme", "sandbox", state)


STACK = [
    resource("Project", "p1", project_id="p1"),
    resource("Warehouse", "w1", name="main"),
    resource("Namespace", "w1/a.b", {"namespace_id": "n1"}, warehouse_id="w1", name="a.b"),
    resource("Namespace", "w1/c", {"namespace_id": "n2"}, warehouse_id="w1", name="c", protected=True),
    resource("Table", "t", {"table_id": "t1"}, warehouse_id="w1", namespace="a.b", name="t"),
]


def test_scope_is_the_project_of_the_stack() -> None:
    (scope,) = find_tenant_scopes(STACK)

    assert (scope.project_id, scope.warehouses) == ("p1", {"w1": "main"})
    assert scope.declares_protection == {("w1", "c")}
    assert [(scoped.on.identity, scoped.name, scoped.inside) for scoped in scope.list_scoped_objects()] == [
        ("p1", "project p1", ()),
        ("w1", "warehouse main", ()),
        ("n1", "namespace main.a.b", ("a", "b")),
        ("n2", "namespace main.c", ("c",)),
        ("t1", "table main.a.b.t", ("a", "b", "t")),
    ]


def test_scope_in_a_shared_project_leaves_the_project_out() -> None:
    (scope,) = find_tenant_scopes([resource("SharedProject", "p1", project_id="p1"), *STACK[1:]])

    assert (scope.project_id, scope.shares_project, scope.warehouses) == ("p1", True, {"w1": "main"})
    assert "p1" not in [scoped_object.on.identity for scoped_object in scope.list_scoped_objects()]


def test_grants_on_a_closed_object_belong_to_its_resource() -> None:
    closed = resource("Grants", "g", on={"type": "warehouse", "warehouse_id": "w1"}, grants=[])

    (scope,) = find_tenant_scopes([*STACK, closed])

    assert "w1" not in [scoped.on.identity for scoped in scope.list_scoped_objects()]


def test_stack_without_a_project_has_no_scope() -> None:
    assert find_tenant_scopes(STACK[1:]) == []


def test_creators_ownership_is_the_servers() -> None:
    assert select_creator_grants("warehouse", frozenset({ME, ADA, READER}), "oidc~me") == {ME}
    assert select_creator_grants("warehouse", frozenset({ADA, READER}), "oidc~ci") == {ADA}
    assert select_creator_grants("warehouse", frozenset({ME, ADA}), "oidc~ci") == frozenset()
    assert select_creator_grants("namespace", frozenset({ME, ADA, READER}), "oidc~ci") == {ME, ADA}


def test_difference_has_the_type_that_its_resource_would_have() -> None:
    unmanaged = UnmanagedObject(to_lakekeeper_type("Role"), "analysts", "id", "role", ("http://lakekeeper", "id"))

    difference = unmanaged.to_difference("acme-stack", "acme")

    assert (difference.kind, difference.type, difference.resource) == (
        DifferenceKind.UNMANAGED,
        "pulumi-python:dynamic/lakekeeper:Role",
        "analysts",
    )
    assert (difference.stack, difference.tenant, difference.declared, difference.found) == (
        "acme-stack",
        "acme",
        None,
        "id",
    )
