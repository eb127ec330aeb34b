"""Start the fork servers of runs in tests as forks of one process per worker that has imported Pulumi's SDK.

The engine imports the SDK once for each run, for a third of a second, and the tests of the engine start hundreds of
runs. The process of this module is the engine's fork server before its first request. `make test-all` starts a process
for each run.
"""

from __future__ import annotations

import atexit
import functools
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakewright_engine.processes import forkserver_host
from lakewright_engine.processes.forkserver import preloaded

from tests.command_server import OWN_PROCESSES

_SCRIPT = Path(__file__).with_name("sdk_process_script.py")
_READ_BY_THE_INTERPRETER = ("PYTHON", "LC_", "LD_", "LANG", "TZ", "GRPC_", "PULUMI_PYTHON")


@contextmanager
def use_sdk_process() -> Iterator[None]:
    """Let runs of the engine in this context start their fork servers from the worker's process."""
    if os.environ.get(OWN_PROCESSES):
        yield
        return
    read_variables = {
        name: os.environ[name] for name in sorted(os.environ) if name.startswith(_READ_BY_THE_INTERPRETER)
    }
    token = preloaded.set(_start_process(tuple(read_variables.items())))
    try:
        yield
    finally:
        preloaded.reset(token)


class SdkProcess:
    """A process that has imported the SDK, with the environment variables that an interpreter reads at its start."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-u", str(_SCRIPT), str(theirs.fileno()), str(forkserver_host.__file__)]
        with theirs:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        self._requests = ours
        self._lock = threading.Lock()

    def start_server(self, ours: socket.socket, theirs: socket.socket, folder: Path) -> RemoteServer:
        """Fork a server that serves the socket `theirs`."""
        error_read, error_write = os.pipe()
        with self._lock:
            try:
                socket.send_fds(self._requests, [b"fork\n"], [theirs.fileno(), error_write])
            finally:
                os.close(error_write)
            pid = int(self._requests.recv(100))
        return RemoteServer(pid, error_read)

    def stop(self) -> None:
        self._requests.close()
        self._process.wait(10)


class RemoteServer:
    """A fork server that is no child of this process."""

    def __init__(self, pid: int, error: int) -> None:
        self._process = os.pidfd_open(pid)
        self.stderr = os.fdopen(error, errors="replace")

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def wait(self) -> int:
        select.select([self._process], [], [])
        os.close(self._process)
        return 0


@functools.cache
def _start_process(_variables: tuple[tuple[str, str], ...]) -> SdkProcess:
    process = SdkProcess()
    atexit.register(process.stop)
    return process
