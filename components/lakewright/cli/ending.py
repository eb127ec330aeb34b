"""Pass a request to end on to the Pulumi CLI, which then ends its run in order, as it does after Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def passed_to_children() -> Generator[None]:
    """Send a SIGTERM to the children of this process for each SIGTERM or SIGHUP that it gets, and go on.

    The CLI finishes the steps under way, saves the state and releases its lock; a second one ends it at once. Ctrl-C
    needs no passing on: a terminal sends it to the CLI, too. A SIGHUP that is ignored, as under `nohup`, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in _SIGNALS}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]
    for number in before:
        signal.signal(number, _pass_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pass_on(_number: int, _frame: object) -> None:
    for pid in list(_children(os.getpid())):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def _children(parent: int) -> Iterator[int]:
    if Path("/proc/self/stat").exists():
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                # The fourth field of stat is the parent; the name before it may hold spaces and brackets.
                if int((entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]) == parent:
                    yield int(entry.name)
        return
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        pid, ppid = line.split()
        if int(ppid) == parent:
            yield int(pid)
