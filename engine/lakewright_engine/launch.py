"""Starts child processes that cannot outlive the engine: the program and the providers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lakewright_engine.errors import ProviderError

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
_MODULE = (
    _DIE_WITH_PARENT
    + """
import runpy
if os.environ.get("LAKEWRIGHT_DEBUG", "") in ("", "0"):
    sys.tracebacklimit = 0
sys.argv = sys.argv[2:]
sys.path.insert(0, os.getcwd())
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
)
_SCRIPT = (
    _DIE_WITH_PARENT
    + """
import runpy
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
)

# Linux ends a child when the *thread* that started it ends, so one thread that lives as long as the engine starts all.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")

Line = Callable[[str, bool], None]
"""Receives a line of output, and whether it came from standard error."""


class Child:
    """A process of its own group, with its output read line by line."""

    def __init__(self, command: list[str], cwd: Path, env: Mapping[str, str], on_line: Line, name: str) -> None:
        self._on_line = on_line
        self.name = name
        self.process: subprocess.Popen[str] = _starter.submit(self._start, command, cwd, dict(env)).result()
        self._readers = [
            threading.Thread(target=self._read, args=(error,), daemon=True, name=f"{name}-output")
            for error in (False, True)
        ]

    @staticmethod
    def _start(command: list[str], cwd: Path, env: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def read_port(self) -> int:
        """The port that a plugin prints on its first line; raises ProviderError if it ends before."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line.isdigit():
            _, errors = self.process.communicate()
            raise ProviderError(f"{self.name} did not start: {(line + ' ' + errors).strip() or 'no output'}")
        self.read_output()
        return int(line)

    def read_output(self) -> None:
        for reader in self._readers:
            reader.start()

    def _read(self, error: bool) -> None:
        stream = self.process.stderr if error else self.process.stdout
        assert stream is not None
        for line in stream:
            self._on_line(line.rstrip("\n"), error)

    def wait(self) -> int:
        """Waits for the end and for the last line of output; the exit code."""
        code = self.process.wait()
        for reader in self._readers:
            if reader.ident is not None:
                reader.join()
        return code

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Ends the whole group at once."""
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: int) -> None:
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                return


def module_command(python: str, module: str, *arguments: str) -> list[str]:
    """Runs `python -m module`, bound to this process; errors of expected kinds show as one line without a traceback."""
    return [python, "-c", _MODULE, str(os.getpid()), module, *arguments]


def script_command(python: str, script: Path, *arguments: str) -> list[str]:
    return [python, "-c", _SCRIPT, str(os.getpid()), str(script), *arguments]


def binary_command(binary: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", _EXEC, str(os.getpid()), str(binary), *arguments]
