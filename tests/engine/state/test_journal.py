"""The journal orders states by the end of their steps."""

from __future__ import annotations

from dataclasses import replace

from lakewright_engine.model.resources import ResourceState, StackSnapshot
from lakewright_engine.state.journal import Journal


def state(name: str) -> ResourceState:
    return ResourceState(name, "t:t:T", custom=True)


def urns(journal: Journal) -> list[str]:
    return [resource.urn for resource in journal.snapshot().resources]


def test_new_states_precede_old_ones() -> None:
    olds = [state("a"), state("b"), state("c")]
    journal = Journal(StackSnapshot(olds), None)
    journal.replace(olds[2], replace(olds[2]))
    journal.finish(new=state("d"))
    assert urns(journal) == ["c", "d", "a", "b"]


def test_replaced_new_state_is_removed() -> None:
    journal = Journal(StackSnapshot(), None)
    first, second = state("a"), state("b")
    journal.finish(new=first)
    journal.finish(new=second)
    journal.finish(done=first, new=replace(first))
    assert urns(journal) == ["b", "a"]
    journal.finish(done=second)
    assert urns(journal) == ["a"]


def test_equal_states_are_distinct() -> None:
    """A URN may occur twice: as the live object and as one that a replacement left."""
    journal = Journal(StackSnapshot(), None)
    first, second = state("a"), state("a")
    journal.finish(new=first)
    journal.finish(new=second)
    journal.finish(done=first)
    (remaining_state,) = journal.snapshot().resources
    assert remaining_state is second
