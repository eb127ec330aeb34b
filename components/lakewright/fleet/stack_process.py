"""The process of an operation on one stack: `python -m lakewright.cli VERB --stack NAME --json`.

Its own session keeps the signals of the terminal away from it; the fleet passes them on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lakewright_engine.processes.process_identity import identity

from lakewright.fleet.selection import SelectedStack

_POLL_SECONDS = 0.2

OnEnd = Callable[[int | None], None]
"""Takes the exit code of a process; None for a process of an earlier run, whose exit code is lost."""


class RunningStack(Protocol):
    """A process that runs an operation on a stack."""

    stack: SelectedStack
    started: float
    """Monotonic time of the start, in seconds."""

    @property
    def pid(self) -> int:
        """Id of the process."""
        ...

    def stop(self, number: signal.Signals) -> None:
        """Send a signal."""
        ...


@dataclass
class StackProcess:
    """A process that this process started."""

    stack: SelectedStack
    started: float
    _process: subprocess.Popen[bytes]

    @classmethod
    def start(
        cls,
        stack: SelectedStack,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        files: tuple[Path, Path],
        on_end: OnEnd,
    ) -> StackProcess:
        """Start a command on a stack, and call `on_end` on another thread when it ends.

        Args:
            stack: The stack.
            arguments: The command and its options.
            environ: Environment variables.
            files: Files for standard output and standard error.
            on_end: Takes the exit code.
        """
        command = [sys.executable, "-P", "-m", "lakewright.cli", *arguments, "--stack", stack.name, "--json"]
        opened = [os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600) for file in files]
        try:
            process = subprocess.Popen(
                command,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=opened[0],
                stderr=opened[1],
                start_new_session=True,
            )
        finally:
            for descriptor in opened:
                os.close(descriptor)
        threading.Thread(target=lambda: on_end(process.wait()), name=stack.name, daemon=True).start()
        return cls(stack, time.monotonic(), process)

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    def stop(self, number: signal.Signals) -> None:
        """Send a signal; with SIGKILL also to the processes that it started."""
        with suppress(ProcessLookupError):
            if number is signal.SIGKILL:
                os.killpg(self._process.pid, number)
            else:
                self._process.send_signal(number)


@dataclass
class EarlierProcess:
    """A process that a killed run left behind. It finishes its operation."""

    stack: SelectedStack
    started: float
    pid: int

    @classmethod
    def watch(cls, stack: SelectedStack, pid: int, process: Mapping[str, str], on_end: OnEnd) -> EarlierProcess | None:
        """Call `on_end` when the process ends. Return None if it has ended before."""
        if not process or identity(pid) != process:
            return None

        def wait() -> None:
            while identity(pid) == process:
                time.sleep(_POLL_SECONDS)
            on_end(None)

        threading.Thread(target=wait, name=stack.name, daemon=True).start()
        return cls(stack, time.monotonic(), pid)

    def stop(self, number: signal.Signals) -> None:
        """Send a signal."""
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, number)
