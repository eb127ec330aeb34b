"""Deletions come in the order that the snapshot's dependencies force."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from lakewright_engine.model.errors import EngineError
from lakewright_engine.model.resources import ResourceState, StackSnapshot
from lakewright_engine.planning.deletes import check_nothing_left
from lakewright_engine.planning.deletion_order import Dependencies, deletion_batches
from lakewright_engine.state.journal import Journal


def state(name: str, *needs: str, delete: bool = False, custom: bool = True, parent: str = "") -> ResourceState:
    return ResourceState(name, "t:t:T", custom, dependencies=[*needs], delete=delete, parent=parent)


def names(batches: list[list[ResourceState]]) -> list[list[str]]:
    return [[f"{one.urn}{' (old)' if one.delete else ''}" for one in batch] for batch in batches]


def test_dependents_go_first() -> None:
    resources = [state("a"), state("b", "a"), state("c", "b"), state("d")]
    assert names(deletion_batches(Dependencies(resources), resources)) == [["c"], ["b"], ["a", "d"]]


def test_dependencies_in_both_directions_are_no_cycle() -> None:
    resources = [state("b"), state("a", "b"), state("a", delete=True), state("b", "a", delete=True)]
    assert names(deletion_batches(Dependencies(resources), resources)) == [["b (old)"], ["a"], ["b", "a (old)"]]


def test_only_what_is_deleted_is_waited_for() -> None:
    resources = [state("a"), state("b", "a"), state("c", "b")]
    assert names(deletion_batches(Dependencies(resources), [resources[0], resources[2]])) == [["a", "c"]]


def test_children_of_a_needed_component_go_after_its_dependents() -> None:
    box, inner = state("box", custom=False), state("inner", parent="box")
    resources = [box, inner, state("user", "box"), state("late", parent="box")]
    assert names(deletion_batches(Dependencies(resources), resources)) == [["user"], ["inner", "late"], ["box"]]


def test_what_a_resource_needs_includes_what_that_needs() -> None:
    resources = [state("a"), state("b", "a"), state("c"), state("d", "b")]
    assert [one.urn for one in Dependencies(resources).all_of(resources[3])] == ["a", "b"]


def test_a_destroy_that_leaves_resources_is_an_error() -> None:
    run: Any = SimpleNamespace(
        journal=Journal(StackSnapshot([state("a")]), None),
        dry_run=False,
        failed=False,
        scope=SimpleNamespace(is_limited=False),
    )
    with pytest.raises(EngineError, match=r"has left 1 resource\(s\) in the state; run it again:\n  \* a"):
        check_nothing_left(run)
    run.dry_run = True
    check_nothing_left(run)
