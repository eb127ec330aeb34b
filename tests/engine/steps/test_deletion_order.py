"""The dependencies of a snapshot order the deletions."""

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
    return [[f"{resource.urn}{' (old)' if resource.delete else ''}" for resource in batch] for batch in batches]


def test_dependents_are_deleted_first() -> None:
    resources = [state("a"), state("b", "a"), state("c", "b"), state("d")]
    assert names(deletion_batches(Dependencies(resources), resources)) == [["c"], ["b"], ["a", "d"]]


def test_opposite_dependencies_of_a_urn_are_no_cycle() -> None:
    resources = [state("b"), state("a", "b"), state("a", delete=True), state("b", "a", delete=True)]
    assert names(deletion_batches(Dependencies(resources), resources)) == [["b (old)"], ["a"], ["b", "a (old)"]]


def test_kept_dependents_do_not_delay_deletions() -> None:
    resources = [state("a"), state("b", "a"), state("c", "b")]
    assert names(deletion_batches(Dependencies(resources), [resources[0], resources[2]])) == [["a", "c"]]


def test_component_children_are_deleted_after_dependents() -> None:
    box, inner = state("box", custom=False), state("inner", parent="box")
    resources = [box, inner, state("user", "box"), state("late", parent="box")]
    assert names(deletion_batches(Dependencies(resources), resources)) == [["user"], ["inner", "late"], ["box"]]


def test_indirect_dependencies_are_included() -> None:
    resources = [state("a"), state("b", "a"), state("c"), state("d", "b")]
    assert [resource.urn for resource in Dependencies(resources).list_all(resources[3])] == ["a", "b"]


def test_destroy_that_leaves_resources_is_an_error() -> None:
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
