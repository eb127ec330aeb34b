"""Signals, and deaths of either end, affect a command in the warm process as they affect a cold command."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

ENDLESS = """
import os
import threading
from filestore import File
a = File("a", "a.json", "one")
def wait(_):
    with open(os.environ["GATE"], "w") as gate:
        gate.write("a is there")
    threading.Event().wait()
File("b", "b.json", a.etag.apply(wait))
"""
ONE_BY_ONE = """
import os
from filestore import File
a = File("a", "a.json", "one")
def wait(etag):
    with open(os.environ["GATE"], "w") as gate:
        gate.write("a is there")
    with open(os.environ["GATE"]) as gate:
        gate.read()
    return etag
File("b", "b.json", a.etag.apply(wait))
"""
BLOCKED = """
import os
import sys
from barrierstore import File
sys.gate = open(os.environ["GATE"], "w")  # open for as long as the process lives
File("a", "a.json", "one")
"""
WARM = pytest.mark.parametrize("switch", ["0", "1"], ids=["cold", "warm"])


@pytest.fixture
def gate(commands: Any) -> Path:
    """A pipe on which a program reports."""
    file: Path = commands.stack.folder / "gate"
    os.mkfifo(file)
    commands.environment["GATE"] = str(file)
    return file


@pytest.mark.timeout(90)
@WARM
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, marks=pytest.mark.long),
    ],
)
def test_first_signal_ends_the_run_in_order(commands: Any, gate: Path, switch: str, number: signal.Signals) -> None:
    if switch == "1":
        commands.warm_up()
    commands.stack.write_program(ENDLESS)
    running = commands.start("up", "--yes", LAKEWRIGHT_WARM=switch)
    assert gate.read_text() == "a is there"

    running.send_signal(number)
    _, errors = running.communicate()

    assert running.returncode == 1
    assert "the operation was interrupted" in errors
    assert "  1 step(s) remain:\n    create b (pulumi-python:dynamic/store:File)\n" in errors
    assert errors.rstrip().endswith("Continue with: lakewright up --stack dev")
    assert not list((commands.stack.backend.storage.root / "locks").rglob("*.json"))
    assert commands.stack.resource("a").id == "a.json"
    assert commands.stack.list_pending_operations() == []


@pytest.mark.timeout(90)
@WARM
def test_second_interrupt_ends_the_run_at_once(commands: Any, gate: Path, switch: str) -> None:
    if switch == "1":
        commands.warm_up()
    commands.stack.write_program(BLOCKED)
    running = commands.start("up", "--yes", LAKEWRIGHT_WARM=switch, TOGETHER="2")
    with gate.open() as program:
        commands.wait_until(lambda: commands.stack.list_pending_operations() != [])
        running.send_signal(signal.SIGINT)
        program.read()  # the first interrupt ends the program

    running.send_signal(signal.SIGINT)
    _, errors = running.communicate()

    assert running.returncode == 130
    assert "Traceback" not in errors
    assert "1 operation(s) with an unknown result are recorded" in errors
    assert [pending.type for pending in commands.stack.list_pending_operations()] == ["creating"]


@pytest.mark.timeout(90)
@pytest.mark.long
def test_run_outlives_the_process_that_forked_it(commands: Any, gate: Path, ended: Any) -> None:
    process = commands.warm_up()
    commands.stack.write_program(ONE_BY_ONE)
    running = commands.start("up", "--yes")
    assert gate.read_text() == "a is there"

    os.kill(process, signal.SIGKILL)
    assert ended(process)
    gate.write_text("go on")
    output, errors = running.communicate()

    assert running.returncode == 0, output + errors
    assert sorted(commands.stack.files()) == ["a.json", "b.json"]
    assert commands.process() is None


@pytest.mark.timeout(90)
@WARM
def test_killed_command_takes_its_run_along(commands: Any, gate: Path, switch: str) -> None:
    if switch == "1":
        commands.warm_up()
    commands.stack.write_program(ENDLESS)
    running = commands.start("up", "--yes", LAKEWRIGHT_WARM=switch)
    assert gate.read_text() == "a is there"

    running.kill()
    running.communicate()

    # The next run takes the lock of a holder that is dead over.
    commands.stack.write_program("")
    commands.wait_until(lambda: commands.start("up", "--yes", LAKEWRIGHT_WARM=switch).wait() == 0)


@pytest.mark.timeout(90)
@pytest.mark.long
def test_killed_run_ends_its_command_by_the_same_signal(commands: Any, gate: Path) -> None:
    process = commands.warm_up()
    commands.stack.write_program(ENDLESS)
    running = commands.start("up", "--yes")
    assert gate.read_text() == "a is there"

    (child,) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    running.communicate()

    assert running.returncode == -signal.SIGKILL
    assert commands.process() == process
