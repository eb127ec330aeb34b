"""Child processes that cannot outlive the engine: the program and the providers."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from lakewright_engine.model.errors import ProviderError
from lakewright_engine.processes.crashes import describe_exit, find_crash

_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
try:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
except AttributeError:
    pass  # not Linux: the engine still ends its children when it ends in an orderly way
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
"""
_EXEC = _DIE_WITH_PARENT + "os.execvp(sys.argv[2], sys.argv[2:])"

# Linux ends a child when the *thread* that started it ends, so one thread that lives as long as the engine starts all.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")

START_SECONDS = 120
"""How long a plugin may take until it says its port, in seconds."""

_END_SECONDS = 2
"""How long a plugin that broke a call off may take to end, in seconds."""

_DRAIN_SECONDS = 5
"""How long the output of an ended process is read, in seconds: a process that it started may keep the pipe open."""

_TAIL_LINES = 1000
"""How many of the last lines of a plugin's standard error are searched for why it ended."""

Line = Callable[[str, bool], None]
"""Receives a line of output, and whether it came from standard error."""


def popen(command: list[str], cwd: Path, env: Mapping[str, str], keep: tuple[int, ...] = ()) -> subprocess.Popen[str]:
    """Starts a process in a group of its own, its output piped; it inherits the descriptors in `keep`."""

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=keep,
        )

    return _starter.submit(start).result()


class ChildProcess(ABC):
    """A process of its own group, with its output read line by line."""

    pid: int

    def __init__(self, output: tuple[IO[str], IO[str]], on_line: Line, name: str) -> None:
        self._out, self._error = output
        self._on_line = on_line
        self._name = name
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._held: list[tuple[str, bool]] | None = None
        self._holding = threading.Lock()
        self._readers = [
            threading.Thread(
                target=self._read, args=(stream, stream is self._error), daemon=True, name=f"{name}-output"
            )
            for stream in output
        ]

    @abstractmethod
    def exit_code(self, *, within: float | None) -> int | None:
        """Return how it ended (minus the signal's number for a signal); None while it runs.

        Args:
            within: Seconds to wait for its end; None waits without a limit.
        """

    def read_port(self) -> int:
        """Return the port that a plugin prints on its first line.

        Raises:
            ProviderError: it ends or says nothing instead.
        """
        # A plugin that prints much before its port must not fill the pipe. Its lines are shown once it has started:
        # of one that does not, they are in the error.
        self._held = []
        out, error = self._readers
        error.start()
        if not select.select([self._out], [], [], START_SECONDS)[0]:
            self.kill()
            raise ProviderError(f"{self._name} did not start: it has printed no port for {START_SECONDS} s")
        line = self._out.readline().strip()
        if not line.isdigit():
            self.kill()
            error.join(_DRAIN_SECONDS)
            lines = [line, *self._tail]
            reason = find_crash(lines) or "\n".join(lines).strip() or "no output"
            raise ProviderError(f"{self._name} did not start: {reason}")
        with self._holding:
            held, self._held = self._held, None
            for one in held:
                self._on_line(*one)
        out.start()
        return int(line)

    def read_output(self) -> None:
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str], error: bool) -> None:
        for ended_line in stream:
            line = ended_line.rstrip("\n")
            with self._holding:
                if error:
                    self._tail.append(line)
                if self._held is not None:
                    self._held.append((line, error))
                    continue
            self._on_line(line, error)

    def describe_exit(self) -> str:
        """Return one sentence about how it ended; empty if it is still running."""
        code = self.exit_code(within=_END_SECONDS)
        if code is None:
            return ""
        for reader in self._readers:
            reader.join(_DRAIN_SECONDS)
        return describe_exit(self._name, code, list(self._tail))

    def wait(self) -> int:
        """Waits for the end and for the last line of output; the exit code."""
        code = self.exit_code(within=None)
        for reader in self._readers:
            reader.join()
        return code if code is not None else -signal.SIGKILL

    def kill(self) -> None:
        """Ends the whole group at once."""
        if self.exit_code(within=0) is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            self.exit_code(within=None)


class StartedProcess(ChildProcess):
    """A program file of its own: an installed plugin, a sandbox's provider."""

    def __init__(self, command: list[str], cwd: Path, env: Mapping[str, str], on_line: Line, name: str) -> None:
        self._process = popen(command, cwd, env)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        super().__init__((self._process.stdout, self._process.stderr), on_line, name)
        self.pid = self._process.pid

    def exit_code(self, *, within: float | None) -> int | None:
        try:
            return self._process.wait(within)
        except subprocess.TimeoutExpired:
            return None


def parent_bound_command(command: list[str]) -> list[str]:
    """The command as a process that the system ends with this one."""
    return [sys.executable, "-S", "-E", "-c", _EXEC, str(os.getpid()), *command]
