"""Secrets remain secret in the state, even if a provider returns them in plain text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.model.resources import SecretValue
from stackrunner import PASSPHRASE, Stack
from vaultplugin import install

PROGRAM = """
import os
import pulumi

class Thing(pulumi.CustomResource):
    def __init__(self, name, props, opts=None):
        super().__init__("vault:index:Thing", name, props, opts)

token = pulumi.Output.secret("hunter2")
props = {"name": "object", "token": token, "unhealthy": "UNHEALTHY" in os.environ, "size": os.environ.get("SIZE", "1")}
nested = {"name": "nested", "outer": {"inner": pulumi.Output.secret("hunter3")}}
hidden = pulumi.ResourceOptions(additional_secret_outputs=["issued", "id"])
if "IMPORT" in os.environ:
    hidden = pulumi.ResourceOptions.merge(hidden, pulumi.ResourceOptions(import_="object"))
Thing("thing", props, hidden)
Thing("nested", nested)
"""


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    stack = Stack(tmp_path, PROGRAM)
    stack.environment |= {"PATH": install(tmp_path / "bin"), "VAULT": str(stack.store)}
    return stack


def assert_secrets_are_kept(stack: Stack) -> None:
    thing = stack.resource("thing")
    assert thing.outputs["token"] == SecretValue("hunter2")
    assert thing.outputs["issued"] == SecretValue("made by the server")
    assert thing.outputs["id"] == "an output"
    assert thing.outputs["name"] == "object"
    text = json.dumps(stack.deployment())
    assert "hunter2" not in text
    assert "made by the server" not in text.replace(_dump_nested_resource(stack), "")


def _dump_nested_resource(stack: Stack) -> str:
    nested: Any = next(resource for resource in stack.deployment()["resources"] if resource["urn"].endswith("::nested"))
    return json.dumps(nested)


@pytest.mark.parametrize(
    ("second", "environment"),
    [
        (("up",), {}),
        (("up",), {"SIZE": "2"}),
        (("refresh",), {}),
        (("up", "--refresh"), {}),
        (("up", "--refresh"), {"SIZE": "2"}),
    ],
    ids=["same", "update", "refresh", "refresh and same", "refresh and update"],
)
def test_secrets_stay_marked(stack: Stack, second: tuple[str, ...], environment: dict[str, str]) -> None:
    assert stack.run("up").exit == 0
    assert_secrets_are_kept(stack)
    outcome = stack.run(*second, env=environment)
    assert outcome.exit == 0, outcome.messages
    assert_secrets_are_kept(stack)


def test_secrets_of_failed_create_stay_marked(stack: Stack) -> None:
    outcome = stack.run("up", env={"UNHEALTHY": "1"})
    assert outcome.exit == 1
    assert stack.resource("thing").init_errors == ["the object is not ready"]
    assert_secrets_are_kept(stack)
    outcome = stack.run("refresh")
    assert outcome.exit == 0, outcome.messages
    assert stack.resource("thing").init_errors == ["the object is not ready"]
    assert_secrets_are_kept(stack)


def test_secrets_of_import_are_marked(stack: Stack) -> None:
    (stack.store / "object.json").write_text(json.dumps({"name": "object", "token": "hunter2", "size": "1"}))
    assert stack.run("up", env={"IMPORT": "1", "SIZE": "1"}).exit == 0
    assert_secrets_are_kept(stack)


def test_refresh_marks_secrets_saved_in_plain_text(stack: Stack) -> None:
    """In a state of an older engine, a provider echoed a secret input."""
    assert stack.run("up").exit == 0
    exported = stack.backend.export(stack.project_name, stack.name)
    thing = next(resource for resource in exported["deployment"]["resources"] if resource["urn"].endswith("::thing"))
    thing["outputs"] |= {"token": "hunter2", "issued": "made by the server"}
    stack.backend.import_(stack.project_name, stack.name, exported)
    assert stack.run("refresh").exit == 0
    assert_secrets_are_kept(stack)


@pytest.mark.pulumi_cli
def test_cli_reads_the_same_secrets(stack: Stack) -> None:
    assert stack.run("up").exit == 0
    outcome = stack.cli("up", "--expect-no-changes")
    assert outcome.exit == 0, outcome.messages
    assert_secrets_are_kept(stack)
