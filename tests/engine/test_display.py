"""The output of a run as text and as JSON: lines, progress and counts, without secrets."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.display.lines import Display, estimate_remaining
from lakewright_engine.display.property_diff import PropertyChange, ValueForm, changes, find_changed_keys, format_value
from lakewright_engine.display.report import OperationReport, StepReport
from lakewright_engine.model.signatures import SECRET, SIGNATURE, UNKNOWN
from pulumi.automation.events import EngineEvent
from rich.console import Console
from stackrunner import Stack

PROGRAM = """
import pulumi
from filestore import File
config = pulumi.Config()
a = File("a", "a.json", "CONTENT", token=config.require_secret("token"))
b = File("b", "b.json", a.content)
pulumi.export("content", a.content)
pulumi.export("token", config.require_secret("token"))
"""
TOKEN = "s3cr3t-value"
HIDDEN = {SIGNATURE: SECRET, "ciphertext": "[secret]"}


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    stack = Stack(tmp_path, PROGRAM.replace("CONTENT", "one"))
    stack.set_config("conf:token", TOKEN, secret=True)
    return stack


def render(stack: Stack, *command: str, diff: bool = False, terminal: bool = False) -> str:
    outcome = stack.run(*command)
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=200, color_system=None)
    dry = command[0] == "preview" or "--preview-only" in command
    with Display(console, command[0], "dev", dry=dry, diff=diff) as display:
        for event in outcome.events:
            display(event)
    display.summary(outcome.outputs)
    return text.getvalue()


def test_run_displays_resources_and_summary(stack: Stack) -> None:
    lines = render(stack, "up").splitlines()
    assert lines[0] == "Updating (dev):", "a log has no progress line"
    assert "  +  pulumi-python:dynamic/store:File  a  created" in lines
    assert '    content : "one"' in lines
    assert "    token   : [secret]" in lines
    assert "    + 3 created" in lines
    unchanged = render(stack, "up")
    assert "File" not in unchanged
    assert "3 unchanged" in unchanged


def test_status_is_only_on_the_progress_line() -> None:
    urn = "urn:pulumi:dev::conf::kubernetes:apps/v1:Deployment::web"
    step = {"op": "create", "urn": urn, "type": "kubernetes:apps/v1:Deployment", "provider": ""}
    text = io.StringIO()
    with Display(Console(file=text, force_terminal=True, width=200), "up", "dev", dry=False) as display:
        display(event("resourcePreEvent", {"metadata": step}))
        display(
            event("diagnosticEvent", {"message": "2 of 3 pods\n", "severity": "info", "urn": urn, "ephemeral": True})
        )
        assert display.progress == "Updating … 0 done: web (2 of 3 pods)"
    assert display.report.messages == []


def event(kind: str, body: dict[str, Any]) -> EngineEvent:
    return EngineEvent.from_json({"sequence": 0, "timestamp": 0, kind: body})


def test_changes_list_their_properties(stack: Stack) -> None:
    stack.run("up")
    stack.write_program(PROGRAM.replace("CONTENT", "two"))
    preview = render(stack, "preview")
    assert "  ~  pulumi-python:dynamic/store:File  a  update [content]" in preview
    assert "~ 2 to update" in preview
    assert '~ content: "one" => "two"' in render(stack, "preview", diff=True)


def test_refresh_displays_drift(stack: Stack) -> None:
    stack.run("up")
    (stack.store / "a.json").write_text(json.dumps({"path": "a.json", "content": "drifted", "token": TOKEN}))
    (stack.store / "b.json").unlink()
    text = render(stack, "refresh", "--preview-only", diff=True)
    assert "a  drift: changed [content" in text
    assert "b  drift: gone" in text
    assert '~ content: "one" => "drifted"' in text


def test_no_secret_is_displayed(stack: Stack) -> None:
    # The etag of the store repeats its content: only values that the stack declares secret are hidden.
    for command in (("up",), ("preview", "--refresh"), ("destroy",)):
        assert TOKEN not in render(stack, *command, diff=True, terminal=True)


def test_terminal_displays_progress(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert "Previewing update …" in render(stack, "preview", terminal=True)


def test_failure_is_marked_with_its_message(stack: Stack) -> None:
    stack.write_program(PROGRAM.replace('"a.json"', '""'))
    text = render(stack, "preview")
    assert "must not be empty" in text


def test_report_has_steps_in_order_with_changed_keys(stack: Stack) -> None:
    stack.run("up")
    stack.write_program(PROGRAM.replace("CONTENT", "two"))
    outcome = stack.run("up")
    report = OperationReport()
    for event in outcome.events:
        report.add(event)
    document = report.to_json(outcome.outputs, outcome.exit)
    assert list(document) == ["version", "steps", "changes", "outputs", "exit", "messages"]
    assert [(step["op"], step["name"], step["keys"]) for step in document["steps"]] == [
        ("same", "conf-dev", []),
        ("update", "a", ["content"]),
        ("update", "b", ["content"]),
    ]
    assert document["changes"] == {"same": 1, "update": 2}
    assert document["outputs"] == {"content": "two", "token": "[secret]"}
    assert TOKEN not in json.dumps(document)


def test_diff_lists_single_values() -> None:
    old = {"tags": {"a": "1", "b": "2"}, "list": [1, 2], "token": HIDDEN, "gone": True}
    new = {"tags": {"a": "1", "b": "3"}, "list": [1], "token": HIDDEN, "fresh": UNKNOWN}
    assert changes(old, new) == [
        PropertyChange("+", "fresh", "[unknown]"),
        PropertyChange("-", "gone", "true"),
        PropertyChange("-", "list[1]", "2"),
        PropertyChange("~", "tags.b", '"2" => "3"'),
    ]
    assert find_changed_keys(old, new) == ["fresh", "gone", "list", "tags"]


def test_format_value_on_one_line_without_secrets() -> None:
    assert format_value({"token": HIDDEN, "id": UNKNOWN}) == '{"token": [secret], "id": [unknown]}'
    assert format_value(HIDDEN) == "[secret]"
    assert format_value("x" * 500).endswith("… (502 characters)")
    assert changes({}, {"__provider": "gASVIQ"}) == [PropertyChange("+", "__provider", "[internal]")]


def test_whole_form_compares_documents_by_their_parts() -> None:
    def policy(action: str) -> dict[str, Any]:
        statement = {
            "Effect": "Allow",
            "Action": action,
            "Resource": [f"arn:aws:s3:::{'b' * 60}/{n}" for n in range(9)],
        }
        return {"policy": json.dumps({"Statement": [statement]})}

    assert changes(policy("s3:Get"), policy("s3:Put"), form=ValueForm.WHOLE) == [
        PropertyChange("~", "policy.Statement[0].Action", '"s3:Get" => "s3:Put"')
    ]
    (created,) = changes({}, policy("s3:Get"), form=ValueForm.WHOLE)
    assert json.loads(created.text) == json.loads(policy("s3:Get")["policy"])
    assert "\n" in created.text
    (cut,) = changes({}, policy("s3:Get"))
    assert "characters)" in cut.text


def test_whole_form_compares_texts_by_lines() -> None:
    old = "".join(f"key{number}: {number}\n" for number in range(50))
    (change,) = changes({"data": old}, {"data": old.replace("key7: 7", "key7: 8")}, form=ValueForm.WHOLE)
    lines = change.text.splitlines()
    assert ("|-key7: 7" in lines, "|+key7: 8" in lines, len(lines)) == (True, True, 8)


def test_whole_form_hides_secrets() -> None:
    (change,) = changes({}, {"a": {"b": HIDDEN, "c": "x"}}, form=ValueForm.WHOLE)
    assert "[secret]" in change.text
    assert "ciphertext" not in change.text


def test_progress_has_the_total_of_the_preview(stack: Stack) -> None:
    with Display(Console(file=io.StringIO()), "up", "dev", dry=False, planned=4) as display:
        assert display.progress == "Updating … 0 of 4 done"
        for event in stack.run("up").events:
            display(event)
        assert display.progress.startswith("Updating … 3 of 4 done, about ")


def test_remaining_time_follows_the_rate_so_far() -> None:
    assert estimate_remaining(30.0, 10, 100) == 270.0
    assert estimate_remaining(30.0, 100, 100) == estimate_remaining(0.1, 0, 100) == 0.0


def test_preview_displays_steps_in_groups(stack: Stack) -> None:
    def group(steps: Sequence[StepReport]) -> list[tuple[str, list[StepReport]]]:
        return [("files", [step for step in steps if step.name != "conf-dev"][::-1])]

    events = stack.run("preview").events
    for dry, lines in ((True, ["files", "b", "a"]), (False, ["a", "b"])):
        text = io.StringIO()
        with Display(Console(file=text, width=200), "up", "dev", dry=dry, group=group) as display:
            for event in events:
                display(event)
        words_of_output = [word for line in text.getvalue().splitlines() for word in line.split()]
        assert [word for word in words_of_output if word in ("files", "a", "b")] == lines, text.getvalue()
