"""A run ends in an orderly way when its terminal or the reader of its output is closed."""

from __future__ import annotations

import os
import pty
import signal
import sys
from pathlib import Path

import pytest
from stackrunner import Stack

PROGRAM = """
import threading
import pulumi
from filestore import File
a = File("a", "a.json", "one")
def wait(_):
    print("a is there", flush=True)
    threading.Event().wait()
File("b", "b.json", a.etag.apply(wait))
"""
RUN = """
import signal
import sys
from lakewright_engine import Operation, run
from lakewright_engine.display.lines import Display
from lakewright_engine.project.project import PulumiProject
from rich.console import Console
# The tests themselves may run under nohup, or in the background, which leave signals ignored.
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[2] == "nohup" else signal.SIG_DFL)
with Display(Console(soft_wrap=True), "up", "dev", dry=False, diff=False) as display:
    result = run(Operation("up", PulumiProject.load(sys.argv[1]), "dev"), display)
"""


def start(stack: Stack, *arguments: str) -> tuple[int, int]:
    """Start a run on a new terminal. When it has created `a`, return the process and this end of the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-c", RUN, str(stack.program_dir), *arguments]
        os.execve(sys.executable, command, {**os.environ, **stack.environment})
    output = b""
    while b"a is there" not in output:
        output += os.read(terminal, 4096)
    return pid, terminal


@pytest.mark.timeout(120)
def test_closed_terminal_ends_the_run_in_order(tmp_path: Path) -> None:
    stack = Stack(tmp_path, PROGRAM)
    pid, terminal = start(stack, "")

    os.close(terminal)
    _, status = os.waitpid(pid, 0)

    assert not os.WIFSIGNALED(status)
    assert stack.resource("a").id == "a.json"
    assert stack.list_pending_operations() == []
    assert list((stack.backend.storage.root / "locks").rglob("*.json")) == []


@pytest.mark.timeout(120)
def test_run_under_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    stack = Stack(tmp_path, PROGRAM.replace("threading.Event().wait()", f"return open({str(gate)!r}).read()"))
    pid, terminal = start(stack, "nohup")

    os.close(terminal)
    gate.write_text("two")
    _, status = os.waitpid(pid, 0)

    assert not os.WIFSIGNALED(status), signal.Signals(os.WTERMSIG(status))
    assert sorted(stack.files()) == ["a.json", "b.json"]
