"""After a run that is killed at any provider call, the next run reaches the same result."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path

import pytest
from stackrunner import Stack

PROGRAM = """
import os
import select
import pulumi
from deadlystore import File
step = int(os.environ["STEP"])
a = File("a", f"a{step}.json", "one")
b = File("b", "b.json", a.etag.apply(lambda etag: f"{etag} {step}"))
if step == 1:
    File("c", "c.json", "leaf", opts=pulumi.ResourceOptions(depends_on=[b]))
"""
CALLS = 6
"""Provider calls of both steps: create a, b, c; then create the new a, update b, delete c and the old a."""


def up(stack: Stack, step: int, deadly: str = "") -> int:
    return stack.run_up(STEP=str(step), DEADLY=deadly or "0:").returncode


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("call", range(1, CALLS + 2))
def test_next_up_finishes_a_killed_up(tmp_path: Path, call: int, moment: str) -> None:
    stack = Stack(tmp_path, PROGRAM)
    killed = 0
    for step in (1, 2):
        code = up(stack, step, f"{call}:{moment}")
        if code == -signal.SIGKILL:
            killed += 1
            assert stack.list_pending_operations(), "the interrupted steps are on the disk"
            stack.backend.cancel("conf", "dev")
            code = up(stack, step)
        assert code == 0
    assert killed == 1
    assert sorted(name.split("-", 1)[1] for name in stack.files()) == ["a2.json", "b.json"]
    assert json.loads(next(stack.store.glob("*-b.json")).read_text())["content"] == "etag-one 2"
    assert stack.list_pending_operations() == []
    assert [state.delete for state in stack.resources()] == [False] * 4


def test_killed_engine_leaves_no_process(tmp_path: Path) -> None:
    stack = Stack(tmp_path, PROGRAM)
    assert up(stack, 1, "1:before") == -signal.SIGKILL
    provider = int((stack.store / ".pid").read_text())
    try:
        ended = os.pidfd_open(provider)
    except ProcessLookupError:
        return
    assert select.select([ended], [], [], 60)[0]


def test_pending_operations_are_reported(tmp_path: Path) -> None:
    stack = Stack(tmp_path, PROGRAM)
    assert up(stack, 1, "2:after") == -signal.SIGKILL
    stack.backend.cancel("conf", "dev")
    outcome = stack.run("preview", env={"STEP": "1"})
    assert any("::b, interrupted while creating" in message for message in outcome.messages)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_run_finishes_steps_and_starts_none(tmp_path: Path, number: signal.Signals) -> None:
    stack = Stack(
        tmp_path,
        """
import os, signal
import pulumi
from filestore import File
a = File("a", "a.json", "one")
a.etag.apply(lambda _: os.kill(int(os.environ["ENGINE"]), int(os.environ["SIGNAL"])))
def wait(_):
    import threading
    threading.Event().wait()
b = File("b", "b.json", a.etag.apply(wait))
""",
    )
    done = stack.run_up(SIGNAL=str(int(number)))
    assert done.returncode == 1
    assert list((stack.backend.storage.root / "locks").rglob("*.json")) == []
    assert list(stack.files()) == ["a.json"]
    assert stack.resource("a").id == "a.json"
    assert stack.list_pending_operations() == []
