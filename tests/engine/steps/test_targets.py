"""Targets beyond the recorded programs: globs, the order of the saved state, and refused dependencies."""

from pathlib import Path

import pytest
from lakewright_engine.model.resources import ResourceState, StackSnapshot
from lakewright_engine.state.integrity import check_integrity
from lakewright_engine.steps.targets import UrnPatterns, sort_by_dependency
from programs.options import HEADER
from stackrunner import Stack

URN = "urn:pulumi:dev::conf::test:index:Box$store:File::a"


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        (URN, True),
        ("**::a", True),
        ("*::a", False),
        ("urn:pulumi:dev::conf::**$store:File::*", True),
        ("urn:pulumi:dev::*::test:index:Box$*:File::a", True),
        ("**.File::a", False),
        ("**::", False),
    ],
)
def test_globs_match_as_on_the_cli(pattern: str, *, matches: bool) -> None:
    assert UrnPatterns([pattern]).matches(URN) is matches


def test_kept_states_follow_their_dependencies() -> None:
    names = [f"urn:pulumi:dev::conf::store:File::{number}" for number in range(5000)]
    chain = [
        ResourceState(urn=urn, type="store:File", custom=True, dependencies=names[number + 1 : number + 2])
        for number, urn in enumerate(names)
    ]
    ordered = sort_by_dependency(chain)
    check_integrity("dev", StackSnapshot(ordered))
    assert sort_by_dependency(ordered) == ordered


def test_target_may_move_behind_a_former_dependent(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        HEADER
        + """
if step == 1:
    a = File("a", "a.json", "a1")
    File("b", "b.json", "b", opts=Options(depends_on=[a]))
else:
    b = File("b", "b.json", "b")
    b.urn.apply(lambda _: File("a", "a.json", "a2"))
""",
    )
    stack.run("up", env={"STEP": "1"})
    outcome = stack.run("up", "--target", "**::a", env={"STEP": "2"})
    assert outcome.exit == 0, outcome.messages
    assert outcome.provider_calls == ["update a.json"]
    assert stack.resource("b").dependencies == [stack.resource("a").urn]
    check_integrity("dev", StackSnapshot(stack.resources()))


def test_cyclic_dependency_with_untargeted_state_is_refused(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        HEADER
        + """
if step == 1:
    a = File("a", "a.json", "a1")
    File("b", "b.json", "b", opts=Options(depends_on=[a]))
else:
    b = File("b", "b.json", "b")
    File("a", "a.json", "a2", opts=Options(depends_on=[b]))
""",
    )
    stack.run("up", env={"STEP": "1"})
    before = stack.resources()
    outcome = stack.run("up", "--target", "**::a", env={"STEP": "2"})
    assert outcome.exit == 1
    assert any("which the operation does not target" in message for message in outcome.messages)
    assert {state.urn for state in stack.resources()} == {state.urn for state in before}
    check_integrity("dev", StackSnapshot(stack.resources()))
    both = stack.run("up", "--target", "**::a", "--target", "**::b", env={"STEP": "2"})
    assert both.exit == 0, both.messages


def test_dependent_of_excluded_creation_is_refused(tmp_path: Path) -> None:
    """The CLI creates it and then refuses its own state."""
    stack = Stack(
        tmp_path,
        HEADER
        + """
File("a", "a.json", "a")
if step > 1:
    n = File("new", "new.json", "n")
    File("newer", "newer.json", n.etag)
""",
    )
    stack.run("up", env={"STEP": "1"})
    for command in ("preview", "up"):
        outcome = stack.run(command, "--exclude", "**::new", env={"STEP": "2"})
        assert outcome.exit == 1
        assert any(
            "newer' depends on" in message and "::new', which does not exist" in message for message in outcome.messages
        )
    assert list(outcome.files) == ["a.json"]
    check_integrity("dev", StackSnapshot(stack.resources()))


def test_renamed_target_keeps_dependents_consistent(tmp_path: Path) -> None:
    """The CLI saves the new name twice and then refuses its own state."""
    stack = Stack(
        tmp_path,
        HEADER
        + """
named = "plain" if step == 1 else "renamed"
p = File(named, "p.json", "p", opts=Options(aliases=[Alias(name="plain")]))
File("next", "next.json", p.etag, opts=Options(depends_on=[p]))
""",
    )
    stack.run("up", env={"STEP": "1"})
    outcome = stack.run("up", "--target", "**::renamed", env={"STEP": "2"})
    assert outcome.exit == 0, outcome.messages
    check_integrity("dev", StackSnapshot(stack.resources()))
    assert stack.resource("next").dependencies == [stack.resource("renamed").urn]
    assert stack.run("up", "--expect-no-changes", env={"STEP": "2"}).exit == 0
