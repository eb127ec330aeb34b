"""Start the script's process in its own group, pass on its output line by line, and end it in time."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lakewright_spark.iceberg_values import SOCKET_SECONDS

GRACE_SECONDS = 10.0
"""Between asking the script to end and ending it."""

OUTPUT_SECONDS = 4 * SOCKET_SECONDS
"""Limit for passing on the output of a script that has ended. A line may wait for a commit, which has time-outs."""

_POLL_SECONDS = 0.1
_PR_SET_CHILD_SUBREAPER = 36
"""Linux makes this process the parent of orphans among its descendants."""
_END_WITH_PARENT = """
import ctypes, os, signal, sys
try:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
except AttributeError:
    pass  # not Linux
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Program that runs a command as a process which Linux kills when the thread that started it ends."""


class Child:
    """A running script. `line` gets each line that it prints, without its end, on a thread of its own.

    Linux kills the script when the thread that started it ends, also if this process is killed. That thread has to live
    until `end` returns.
    """

    def __init__(
        self, script: Path, arguments: Sequence[str], environment: Mapping[str, str], line: Callable[[str], None]
    ) -> None:
        """Start the script. `line` gets each line of its output."""
        command = [sys.executable, "-u", "-m", "lakewright_spark.run.script", str(script), *arguments]
        _set_child_subreaper(1)
        # The process has its own group, so the JVM that it starts ends with it.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _END_WITH_PARENT, str(os.getpid()), *command],
            env={**environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._pass_on, args=(line,), daemon=True)
        self._reader.start()

    def wait(self, seconds: float) -> int | None:
        """Return the exit code, or None if the process still runs after this time."""
        try:
            return self._process.wait(max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            return None

    @property
    def is_output_passed_on(self) -> bool:
        """Return whether the script has ended and `line` has got all that it printed."""
        return not self._reader.is_alive()

    def end(self) -> None:
        """Ask it and all that it started to end, end it if it does not, and pass on the rest of its output."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            if self._wait_until_gone(GRACE_SECONDS):
                break
        self._process.wait()
        _set_child_subreaper(0)
        self._reader.join(OUTPUT_SECONDS)

    def _wait_until_gone(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.wait(_POLL_SECONDS) is not None:
                if not self._group_lives():
                    return True
                time.sleep(_POLL_SECONDS)
        return False

    def _group_lives(self) -> bool:
        """Return whether a process of the group runs, after `wait` has returned the exit code of the script itself.

        The script's JVM may end after the script. It counts as running until it is reaped, which process 1 of a
        container may never do.
        """
        with suppress(ChildProcessError):
            while os.waitpid(-self._process.pid, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _pass_on(self, line: Callable[[str], None]) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line(text.rstrip("\n"))


def _set_child_subreaper(value: int) -> None:
    with suppress(AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, value)
