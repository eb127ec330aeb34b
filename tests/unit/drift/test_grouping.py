"""Differences with one cause on many tenants are one group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakewright.drift.detection.grouping import group_by_cause
from lakewright.drift.model import Actor, Difference, DifferenceKind, IgnoredBy

WAREHOUSE = "pulumi-python:dynamic/lakekeeper:Warehouse"


def difference(tenant: str, live_value: Any = 14, at: str | None = None, **changes: Any) -> Difference:
    actor = Actor("alice", at, "audit events") if at else None
    base = Difference(
        tenant, tenant, "urn", WAREHOUSE, f"{tenant}-w", "delete_profile", 7, live_value, DifferenceKind.CHANGED, actor
    )
    return replace(base, **changes)


def test_one_actor_on_many_tenants() -> None:
    [group] = group_by_cause(difference(f"t{index}", index, f"2026-11-22T10:0{index}:30Z") for index in range(2, 8))

    assert group.describe() == (
        "Warehouse.delete_profile changed by alice between 2026-11-22 10:02:30 UTC and "
        "2026-11-22 10:07:30 UTC on 6 tenants"
    )
    assert group.to_json()["stacks"] == ["t2", "t3", "t4", "t5", "t6", "t7"]
    assert (group.found_value, group.count) == (None, 6)


def test_same_value_groups_changes_of_unknown_actors() -> None:
    groups = group_by_cause([difference("a"), difference("b"), difference("c", 30), difference("d", 31)])

    assert [(group.tenants, group.found_value) for group in groups] == [(("a", "b"), 14)]
    assert groups[0].describe() == "Warehouse.delete_profile changed to 14 on 2 tenants"


def test_actors_properties_and_kinds_stay_apart() -> None:
    at = "2026-11-22T10:02:00Z"
    bob = Actor("bob", at, "audit events")
    differences = [difference("a", at=at), difference("b", at=at, property="protected"), difference("c", actor=bob)]

    assert group_by_cause(differences) == []


def test_ignored_differences_and_single_tenants_are_no_group() -> None:
    ignored = IgnoredBy("x", "2026-11-22", "p")

    assert group_by_cause([difference("a"), difference("a"), difference("b", ignored=ignored)]) == []


def test_objects_that_are_gone_are_one_group() -> None:
    deletion = {"kind": DifferenceKind.GONE, "property": "", "found": None}

    [group] = group_by_cause([difference("a", **deletion), difference("b", **deletion)])

    assert group.describe() == "Warehouse deleted on 2 tenants"
