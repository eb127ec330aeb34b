"""The warm process: `python -P -m lakewright.warm.process BASE ROOT ENTRY`. It waits, and forks a child per command.

A command's environment, words and open files reach only the child, so nothing of a caller remains here. It ends after
some idle time, when a file that it imported changed, and when its socket or the project is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from lakewright.warm.address import IDLE, Address
from lakewright.warm.freshness import Freshness
from lakewright.warm.messages import read_peer_user, send
from lakewright.warm.operation import run_operation
from lakewright.warm.preload import FIRST, ImportReports, Preloader, is_single_threaded, read_names, write_names

IDLE_SECONDS = 900
MAX_PROCESSES = 4
"""Warm processes of one user. The least recently used process ends when there are more."""

_TICK_SECONDS = 2
_QUIET_SECONDS = 0.3
"""Pause after a command before its modules are imported here, in seconds: the next command may follow at once."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class WarmProcess:
    """Listens for commands of one user in one project."""

    def __init__(self, address: Address, entry: str, lock: int) -> None:
        """Prepare to serve.

        Args:
            address: Where to listen.
            entry: The function that runs a command, `module:name`.
            lock: Descriptor of the lock file that keeps a second process away.
        """
        self._address = address
        self._entry = entry
        self._lock = lock
        self._idle_seconds = float(os.environ.get(IDLE) or IDLE_SECONDS)
        self._path = [*sys.path]
        self._variables = dict(os.environ)
        self._freshness = Freshness(time.time())
        self._preloader = Preloader()
        self._learned = dict.fromkeys(read_names(Path(address.modules)))
        self._to_import: list[str] = []
        self._children: dict[int, tuple[int, socket.socket]] = {}
        """Descriptor of a connection -> process that serves it, and the connection."""
        self._killed: set[int] = set()
        """Descriptors that the command has closed. A signal reports the end of their processes."""
        self._last_used = time.monotonic()
        self._end = ""
        """Why it ends; empty while it continues."""

    def serve(self) -> None:
        """Import everything, then serve commands until there is a reason to end."""
        for name in (*FIRST, *self._learned):
            self._preloader.load(name)
        self._settle()
        self._reports, reports = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        finders: list[Any] = sys.meta_path
        finders.insert(0, ImportReports(reports))
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in _SIGNALS:
            signal.signal(number, self._end_by_signal)
        self._listener = _listen(self._address.socket)
        socket_inode = _read_inode(self._address.socket)
        _end_surplus(Path(self._address.socket))
        print(f"ready with {len(sys.modules)} modules", flush=True)
        while not self._end:
            self._handle_events()
            if not self._end and _read_inode(self._address.socket) != socket_inode:
                self._end = "its socket was removed"
        self._listener.close()
        if _read_inode(self._address.socket) == socket_inode:
            Path(self._address.socket).unlink(missing_ok=True)
        print(f"ended: {self._end}", flush=True)
        while self._children:
            self._handle_events()

    def _handle_events(self) -> None:
        """Wait until something happens, and handle it."""
        poll = select.poll()
        poll.register(self._reports, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        if not self._end:
            poll.register(self._listener, select.POLLIN)
        for descriptor in self._children.keys() - self._killed:
            poll.register(descriptor, 0)  # hanging up is always reported
        is_learning = bool(self._to_import) and not self._children
        events = dict(poll.poll((_QUIET_SECONDS if is_learning else _TICK_SECONDS) * 1000))
        if self._woken in events:
            os.read(self._woken, 4096)
        self._reap()
        for descriptor in events.keys() & self._children.keys():
            # The command was killed, and so is what runs for it.
            os.kill(self._children[descriptor][0], signal.SIGKILL)
            self._killed.add(descriptor)
        if self._reports in events:
            self._to_import += os.read(self._reports, 65536).decode(errors="replace").split()
        if self._end:
            return
        if self._listener.fileno() in events:
            self._accept()
        elif not events and is_learning:
            self._learn()
        elif not events and not self._children:
            self._end = self._find_end_reason()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            if read_peer_user(connection) != os.geteuid():
                return
            self._last_used = time.monotonic()
            if change := self._freshness.find_change():
                self._end = f"{change} changed"
                with contextlib.suppress(OSError):
                    send(connection, {"ends": self._end})
                return
            with contextlib.suppress(OSError):  # the surplus of another project's process
                os.utime(self._address.socket)
            self._fork(connection)

    def _fork(self, connection: socket.socket) -> None:
        # A signal for the child waits until the child has the caller's way to handle it.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self._become_operation(connection)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        duplicate = connection.dup()
        self._children[duplicate.fileno()] = pid, duplicate

    def _become_operation(self, connection: socket.socket) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (self._reports, self._woken, self._wake, self._lock):
                os.close(descriptor)
            self._listener.close()
            for _, other in self._children.values():
                other.close()
            variables = {name: self._variables.get(name) for name in self._preloader.variables}
            run_operation(connection, variables, self._entry, self._path)
        except BaseException:  # noqa: BLE001 - the end of a process: the error is in the log
            traceback.print_exc()
        finally:
            os._exit(1)

    def _reap(self) -> None:
        """Forget children that have ended. A killed child could not report its end to its caller."""
        for descriptor, (pid, connection) in [*self._children.items()]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            if os.WIFSIGNALED(status):
                with contextlib.suppress(OSError):
                    send(connection, {"signal": os.WTERMSIG(status)})
            connection.close()
            del self._children[descriptor]
            self._killed.discard(descriptor)
            self._last_used = time.monotonic()

    def _learn(self) -> None:
        """Import modules that commands have imported, for at most `_QUIET_SECONDS`, so that a command hardly waits."""
        deadline = time.monotonic() + _QUIET_SECONDS
        while self._to_import and time.monotonic() < deadline:
            name = self._to_import.pop(0)
            if self._preloader.load(name):
                self._learned[name] = None
        if not self._to_import:
            write_names(Path(self._address.modules), self._learned)
            self._settle()

    def _settle(self) -> None:
        """Note the files of new modules, and keep them out of garbage collections: children share their memory."""
        if "boto3" in sys.modules:
            self._preload_service_models()
        self._freshness.stamp_imports()
        gc.collect()
        gc.freeze()
        if not is_single_threaded():
            self._end = "an imported module started a thread"

    def _preload_service_models(self) -> None:
        from lakewright.credentials.aws_session import preload_service_models  # noqa: PLC0415 - slow to load

        try:
            preload_service_models()
        except Exception as error:  # noqa: BLE001 - the command that needs them reports it
            print(f"the descriptions of AWS services are not loaded ahead: {error}", flush=True)

    def _find_end_reason(self) -> str:
        if time.monotonic() - self._last_used > self._idle_seconds:
            return "no command came"
        if not Path(self._address.root).is_dir():
            return "the project was removed"
        return ""

    def _end_by_signal(self, number: int, _frame: object) -> None:
        self._end = signal.Signals(number).name


def _listen(file: str) -> socket.socket:
    unready = Path(f"{file}.new")  # a client that finds the socket can connect
    unready.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(unready))
    listener.listen(64)
    listener.settimeout(0)
    unready.replace(file)
    return listener


def _read_inode(file: str) -> int:
    try:
        return os.stat(file).st_ino  # noqa: PTH116
    except OSError:
        return -1


def _end_surplus(own_socket: Path) -> None:
    """Remove the least recently used sockets, which ends their processes."""
    sockets: list[tuple[float, Path]] = []
    for file in own_socket.parent.glob("*.socket"):
        with contextlib.suppress(OSError):
            sockets.append((file.stat().st_mtime, file))
    for _, file in sorted(sockets, reverse=True)[MAX_PROCESSES:]:
        if file != own_socket:
            file.unlink(missing_ok=True)


def main() -> None:
    """Serve, unless another process already serves at this address."""
    base, root, entry = sys.argv[1:]
    address = Address(*os.path.split(base), root)
    lock = os.open(address.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    os.umask(0o077)
    os.truncate(address.log, 0)
    WarmProcess(address, entry, lock).serve()


if __name__ == "__main__":
    main()
