"""Hooks: functions of the program around steps and after failures."""

from __future__ import annotations

from pathlib import Path

import pytest
from stackrunner import Stack

HOOKED = """
import os
from pathlib import Path
import pulumi
from filestore import File
log = Path(os.environ["FILESTORE"]) / "hooks.log"
failing = os.environ.get("FAILING")
def hook(name):
    def tell(args):
        with log.open("a") as lines:
            lines.write(f"{name} {args.name}\\n")
        if name == failing:
            raise ValueError("not today")
    return pulumi.ResourceHook(name, tell)
kinds = [f"{when}_{verb}" for verb in ("create", "update", "delete") for when in ("before", "after")]
hooks = pulumi.ResourceHookBinding(**{kind: [hook(kind)] for kind in kinds})
if content := os.environ.get("CONTENT"):
    File("a", "a.json", content, opts=pulumi.ResourceOptions(hooks=hooks))
"""


def test_hooks_run_before_and_after_each_step(tmp_path: Path) -> None:
    stack = Stack(tmp_path, HOOKED)
    log = stack.store / "hooks.log"
    assert stack.run("preview", env={"CONTENT": "one"}).exit == 0
    assert not log.exists()
    for content in ("one", "one", "two", ""):
        outcome = stack.run("up", env={"CONTENT": content})
        assert outcome.exit == 0, outcome.messages
    lines = log.read_text().splitlines()
    assert lines == [f"{when}_{verb} a" for verb in ("create", "update", "delete") for when in ("before", "after")]


def test_failed_hooks_before_and_after_a_step(tmp_path: Path) -> None:
    stack = Stack(tmp_path, HOOKED)
    prevented = stack.run("up", env={"CONTENT": "one", "FAILING": "before_create"})
    assert prevented.exit == 1
    assert 'error: before hook "before_create" failed: not today' in prevented.messages
    assert prevented.files == {}
    created = stack.run("up", env={"CONTENT": "one", "FAILING": "after_create"})
    assert created.exit == 1
    assert 'error: after hook "after_create" failed: not today' in created.messages
    assert stack.resource("a").id == "a.json"
    assert stack.list_pending_operations() == []


def test_destroy_refuses_delete_hooks(tmp_path: Path) -> None:
    stack = Stack(tmp_path, HOOKED)
    assert stack.run("up", env={"CONTENT": "one"}).exit == 0
    outcome = stack.run("destroy")
    assert outcome.exit == 1
    assert any("Hooks: before_delete, after_delete" in message for message in outcome.messages)
    assert any("--run-program" in message for message in outcome.messages)
    assert "a.json" in outcome.files


def test_error_hook_requests_a_retry(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        """
import pulumi
from filestore import File, FileProvider, root
class Flaky(FileProvider):
    def create(self, props):
        if not (root() / "repaired").exists():
            raise RuntimeError("not yet")
        return super().create(props)
def repair(args):
    (root() / "repaired").touch()
    return True
class Thing(pulumi.dynamic.Resource):
    pass
hooks = pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("repair", repair)])
Thing(Flaky(), "a", {"path": "a.json", "content": "x"}, pulumi.ResourceOptions(hooks=hooks))
""",
    )
    outcome = stack.run("up")
    assert outcome.exit == 0, outcome.messages
    assert outcome.messages == ["warning: retrying create due to on-error hook request (1/100)"]
    assert outcome.provider_calls == ["create a.json"]


STEP_BESIDE_A_HOOK = """
import asyncio
import pulumi
from filestore import File, FileProvider, root
async def hook(args):
    (root() / "waiting").touch()
    while not (root() / "refused").exists():
        await asyncio.sleep(0.01)
    await finish(args)
class Late(FileProvider):
    def create(self, props):
        import time
        while not (root() / "waiting").exists():
            time.sleep(0.01)
        (root() / "refused").touch()
        raise RuntimeError("refused")
class Thing(pulumi.dynamic.Resource):
    pass
b = Thing(Late(), "b", {"path": "b.json"})
"""
"""The creation of `b` fails while a hook of another resource runs, which then runs `finish`."""


def test_hooks_of_steps_in_progress_run_after_a_failure(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        STEP_BESIDE_A_HOOK
        + """
async def finish(args):
    pass
def note(args):
    (root() / "after").touch()
hooks = pulumi.ResourceHookBinding(before_create=[hook], after_create=[note])
File("a", "a.json", "x", opts=pulumi.ResourceOptions(hooks=hooks))
""",
    )
    outcome = stack.run("up")
    assert outcome.exit == 1
    assert (stack.store / "after").exists()
    assert stack.resource("a").id == "a.json"


@pytest.mark.parametrize("awaited", ['File("c", "c.json", "x").etag', "b.id"])
def test_hook_waiting_for_a_resource_ends_after_a_failure(tmp_path: Path, awaited: str) -> None:
    """The CLI waits forever: it neither creates the resource nor reports that it will not."""
    stack = Stack(
        tmp_path,
        STEP_BESIDE_A_HOOK
        + f"""
async def finish(args):
    await {awaited}.future()
    (root() / "after").touch()
hooks = pulumi.ResourceHookBinding(after_create=[hook])
File("a", "a.json", "x", opts=pulumi.ResourceOptions(hooks=hooks))
""",
    )
    outcome = stack.run("up")
    assert outcome.exit == 1
    assert outcome.messages == ["error: RuntimeError: refused", "error: update failed"]
    assert (stack.store / "after").exists()
    assert list(stack.files()) == ["a.json"]
