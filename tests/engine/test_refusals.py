"""Features of a stack that only the CLI supports are refused. Tainted resources are replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs.options import HEADER
from stackrunner import Stack

PROGRAM = """
File("a", f"a{step}.json", "a")
File("b", "b.json", "b", opts=Options(delete_before_replace=True))
"""


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    stack = Stack(tmp_path, HEADER + PROGRAM)
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    return stack


@pytest.mark.parametrize("field", ["refreshBeforeUpdate", "viewOf", "extensionRef", "snippetID"])
@pytest.mark.parametrize("verb", ["preview", "destroy"])
def test_unsupported_state_is_refused(stack: Stack, field: str, verb: str) -> None:
    resources = stack.resources()
    resources[-1].extra[field] = resources[0].urn
    with stack._environment({}):
        snapshot = stack.backend.load(stack.project_name, stack.name)
    assert snapshot is not None
    snapshot.resources = resources
    stack.save(snapshot)
    with pytest.raises(Exception, match=rf"{resources[-1].urn.rsplit('::', 1)[-1]} in the state.*\({field}\)"):
        stack.run(verb, env={"STEP": "1"})
    assert len(stack.files()) == 2


def test_autonaming_is_refused(stack: Stack) -> None:
    file = stack.program_dir / "Pulumi.dev.yaml"
    text = file.read_text()
    file.write_text(text + "config:\n  pulumi:autonaming:\n    mode: verbatim\n")
    with pytest.raises(Exception, match="pulumi:autonaming, which the embedded engine does not support"):
        stack.run("preview", env={"STEP": "1"})
    file.write_text(text + "config:\n  pulumi:autonaming:\n    mode: default\n")
    assert stack.run("preview", env={"STEP": "1"}).exit == 0


def test_tainted_resource_is_replaced_once(stack: Stack) -> None:
    with stack._environment({}):
        snapshot = stack.backend.load(stack.project_name, stack.name)
    assert snapshot is not None
    snapshot.resources[-1].taint = True
    tainted = snapshot.resources[-1].urn.rsplit("::", 1)[-1]
    stack.save(snapshot)
    assert stack.deployment()["resources"][-1]["taint"] is True
    outcome = stack.run("up", env={"STEP": "1"})
    replaced = {step["name"] for step in outcome.steps if step["op"] == "replace"}
    assert replaced == {tainted}
    assert {step["op"] for step in stack.run("up", env={"STEP": "1"}).steps} == {"same"}
