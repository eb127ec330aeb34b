"""An interrupted run says which steps remain, and how to continue."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright.cli.engines.remainder import find_remainder, format_remainder
from lakewright_engine import Operation
from lakewright_engine.display.report import StepReport
from lakewright_engine.operation import Remainder, RemainingStep
from lakewright_engine.project.project import PulumiProject

PROJECT = PulumiProject(Path("/p/Pulumi.yaml"), "conf")


def urn(name: str, kind: str = "a:b:C") -> str:
    return f"urn:pulumi:dev::conf::{kind}::{name}"


def step(op: str, name: str, *, done: bool = False, failed: bool = False) -> StepReport:
    return StepReport(op, urn(name), "a:b:C", [], {}, {}, done=done, failed=failed)


def names(remainder: Remainder) -> list[tuple[str, str]]:
    return [(step.op, step.name) for step in remainder.steps]


def test_confirmed_preview_names_all_remaining_steps() -> None:
    planned = [step("same", "a"), step("create", "b"), step("update", "c"), step("replace", "d"), step("delete", "e")]
    taken = [step("create", "b", done=True), step("update", "c")]
    remainder = find_remainder(Operation("up", PROJECT, "dev"), taken, planned, state=[urn("a")])
    assert names(remainder) == [("update", "c"), ("delete", "e")]
    assert remainder.is_complete


def test_without_preview_state_and_program_name_the_rest() -> None:
    state = [urn("conf-dev", "pulumi:pulumi:Stack"), urn("default", "pulumi:providers:aws"), urn("a"), urn("b")]
    declared_resources = [("pulumi:pulumi:Stack", "conf-dev"), *(("a:b:C", name) for name in "abcde")]
    taken = [step("same", "a", done=True), step("create", "c"), step("create", "d", done=True, failed=True)]
    remainder = find_remainder(
        Operation("up", PROJECT, "dev"), taken, None, state=state, declared_resources=declared_resources
    )
    assert names(remainder) == [("create", "c"), ("create", "d"), ("check", "b"), ("create", "e")]
    assert not remainder.is_complete


@pytest.mark.parametrize("verb", ["destroy", "refresh"])
def test_other_runs_need_no_program(verb: str) -> None:
    remainder = find_remainder(Operation(verb, PROJECT, "dev"), [], None, state=[urn("a")])
    assert names(remainder) == [({"destroy": "delete"}.get(verb, verb), "a")]
    assert remainder.is_complete


def test_text_lists_steps_and_the_command_to_continue() -> None:
    operation = Operation("up", PROJECT, "dev", refresh=True, targets=(urn("a*"),), target_dependents=True)
    text = format_remainder(find_remainder(operation, [], None, state=[urn("a")]))
    assert "1 step(s) remain:\n  check a (a:b:C)\nThe program was stopped before it ended, and may declare more" in text
    command = "lakewright up --stack dev --refresh --target 'urn:pulumi:dev::conf::a:b:C::a*' --target-dependents"
    assert text.endswith(f"Continue with: {command}")
    many = Remainder(
        tuple(RemainingStep("create", "t", str(number)) for number in range(30)), is_complete=True, command="x"
    )
    assert "\n  and 10 more\n" in format_remainder(many)
