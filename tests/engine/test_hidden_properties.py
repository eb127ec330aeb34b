"""`hide_diffs` hides the values of differences in the display, in `--json` and in reports, as by the Pulumi CLI."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from lakewright_engine.display.hidden_properties import HiddenValue, hide_values
from lakewright_engine.display.lines import Display
from lakewright_engine.display.property_diff import PropertyChange, ValueForm, diff_at_path
from lakewright_engine.display.report import OperationReport, StepReport
from lakewright_engine.plans.plan_file import read_plan
from lakewright_engine.plans.summary import plan_to_json
from rich.console import Console
from stackrunner import RunOutcome, Stack

HEADER = """
import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult
def get_outputs(inputs):
    return {key: value for key, value in inputs.items() if key != "__provider"}
class Provider(ResourceProvider):
    def diff(self, _id, olds, news):
        return DiffResult(changes=get_outputs(olds) != get_outputs(news))
    def create(self, props):
        return CreateResult("id", get_outputs(props))
    def update(self, id_, olds, news):
        return UpdateResult(get_outputs(news))
    def read(self, id_, props):
        return ReadResult(id_, props | {"a": "CANARY-drift"})
class Thing(Resource):
    pass
"""
HIDDEN = ["a", "n.b", "items[*].x", "doc", "new", "gone", "tree", "whole.part"]
BEFORE = {
    **{"a": "CANARY1", "n": {"b": "CANARY1", "c": 1}, "items": [{"x": "CANARY1", "y": 1}, {"x": "CANARY"}]},
    **{"doc": '{"k": "CANARY1"}', "gone": "CANARY", "same": 1, "tree": {"leaf": {"value": "CANARY1"}}},
}
AFTER = {
    **{"a": "CANARY2", "n": {"b": "CANARY2", "c": 2}, "items": [{"x": "CANARY2", "y": 2}, {"x": "CANARY"}]},
    **{"doc": '{"k": "CANARY2"}', "new": "CANARY", "same": 1, "tree": {"leaf": {"value": "CANARY2"}}},
    "whole": {"part": "CANARY"},
}


def write_program(stack: Stack, properties: dict[str, object], hidden: list[str]) -> None:
    stack.write_program(f'{HEADER}Thing(Provider(), "a", {properties}, pulumi.ResourceOptions(hide_diffs={hidden}))')


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    stack = Stack(tmp_path, "")
    write_program(stack, BEFORE, HIDDEN)
    stack.run("up")
    return stack


def find_step(outcome: RunOutcome, op: str) -> tuple[StepReport, dict[str, str]]:
    report = OperationReport()
    for event in outcome.events:
        report.add(event)
    [step] = [step for step in report.steps if step.op == op and step.name == "a"]
    [body] = [step for step in report.to_json({}, 0)["steps"] if step["op"] == op and step["name"] == "a"]
    return step, {change["path"]: f"{change['sign']} {change['text']}" for change in body["properties"]}


def display(outcome: RunOutcome) -> str:
    text = io.StringIO()
    with Display(Console(file=text, width=300, color_system=None), "preview", "dev", dry=True, diff=True) as lines:
        for event in outcome.events:
            lines(event)
    return text.getvalue()


def test_update_hides_values_and_not_names(stack: Stack) -> None:
    write_program(stack, AFTER, HIDDEN)

    outcome = stack.run("preview")

    step, properties = find_step(outcome, "update")
    assert properties == {
        "a": "~ (hidden)",
        "doc": "~ (hidden)",
        "gone": "- (hidden)",
        "items[0].x": "~ (hidden)",
        "items[0].y": "~ 1 => 2",
        "n.b": "~ (hidden)",
        "n.c": "~ 1 => 2",
        "new": "+ (hidden)",
        "tree": "~ (hidden)",
        "whole": '+ {"part": (hidden)}',
    }
    assert step.keys == ["a", "doc", "gone", "items", "n", "new", "tree", "whole"]
    assert "CANARY" not in f"{step.old}{step.new}{display(outcome)}", "reports compare the old and new properties"
    assert step.old["n"] == {"b": "(hidden)", "c": 1}
    assert "      ~ doc: (hidden)\n" in display(outcome)


def test_summary_of_a_plan_hides_the_same_values(stack: Stack, tmp_path: Path) -> None:
    write_program(stack, AFTER, HIDDEN)

    outcome = stack.run("preview", save_plan=tmp_path / "plan.json")

    _, expected = find_step(outcome, "update")
    summary = plan_to_json(read_plan(tmp_path / "plan.json"))
    [step] = [step for step in summary["steps"] if step["name"] == "a"]
    assert {change["path"]: f"{change['sign']} {change['text']}" for change in step["properties"]} == expected
    assert "CANARY" not in json.dumps(summary)


def test_refresh_hides_the_values_of_drift(stack: Stack) -> None:
    outcome = stack.run("refresh", "--preview-only")

    step, properties = find_step(outcome, "refresh")
    assert properties == {"a": "~ (hidden)"}
    assert step.result == "update"
    assert "CANARY" not in display(outcome)


def test_values_of_a_new_resource_are_displayed(stack: Stack) -> None:
    """The Pulumi CLI displays them, too: there is no difference to hide."""
    stack.run("destroy")

    assert '+ a: "CANARY1"' in display(stack.run("preview"))


def test_the_new_program_decides_what_is_hidden(stack: Stack) -> None:
    write_program(stack, AFTER, [])
    _, properties = find_step(stack.run("preview"), "update")
    assert properties["a"] == '~ "CANARY1" => "CANARY2"'

    write_program(stack, AFTER, ["n"])
    _, properties = find_step(stack.run("preview"), "update")
    assert [path for path, text in properties.items() if "hidden" in text] == ["n"]


@pytest.mark.parametrize("form", ValueForm)
@pytest.mark.parametrize(
    ("path", "kind", "change"),
    [
        ("n.b", "update", PropertyChange("~", "n.b", "(hidden)")),
        ("n.b.deeper[0]", "update-replace", PropertyChange("~", "n.b", "(hidden)")),
        ("n.b.added", "add", PropertyChange("~", "n.b", "(hidden)")),
        ("n", "add", PropertyChange("+", "n", '{"b": (hidden)}')),
        ("items[1].x", "delete", PropertyChange("-", "items[1].x", "(hidden)")),
    ],
)
def test_paths_of_a_detailed_diff_are_hidden(path: str, kind: str, change: PropertyChange, form: ValueForm) -> None:
    old, new = (
        hide_values({"n": {"b": {"deeper": [text]}}, "items": [{}, {"x": text}]}, HIDDEN, HiddenValue)
        for text in ("CANARY1", "CANARY2")
    )

    [actual] = diff_at_path(path, kind, old, new, form)

    assert (actual.sign, actual.path, "".join(actual.text.split())) == (
        change.sign,
        change.path,
        "".join(change.text.split()),
    )


def test_invalid_hidden_path_is_a_property_name() -> None:
    properties = {'x["': 1, "y": {"z": 2}}
    assert hide_values(properties, ['x["', "y.absent", "y.z.deeper", ""], str) == {'x["': "1", "y": {"z": 2}}
