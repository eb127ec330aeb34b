"""A stack's locks, as the Pulumi CLI leaves and respects them: one JSON file for each process that holds the stack.

The CLI leaves a killed run's lock to a user. Ours says enough of its holder that the next run can tell whether that is
dead, and goes on.
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
"""Begins the names of our locks, so that one whose content is lost is known to have a heartbeat."""
_LEFTOVER = ".partial"


@dataclass(frozen=True)
class StackLock:
    """A lock file, what it says of its holder, and whether that is certainly gone."""

    file: Path
    holder: str
    abandoned: bool = False


class HeldLock:
    """The lock that this process holds."""

    def __init__(self, file: Path, descriptor: int, stack: str) -> None:
        self._file = file
        self._descriptor = descriptor
        self._stack = stack

    def verify(self) -> None:
        """Raise StackLockedError if the lock was taken from this process: another one may be changing the stack."""
        self.touch()
        try:
            is_ours = os.path.samestat(self._file.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            is_ours = False
        if not is_ours:
            message = (
                f"the lock on stack '{self._stack}' was removed while this run held it, by `lakewright stack cancel` or"
                " by a run that found no heartbeat of this one. Nothing more is written to its state. Run `up` again,"
                " which looks for what this run began to create"
            )
            raise StackLockedError(message)

    def touch(self) -> None:
        """Give a heartbeat."""
        with suppress(OSError):  # a file server that is away for a moment
            os.utime(self._descriptor)


def list_locks(folder: Path) -> list[StackLock]:
    """The locks in the folder of a stack's locks, those that cannot be read too."""
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
    mine = folder / f"{_NAME_PREFIX}{uuid.uuid4()}.json"
    # Not beside the locks: the CLI counts every file there as one.
    partial = folder.parent / f".{folder.name}.{mine.stem}{_LEFTOVER}"
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
        partial.replace(mine)
        files.sync_folder(folder)
        lock = HeldLock(mine, stream.fileno(), stack)
        try:
            _refuse(folder, stack, except_for=mine)
            with _heartbeat(lock):
                yield lock
        finally:
            mine.unlink(missing_ok=True)


def cancel(folder: Path) -> list[StackLock]:
    """Removes every lock of the stack; answers what was removed."""
    locks = list_locks(folder)
    for lock in locks:
        lock.file.unlink(missing_ok=True)
    _remove_leftovers(folder, 0)
    return locks


def _remove_leftovers(folder: Path, seconds: float) -> None:
    """Remove what killed runs left of locks that they were making, and earlier releases of looking at the time.

    Args:
        folder: The folder of the stack's locks.
        seconds: The age of what may be removed.
    """
    if not folder.is_dir():
        return
    lefts = [
        *folder.parent.glob(f".{glob.escape(folder.name)}.{_NAME_PREFIX}*{_LEFTOVER}"),
        *folder.parent.glob(f"{lock_holder.PROBE_PREFIX}*"),
        *folder.glob(f"*{_LEFTOVER}"),
        *folder.glob(f"{lock_holder.PROBE_PREFIX}*"),
    ]
    now = lock_holder.file_server_time(folder.parent) if lefts else 0
    for left in lefts:
        with suppress(FileNotFoundError):
            if now - left.stat().st_mtime >= seconds:
                left.unlink()


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
        if lock.abandoned:
            lock.file.unlink(missing_ok=True)
    locks = [lock for lock in locks if not lock.abandoned]
    if locks:
        holders = "".join(f"\n  {lock.file}: {lock.holder}" for lock in locks)
        message = (
            f"the stack '{stack}' is locked by {len(locks)} other process(es). Wait for them to end, or, if they are "
            f"gone, remove the locks with `lakewright stack cancel --stack {stack}`:{holders}"
        )
        raise StackLockedError(message)


def _read(file: Path) -> StackLock:
    try:
        content = cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))
        pid, host = content["pid"], content["hostname"]
        text = f"created by {content['username']}@{host} (pid {pid}) at {content['timestamp']}"
        judged = lock_holder.check_holder(file, pid, host, content.get("lakewright"))
    except FileNotFoundError:
        return StackLock(file, "just released")
    except (OSError, ValueError, KeyError, TypeError):
        return _unreadable(file)
    if "lakewright" not in content and host == socket.gethostname() and not is_running(pid):
        return StackLock(file, f"{text}; no such process runs on this machine")
    return StackLock(file, f"{text}; {judged.remark}" if judged.remark else text, judged.is_dead)


def _unreadable(file: Path) -> StackLock:
    text = "held by an unknown process: the file cannot be read"
    if not file.name.startswith(_NAME_PREFIX):
        return StackLock(file, text)
    # A power cut may leave a lock empty. A living holder gives heartbeats all the same.
    try:
        judged = lock_holder.check_heartbeat(file)
    except FileNotFoundError:
        return StackLock(file, "just released")
    return StackLock(file, f"{text}; {judged.remark}", judged.is_dead)


def _username() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return str(os.getuid())
