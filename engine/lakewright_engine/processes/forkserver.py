"""Start the program and dynamic providers as forks of a process that has imported the SDK.

Importing the SDK takes half a second. A fork server, started first, imports it once and in parallel with the
engine's own imports, instead of once for the program and once for each provider.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, Self, TextIO

from lakewright_engine.model.errors import ProviderError
from lakewright_engine.processes import forkserver_host
from lakewright_engine.processes.child_process import ChildProcess, LineHandler, start_process

_HOST = Path(__file__).with_name("forkserver_host.py")
_START = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


class ServerProcess(Protocol):
    """The process of a fork server."""

    @property
    def stderr(self) -> IO[str] | None:
        """Return the output of errors."""
        ...

    def kill(self) -> None:
        """Kill the process."""
        ...

    def wait(self) -> int:
        """Wait for the end of the process. Return its exit code or wait status."""
        ...


class ServerStarter(Protocol):
    """Starts fork servers from a process that has imported the SDK."""

    def start_server(self, ours: socket.socket, theirs: socket.socket, folder: Path) -> ServerProcess | None:
        """Start a server on the socket `theirs`; None if a program in `folder` needs a server of its own interpreter.

        Args:
            ours: The engine's end of the socket, which the server must close.
            theirs: The end of the server.
            folder: The program's working directory.
        """
        ...


@dataclass(frozen=True)
class Preloaded:
    """A single-threaded process that has imported the SDK and can fork the server."""

    path: list[str]
    """`sys.path` of an interpreter without a script."""
    own_descriptors: tuple[int, ...]
    """File descriptors that the server must close."""

    def start_server(self, ours: socket.socket, theirs: socket.socket, folder: Path) -> ServerProcess | None:
        """Fork a server off this process, unless it has threads or modules of the program's folder."""
        if threading.active_count() > 1 or _has_shadows(folder):
            return None
        return ForkedServer(self, ours, theirs)


preloaded: ContextVar[ServerStarter | None] = ContextVar("preloaded", default=None)
"""Set by a process that has imported the SDK, or that knows such a process."""


class ForkServer:
    """The fork server of a run. `start` may be called from any thread."""

    def __init__(self, python: str, folder: Path) -> None:
        """Start to import the SDK in the background.

        Args:
            python: The interpreter.
            folder: The program's working directory.
        """
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        self._pids: list[int] = []
        self._codes: dict[int, int] = {}
        self._gone = ""
        starter = preloaded.get()
        self.is_own_interpreter = is_own_interpreter(python)
        """Whether the server runs the interpreter of this process, with the same packages."""
        with theirs:
            process = starter.start_server(ours, theirs, folder) if starter and self.is_own_interpreter else None
            if process is None:
                # Unbuffered: forks do not start a new interpreter, and a provider prints its port to a pipe.
                command = [python, "-u", "-c", _START, str(_HOST), str(theirs.fileno()), str(os.getpid())]
                process = start_process(command, Path.cwd(), dict(os.environ), keep=(theirs.fileno(),))
            self._process: ServerProcess = process
        threading.Thread(target=self._listen, daemon=True, name="fork-server").start()

    def __enter__(self) -> Self:
        """Return the fork server."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the server. Its children are ended by their callers."""
        self._process.kill()
        self._process.wait()

    def start(
        self, request: Mapping[str, Any], cwd: Path, env: Mapping[str, str], on_line: LineHandler, name: str
    ) -> ForkedChild:
        """Fork a child that runs `request["module"]` or `request["script"]` with `request["arguments"]`."""
        out_read, out_write = os.pipe()
        error_read, error_write = os.pipe()
        message = json.dumps({**request, "cwd": str(cwd), "env": dict(env)}).encode() + b"\n"
        try:
            with self._lock:
                before = len(self._pids)
                try:
                    sent = socket.send_fds(self._socket, [message], [out_write, error_write])
                    self._socket.sendall(message[sent:])
                except OSError as error:
                    raise ProviderError(f"{name} could not be started: {self._gone or error}") from error
                with self._changed:
                    self._changed.wait_for(lambda: len(self._pids) > before or self._gone)
                    if len(self._pids) == before:
                        raise ProviderError(f"{name} could not be started: {self._gone}")
                    pid = self._pids[-1]
        finally:
            os.close(out_write)
            os.close(error_write)
        out, error = (os.fdopen(descriptor, errors="replace") for descriptor in (out_read, error_read))
        return ForkedChild(self, pid, (out, error), on_line, name)

    def exit_code(self, pid: int, *, within: float | None) -> int | None:
        """Return the exit code of a child, or None while it runs.

        Wait `within` seconds, or without a limit for None.
        """
        with self._changed:
            self._changed.wait_for(lambda: pid in self._codes or self._gone, within)
            return self._codes.get(pid, -9 if self._gone else None)

    def _listen(self) -> None:
        # A server that is killed before it has read a request resets the connection instead of closing it.
        with contextlib.suppress(ConnectionResetError), self._socket.makefile("r") as lines:
            for line in lines:
                message = json.loads(line)
                with self._changed:
                    if "pid" in message:
                        self._pids.append(message["pid"])
                    elif "exited" in message:
                        self._codes[message["exited"]] = message["code"]
                    self._changed.notify_all()
        errors = self._process.stderr.read() if self._process.stderr is not None else ""
        with self._changed:
            self._gone = errors.strip().rsplit("\n", 1)[-1] or "the fork server has ended"
            self._changed.notify_all()


class ForkedServer:
    """A server that is a fork of this process."""

    def __init__(self, preloaded_server: Preloaded, ours: socket.socket, theirs: socket.socket) -> None:
        """Fork the server off this process."""
        parent = os.getpid()
        error_read, error_write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.setsid()
                nothing = os.open(os.devnull, os.O_RDWR)
                for target, source in enumerate((nothing, nothing, error_write)):
                    os.dup2(source, target)
                for descriptor in (nothing, error_read, error_write, ours.fileno(), *preloaded_server.own_descriptors):
                    os.close(descriptor)
                sys.path[:] = preloaded_server.path
                forkserver_host.reopen_output()
                forkserver_host.main(theirs.fileno(), parent)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - the process ends: any error is printed
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(error_write)
        self.stderr = os.fdopen(error_read, errors="replace")

    def kill(self) -> None:
        """Kill the process."""
        os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the end of the process. Return its wait status."""
        return os.waitpid(self._pid, 0)[1]


def is_own_interpreter(python: str) -> bool:
    """Return whether an interpreter is the interpreter of this process, with the same packages."""
    return Path(python).parent.parent.resolve() == Path(sys.prefix).resolve()


def _has_shadows(folder: Path) -> bool:
    """Return whether a program's folder may have modules that are hidden by imported modules of the same name."""
    loaded = {name.partition(".")[0] for name in sys.modules} - {"__main__"}
    try:
        return any(entry.name.partition(".")[0] in loaded for entry in folder.iterdir())
    except OSError:  # the engine reports a folder that is missing or cannot be read
        return True


class ForkedChild(ChildProcess):
    """A child of the fork server."""

    def __init__(
        self, server: ForkServer, pid: int, output: tuple[TextIO, TextIO], on_line: LineHandler, name: str
    ) -> None:
        """Watch a fork of the server by its output pipes."""
        super().__init__(output, on_line, name)
        self._server = server
        self.pid = pid

    def exit_code(self, *, within: float | None) -> int | None:
        """Return the exit code; None while the process runs."""
        return self._server.exit_code(self.pid, within=within)
