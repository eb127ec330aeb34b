"""Hold, list and cancel locks of a stack in the format of the Pulumi CLI: one JSON object for each holder.

With the CLI, a user removes the lock of a killed run. A lock of this engine describes its holder, so that the next run
can find that it is dead and continue.
"""

from __future__ import annotations

import getpass
import os
import socket
import threading
import uuid
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, Protocol

from lakewright_engine.model.errors import StackLockedError
from lakewright_engine.model.stack_lock import StackLock
from lakewright_engine.storage import lock_holder

NAME_PREFIX = "lakewright-"
"""Prefix of the locks of this engine. Such a lock has a heartbeat even if its content is lost."""


class OwnLock(Protocol):
    """A lock that this process created."""

    @property
    def heartbeat_seconds(self) -> float:
        """The time between two heartbeats."""
        ...

    def touch(self) -> None:
        """Write a heartbeat. A failure is ignored: the storage may be unavailable for a moment."""
        ...

    def is_held(self) -> bool:
        """Return whether the lock still exists as this process created it."""
        ...


class StackLocks(Protocol):
    """The locks of one stack."""

    def list_all(self) -> list[StackLock]:
        """Return all locks, including unreadable locks, sorted by name."""
        ...

    def create(self, name: str) -> AbstractContextManager[OwnLock]:
        """Create a lock of this process. It is removed at the end of the context."""
        ...

    def remove(self, lock: StackLock) -> None:
        """Remove a lock, if it exists."""
        ...

    def remove_leftovers(self, seconds: float) -> None:
        """Remove temporary files of killed runs that are at least this old."""
        ...


class HeldLock:
    """A lock that this process holds."""

    def __init__(self, lock: OwnLock, stack: str) -> None:
        """Hold a lock on a stack."""
        self._lock = lock
        self._stack = stack

    def verify(self) -> None:
        """Raise StackLockedError if the lock was removed: another process may be changing the stack."""
        if not self._lock.is_held():
            message = (
                f"the lock on stack '{self._stack}' was removed during this run, by `lakewright stack cancel` or by "
                "another run that found no heartbeat. This run no longer writes to the state. Run `up` again, "
                "which looks up the objects that this run began to create"
            )
            raise StackLockedError(message)


@contextmanager
def hold(locks: StackLocks, stack: str) -> Generator[HeldLock]:
    """Hold the lock on a stack. The lock of a dead process is removed.

    Two processes that lock at the same moment may both be refused, as with the CLI; both never succeed.

    Raises:
        StackLockedError: Another process holds the lock; the message names it.
    """
    refuse_other_holders(locks, stack)
    locks.remove_leftovers(lock_holder.DEAD_AFTER_SECONDS)
    name = f"{NAME_PREFIX}{uuid.uuid4()}.json"
    with locks.create(name) as own_lock:
        refuse_other_holders(locks, stack, except_for=name)
        with _heartbeat(own_lock):
            yield HeldLock(own_lock, stack)


def cancel(locks: StackLocks) -> list[StackLock]:
    """Remove all locks of a stack. Return them."""
    locks_to_remove = locks.list_all()
    for lock in locks_to_remove:
        locks.remove(lock)
    locks.remove_leftovers(0)
    return locks_to_remove


def refuse_other_holders(locks: StackLocks, stack: str, except_for: str = "") -> None:
    """Remove the locks of dead processes, and refuse the locks of other processes.

    Raises:
        StackLockedError: Another process holds a lock; the message names it.
    """
    other_locks = [lock for lock in locks.list_all() if lock.name != except_for]
    for lock in other_locks:
        if lock.is_abandoned:
            locks.remove(lock)
    living = [lock for lock in other_locks if not lock.is_abandoned]
    if living:
        raise StackLockedError(_refusal(stack, living), living)


def lock_content() -> dict[str, Any]:
    """Return the content of a lock as the Pulumi CLI writes it."""
    return {
        "pid": os.getpid(),
        "username": _username(),
        "hostname": socket.gethostname(),
        "timestamp": datetime.now().astimezone().isoformat(),
    }


def _refusal(stack: str, locks: Iterable[StackLock]) -> str:
    holders = [f"\n  {lock.location}: {lock.holder}" for lock in locks]
    return (
        f"the stack '{stack}' is locked by {len(holders)} other process(es). Wait for them to finish. If they no "
        f"longer run, remove the locks with `lakewright stack cancel --stack {stack}`:{''.join(holders)}"
    )


@contextmanager
def _heartbeat(lock: OwnLock) -> Generator[None]:
    released = threading.Event()

    def beat() -> None:
        while not released.wait(lock.heartbeat_seconds):
            lock.touch()

    thread = threading.Thread(target=beat, daemon=True, name="lock-heartbeat")
    thread.start()
    try:
        yield
    finally:
        released.set()
        thread.join()


def _username() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return str(os.getuid())
