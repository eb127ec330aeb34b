"""Replacement triggers: which changes replace a resource, and how the state stores them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lakewright_engine.model.errors import UnsupportedFeatureError
from lakewright_engine.model.resources import SecretValue, Unknown, Value
from lakewright_engine.model.signatures import SECRET, SIGNATURE
from lakewright_engine.planning.replacement_trigger import is_triggered, refuse_nested_secret
from programs.options import HEADER
from stackrunner import Stack

PROGRAM = """
trigger = pulumi.Output.secret(f"version {step}")
File("a", "a.json", "a", opts=Options(replacement_trigger=trigger, delete_before_replace=True))
"""


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ("1", "2", True),
        ("1", "1", False),
        (1, 1.0, False),
        (None, "2", False),
        ("1", None, False),
        ("1", SecretValue("1"), False),
        ("1", SecretValue("2"), True),
        (SecretValue("1"), SecretValue("2"), False),
        (SecretValue("1"), "2", False),
        ({"a": None}, {"a": 1}, True),
        ("1", Unknown(), True),
        (None, [Unknown()], True),
    ],
)
def test_trigger_replaces_as_on_the_cli(old: Value, new: Value, *, replaces: bool) -> None:
    assert is_triggered(old, new) is replaces


def test_secret_inside_a_trigger_is_refused() -> None:
    refuse_nested_secret(SecretValue({"a": 1}), "File 'a'")
    with pytest.raises(UnsupportedFeatureError, match="File 'a' has a secret inside its replacement_trigger"):
        refuse_nested_secret({"a": [SecretValue(1)]}, "File 'a'")


def test_secret_trigger_is_encrypted_in_the_state(tmp_path: Path) -> None:
    stack = Stack(tmp_path, HEADER + PROGRAM)
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    written = stack.deployment()["resources"][-1]["replacementTrigger"]
    assert written[SIGNATURE] == SECRET
    assert json.loads(stack.secrets().decrypt(written["ciphertext"])) == "version 1"
    outcome = stack.run("up", env={"STEP": "2"})
    assert [step["op"] for step in outcome.steps] == ["same"]
    assert "only a plain trigger replaces the resource" in outcome.messages[0]
    assert stack.resource("a").replacement_trigger == SecretValue("version 2")


def test_redacted_trigger_of_older_engine_loads(tmp_path: Path) -> None:
    stack = Stack(tmp_path, HEADER + PROGRAM)
    stack.run("up", env={"STEP": "1"})
    exported = stack.backend.export(stack.project_name, stack.name)
    exported["deployment"]["resources"][-1]["replacementTrigger"] = {SIGNATURE: SECRET, "ciphertext": "[secret]"}
    stack.backend.import_(stack.project_name, stack.name, exported)
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    assert stack.resource("a").replacement_trigger == SecretValue("version 1")
