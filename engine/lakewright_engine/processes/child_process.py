"""Child processes that end with the engine (the program and the providers), and the reasons of their ends."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Protocol

from lakewright_engine.model.errors import ProviderError

_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
try:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
except AttributeError:
    pass  # not Linux: an engine that ends in an orderly way still ends its children
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
"""
_EXEC = _DIE_WITH_PARENT + "os.execvp(sys.argv[2], sys.argv[2:])"

# Linux ends a child when the *thread* that started it ends, so one thread of the engine's lifetime starts all of them.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")

START_SECONDS = 120
"""Seconds that a plugin may take to print its port."""

_END_SECONDS = 2
"""Seconds that a plugin may take to exit after it broke off a call."""

_DRAIN_SECONDS = 5
"""Seconds to read the output of a process that has ended: a process that it started may keep the pipe open."""

_GO_CRASH = re.compile(r"^(?:panic|fatal error): (?P<reason>.+)")
_GO_NESTED = re.compile(r"(?: \[recovered(?:, repanicked)?\])+$")
_PYTHON_TRACEBACK = "Traceback (most recent call last):"

_TAIL_LINES = 1000
"""The number of last lines of a plugin's standard error that are searched for the reason of its end."""


class LineHandler(Protocol):
    """Receives a line of output."""

    def __call__(self, line: str, *, error: bool) -> None:
        """Handle a line; `error` is whether it is from standard error."""
        ...


def start_process(
    command: list[str], cwd: Path, env: Mapping[str, str], keep: tuple[int, ...] = ()
) -> subprocess.Popen[str]:
    """Start a process in its own process group with piped output. It inherits the descriptors in `keep`."""

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
    """A process in its own process group, with output that is read line by line."""

    pid: int

    def __init__(self, output: tuple[IO[str], IO[str]], on_line: LineHandler, name: str) -> None:
        """Watch a process by its output pipes; `name` is its name in messages."""
        self._out, self._error = output
        self._on_line = on_line
        self._name = name
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._buffered: list[tuple[str, bool]] | None = None
        self._buffer_lock = threading.Lock()
        self._readers = [
            threading.Thread(target=self._read, args=(stream,), daemon=True, name=f"{name}-output") for stream in output
        ]

    @abstractmethod
    def exit_code(self, *, within: float | None) -> int | None:
        """Return the exit code (minus the signal's number for a signal); None while the process runs.

        Args:
            within: Seconds to wait for the end; None waits without a limit.
        """

    def read_port(self) -> int:
        """Return the port that a plugin prints on its first line.

        Raises:
            ProviderError: The plugin ends or prints nothing.
        """
        # A plugin that prints much before its port must not fill the pipe. Its lines are printed once it has started:
        # if it does not start, they are in the error.
        self._buffered = []
        out, error = self._readers
        error.start()
        if not select.select([self._out], [], [], START_SECONDS)[0]:
            self.kill()
            raise ProviderError(f"{self._name} did not start: it printed no port for {START_SECONDS} s")
        line = self._out.readline().strip()
        if not line.isdigit():
            self.kill()
            error.join(_DRAIN_SECONDS)
            lines = [line, *self._tail]
            reason = find_crash(lines) or "\n".join(lines).strip() or "no output"
            raise ProviderError(f"{self._name} did not start: {reason}")
        with self._buffer_lock:
            buffered, self._buffered = self._buffered, None
            for buffered_line, error_line in buffered:
                self._on_line(buffered_line, error=error_line)
        out.start()
        return int(line)

    def read_output(self) -> None:
        """Start to read the output."""
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str]) -> None:
        error = stream is self._error
        for ended_line in stream:
            line = ended_line.rstrip("\n")
            with self._buffer_lock:
                if error:
                    self._tail.append(line)
                if self._buffered is not None:
                    self._buffered.append((line, error))
                    continue
            self._on_line(line, error=error)

    def describe_exit(self) -> str:
        """Return one sentence about the end of the process; empty if it still runs."""
        code = self.exit_code(within=_END_SECONDS)
        if code is None:
            return ""
        for reader in self._readers:
            reader.join(_DRAIN_SECONDS)
        return describe_exit(self._name, code, list(self._tail))

    def wait(self) -> int:
        """Wait for the end and for the last line of output. Return the exit code."""
        code = self.exit_code(within=None)
        for reader in self._readers:
            reader.join()
        return code if code is not None else -signal.SIGKILL

    def kill(self) -> None:
        """Kill the process group."""
        if self.exit_code(within=0) is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            self.exit_code(within=None)


class StartedProcess(ChildProcess):
    """A process of a program file: an installed plugin or a provider of the sandbox."""

    def __init__(self, command: list[str], cwd: Path, env: Mapping[str, str], on_line: LineHandler, name: str) -> None:
        """Start the command."""
        self._process = start_process(command, cwd, env)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        super().__init__((self._process.stdout, self._process.stderr), on_line, name)
        self.pid = self._process.pid

    def exit_code(self, *, within: float | None) -> int | None:
        """Return the exit code; None while the process runs."""
        try:
            return self._process.wait(within)
        except subprocess.TimeoutExpired:
            return None


def parent_bound_command(command: list[str]) -> list[str]:
    """Return a command that runs as a process which the system ends with this process."""
    return [sys.executable, "-S", "-E", "-c", _EXEC, str(os.getpid()), *command]


def name_signal(number: int) -> str:
    """Return a signal's name, such as `SIGKILL`; most real-time signals have none, and become `SIG35`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def describe_exit(name: str, code: int, output: Iterable[str]) -> str:
    """Return one sentence about a provider that ended before the engine stopped it.

    Args:
        name: The name of the provider in messages, such as `provider 'aws'`.
        code: Its exit code; minus the signal's number for a signal.
        output: Lines of its standard error, oldest first.
    """
    lines = [line for line in output if line.strip()]
    if code < 0:
        return f"{name}'s process was ended by signal {-code} ({name_signal(-code)})"
    if reason := find_crash(lines):
        return f"{name} crashed: {reason} (exit code {code})"
    last = f", after it printed: {lines[-1].strip()}" if lines else ""
    return f"{name}'s process ended with exit code {code} before the engine was done with it{last}"


def find_crash(lines: list[str]) -> str:
    """Return the reason in a Go panic or a Python traceback; empty if there is neither."""
    for line in lines:
        if match := _GO_CRASH.match(line):
            return _GO_NESTED.sub("", match["reason"].strip())
    if _PYTHON_TRACEBACK in lines:
        after = lines[lines.index(_PYTHON_TRACEBACK) + 1 :]
        return next((line for line in after if not line.startswith(" ")), "")
    return ""
