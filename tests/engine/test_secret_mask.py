"""Secret configuration values are masked in messages, program output and displays, as by the Pulumi CLI."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.display.lines import Display
from lakewright_engine.display.report import OperationReport
from lakewright_engine.display.secret_mask import SecretMask
from pulumi.automation.events import EngineEvent
from rich.console import Console
from stackrunner import RunOutcome, Stack

TOKEN = 'CANARY"token'
INNER = "CANARY-inner"
SECRETS = {"token": TOKEN, "longer": f"{TOKEN}-longer", "short": "ab", "flag": "TRUE", "lines": "CANARY-1\nCANARY-2"}
PROGRAM = """
import json
import sys
import pulumi
from filestore import File
config = pulumi.Config()
token, longer, tree = config.require("token"), config.require("longer"), config.require_object("tree")
print("printed", token, longer, json.dumps(token), tree, config.require("short"), config.require("flag"), flush=True)
sys.stderr.write("written " + token + "\\n")
pulumi.log.info("info " + token)
pulumi.log.warn("warning " + config.require("lines"))
File("a", "a.json", "content", token={"values": [token], "flag": "true"})
pulumi.export("token", token)
pulumi.export("url", "http://" + longer)
"""
FAILURE = 'raise ValueError("failure " + token)\n'


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    stack = Stack(tmp_path, PROGRAM)
    for key, value in SECRETS.items():
        stack.set_config(f"conf:{key}", value, secret=True)
    settings = stack.project.stack_config(stack.name)
    settings.set_value("conf:tree", {"leaf": [{"secure": stack.secrets().encrypt(INNER)}], "plain": "visible"})
    settings.save()
    return stack


def display(stack: Stack, outcome: RunOutcome, verb: str) -> str:
    text = io.StringIO()
    lines = Display(
        Console(file=text, width=300, color_system=None), verb, stack.name, dry=verb == "preview", diff=True
    )
    with lines:
        for event in outcome.events:
            lines(event)
    lines.summary(outcome.outputs)
    return text.getvalue()


def to_json(outcome: RunOutcome) -> dict[str, Any]:
    report = OperationReport()
    for event in outcome.events:
        report.add(event)
    return report.to_json({}, outcome.exit)


def list_lines(events: list[EngineEvent]) -> list[str]:
    return [event.diagnostic_event.message for event in events if event.diagnostic_event is not None]


@pytest.mark.parametrize("engine", ["embedded", pytest.param("pulumi", marks=pytest.mark.pulumi_cli)])
def test_config_secrets_are_masked_in_events(stack: Stack, engine: str) -> None:
    outcome = stack.run("up") if engine == "embedded" else stack.cli("up")

    assert outcome.exit == 0, outcome.messages
    lines = "".join(list_lines(outcome.events))
    assert "info [secret]" in lines
    assert "warning [secret]" in lines
    assert "written [secret]" in lines
    assert "printed [secret] [secret]" in lines
    assert "{'leaf': ['[secret]'], 'plain': 'visible'} ab TRUE" in lines
    assert "CANARY" not in json.dumps(to_json(outcome))
    if engine == "embedded":
        text = display(stack, outcome, "up")
        assert "CANARY" not in text
        assert 'url   : "http://[secret]"' in text


def test_the_state_and_providers_have_the_values(stack: Stack) -> None:
    outcome = stack.run("up")

    assert json.loads((stack.store / "a.json").read_text())["token"] == {"values": [TOKEN], "flag": "true"}
    assert stack.resource("a").outputs["token"] == {"values": [TOKEN], "flag": "true"}
    assert outcome.outputs == {"token": TOKEN, "url": f"http://{SECRETS['longer']}"}


def test_events_have_the_exact_properties(stack: Stack) -> None:
    """Deletions are checked with the properties of events, and a short secret may be part of an address."""
    stack.run("up")

    outcome = stack.run("destroy", "--preview-only")

    states = [event.resource_pre_event.metadata.old for event in outcome.events if event.resource_pre_event is not None]
    assert {"values": [TOKEN], "flag": "true"} in [(state.outputs or {}).get("token") for state in states if state]
    assert "CANARY" not in display(stack, outcome, "destroy") + json.dumps(to_json(outcome))


def test_config_secrets_are_masked_in_errors(stack: Stack) -> None:
    stack.run("up")
    stack.write_program(PROGRAM + FAILURE)

    for verb in ("preview", "up"):
        outcome = stack.run(verb)
        assert outcome.exit == 1, outcome.messages
        assert "ValueError: failure [secret]" in "".join(outcome.messages)
        texts = [*outcome.messages, json.dumps(to_json(outcome)), display(stack, outcome, verb)]
        assert "CANARY" not in "".join(texts)


def test_config_secrets_are_masked_in_properties(stack: Stack) -> None:
    stack.run("up")
    stack.write_program(PROGRAM.replace("[token]", "[token, longer]"))

    outcome = stack.run("preview")

    [step] = [step for step in to_json(outcome)["steps"] if step["op"] == "update"]
    assert {"sign": "+", "path": "token.values[1]", "text": "[secret]"} in step["properties"]
    assert "CANARY" not in display(stack, outcome, "preview")


@pytest.mark.parametrize(
    ("values", "text", "masked"),
    [
        (["secret1", "secret2"], "secret1, secret2, secret3, secret10", "[secret], [secret], secret3, [secret]0"),
        (["secret.*"], "secret3, secret.*", "secret3, [secret]"),
        (["a", "my", "123", ""], "a, my, 123", "a, my, [secret]"),
        (["é", "日"], "é, 日", "é, [secret]"),
        (["true", "FALSE"], "true, FALSE", "true, FALSE"),
        (["a\nb\tc"], r"a\nb\tc and a" + "\nb\tc", "[secret] and [secret]"),
        (['say"it'], r'say"it, say\"it', "[secret], [secret]"),
        (["<ü>"], r"<ü>, \u003cü\u003e, <\u00fc>", "[secret], [secret], [secret]"),
        (["abc", "abcdef", "cde"], "abcdef, abcd, abcde", "[secret], [secret]d, [secret]de"),
        ([], "secret", "secret"),
    ],
)
def test_mask_follows_the_rules_of_the_cli(values: list[str], text: str, masked: str) -> None:
    """The first cases are tests of Pulumi's `log_test.go`. Longer values precede, unlike in the CLI."""
    assert SecretMask(values).apply(text) == masked
