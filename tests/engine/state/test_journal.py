"""The journal keeps states in the order in which their steps ended."""

from __future__ import annotations

from dataclasses import replace

from lakewright_engine.model.resources import ResourceState, StackSnapshot
from lakewright_engine.state.journal import Journal


def state(name: str) -> ResourceState:
    return ResourceState(name, "t:t:T", custom=True)


def urns(journal: Journal) -> list[str]:
    return [one.urn for one in journal.snapshot().resources]


def test_new_states_come_before_old_ones_that_remain() -> None:
    olds = [state("a"), state("b"), state("c")]
    journal = Journal(StackSnapshot(olds), None)
    journal.keep(olds[2], replace(olds[2]))
    journal.finish(new=state("d"))
    assert urns(journal) == ["c", "d", "a", "b"]


def test_a_new_state_that_is_replaced_leaves_its_place() -> None:
    journal = Journal(StackSnapshot(), None)
    first, second = state("a"), state("b")
    journal.finish(new=first)
    journal.finish(new=second)
    journal.finish(done=first, new=replace(first))
    assert urns(journal) == ["b", "a"]
    journal.finish(done=second)
    assert urns(journal) == ["a"]


def test_equal_states_are_kept_apart() -> None:
    """A URN can stand there twice: as the live object, and as one that a replacement left."""
    journal = Journal(StackSnapshot(), None)
    first, second = state("a"), state("a")
    journal.finish(new=first)
    journal.finish(new=second)
    journal.finish(done=first)
    (left,) = journal.snapshot().resources
    assert left is second
