"""Locks of a stack in the format of the Pulumi CLI: one JSON file for each process that holds a lock.

With the CLI, a user removes the lock of a killed run. A lock of this engine describes its holder, so that the next run
can find that it is dead and continue.
"""

from __future__ import annotations

import getpass
import glob
import json
import os
import socket
import threading
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from lakewright_engine.model.errors import StackLockedError
from lakewright_engine.processes.process_identity import is_running
from lakewright_engine.state import files, lock_holder

_NAME_PREFIX = "lakewright-"
"""Prefix of lock files of this engine. Such a lock has a heartbeat even if its content is lost."""
_LEFTOVER = ".partial"


@dataclass(frozen=True)
class StackLock:
    """A lock file, a description of its holder, and whether the holder is dead."""

    file: Path
    holder: str
    is_abandoned: bool = False


class HeldLock:
    """A lock that this process holds."""

    def __init__(self, file: Path, descriptor: int, stack: str) -> None:
        """Describe the lock by its open file."""
        self._file = file
        self._descriptor = descriptor
        self._stack = stack

    def verify(self) -> None:
        """Raise StackLockedError if the lock was removed: another process may be changing the stack."""
        self.touch()
        try:
            is_ours = os.path.samestat(self._file.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            is_ours = False
        if not is_ours:
            message = (
                f"the lock on stack '{self._stack}' was removed during this run, by `lakewright stack cancel` or by a "
                "run that found no heartbeat of this one. This run no longer writes to the state. Run `up` again, "
                "which looks up the objects that this run began to create"
            )
            raise StackLockedError(message)

    def touch(self) -> None:
        """Write a heartbeat."""
        with suppress(OSError):  # the file server may be unavailable for a moment
            os.utime(self._descriptor)


def list_locks(folder: Path) -> list[StackLock]:
    """Return the locks of a stack, including those that cannot be read."""
    return [_read(file) for file in sorted(folder.glob("*.json"))] if folder.is_dir() else []


@contextmanager
def hold(folder: Path, stack: str) -> Generator[HeldLock]:
    """Hold the lock on a stack. The lock of a dead process is removed.

    Two processes that lock at the same moment may both be refused, as with the CLI; both never succeed.

    Raises:
        StackLockedError: Another process holds the lock; the message names it.
    """
    _refuse(folder, stack, except_for=None)
    files.make_folder(folder)
    _remove_leftovers(folder, lock_holder.DEAD_AFTER_SECONDS)
    own_file = folder / f"{_NAME_PREFIX}{uuid.uuid4()}.json"
    # Not in the folder of the locks: the CLI counts every file there as a lock.
    partial = folder.parent / f".{folder.name}.{own_file.stem}{_LEFTOVER}"
    with os.fdopen(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        os.fchmod(stream.fileno(), files.mode_of_files(folder))
        content = {
            "pid": os.getpid(),
            "username": _username(),
            "hostname": socket.gethostname(),
            "timestamp": datetime.now().astimezone().isoformat(),
            "lakewright": lock_holder.claim_lock(stream.fileno()),
        }
        stream.write(json.dumps(content, separators=(",", ":")))
        stream.flush()
        os.fsync(stream.fileno())
        partial.replace(own_file)
        files.sync_folder(folder)
        lock = HeldLock(own_file, stream.fileno(), stack)
        try:
            _refuse(folder, stack, except_for=own_file)
            with _heartbeat(lock):
                yield lock
        finally:
            own_file.unlink(missing_ok=True)


def cancel(folder: Path) -> list[StackLock]:
    """Remove all locks of a stack. Return them."""
    locks = list_locks(folder)
    for lock in locks:
        lock.file.unlink(missing_ok=True)
    _remove_leftovers(folder, 0)
    return locks


def _remove_leftovers(folder: Path, seconds: float) -> None:
    """Remove temporary files of killed runs: incomplete locks, and probes of the file server's time.

    Args:
        folder: The folder of the stack's locks.
        seconds: The minimum age of files to remove.
    """
    if not folder.is_dir():
        return
    leftovers = [
        *folder.parent.glob(f".{glob.escape(folder.name)}.{_NAME_PREFIX}*{_LEFTOVER}"),
        *folder.parent.glob(f"{lock_holder.PROBE_PREFIX}*"),
        *folder.glob(f"*{_LEFTOVER}"),
        *folder.glob(f"{lock_holder.PROBE_PREFIX}*"),
    ]
    now = lock_holder.file_server_time(folder.parent) if leftovers else 0
    for leftover in leftovers:
        with suppress(FileNotFoundError):
            if now - leftover.stat().st_mtime >= seconds:
                leftover.unlink()


@contextmanager
def _heartbeat(lock: HeldLock) -> Generator[None]:
    released = threading.Event()

    def beat() -> None:
        while not released.wait(lock_holder.HEARTBEAT_SECONDS):
            lock.touch()

    thread = threading.Thread(target=beat, daemon=True, name="lock-heartbeat")
    thread.start()
    try:
        yield
    finally:
        released.set()
        thread.join()


def _refuse(folder: Path, stack: str, except_for: Path | None) -> None:
    locks = [lock for lock in list_locks(folder) if lock.file != except_for]
    for lock in locks:
        if lock.is_abandoned:
            lock.file.unlink(missing_ok=True)
    locks = [lock for lock in locks if not lock.is_abandoned]
    if locks:
        holders = "".join(f"\n  {lock.file}: {lock.holder}" for lock in locks)
        message = (
            f"the stack '{stack}' is locked by {len(locks)} other process(es). Wait for them to finish. If they no "
            f"longer run, remove the locks with `lakewright stack cancel --stack {stack}`:{holders}"
        )
        raise StackLockedError(message)


def _read(file: Path) -> StackLock:
    try:
        content = cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))
        pid, host = content["pid"], content["hostname"]
        text = f"created by {content['username']}@{host} (pid {pid}) at {content['timestamp']}"
        status = lock_holder.check_holder(file, pid, host, content.get("lakewright"))
    except FileNotFoundError:
        return StackLock(file, "just released")
    except (OSError, ValueError, KeyError, TypeError):
        return _unreadable(file)
    if "lakewright" not in content and host == socket.gethostname() and not is_running(pid):
        return StackLock(file, f"{text}; no such process runs on this machine")
    return StackLock(file, f"{text}; {status.remark}" if status.remark else text, status.is_dead)


def _unreadable(file: Path) -> StackLock:
    text = "held by an unknown process: the file cannot be read"
    if not file.name.startswith(_NAME_PREFIX):
        return StackLock(file, text)
    # A lock may be empty after a power failure. A living holder still writes heartbeats.
    try:
        status = lock_holder.check_heartbeat(file)
    except FileNotFoundError:
        return StackLock(file, "just released")
    return StackLock(file, f"{text}; {status.remark}", status.is_dead)


def _username() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return str(os.getuid())
