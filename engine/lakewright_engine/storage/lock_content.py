"""Read the content of a lock, of this engine or of the Pulumi CLI."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from lakewright_engine.model.stack_lock import StackLock
from lakewright_engine.processes.process_identity import is_running
from lakewright_engine.storage.holding import NAME_PREFIX
from lakewright_engine.storage.lock_holder import HolderStatus, dead_by_process

_UNREADABLE = "held by an unknown process: the lock cannot be read"


def read_lock(
    lock: StackLock,
    content: bytes,
    *,
    check_heartbeat: Callable[[], HolderStatus],
    dead_by_place: Callable[[Mapping[str, Any]], bool | None] = lambda _: None,
) -> StackLock:
    """Return a lock with its holder.

    A lock of the Pulumi CLI is never dead: only its user can know.

    Args:
        lock: The lock with place and name.
        content: The content of the lock.
        check_heartbeat: Returns the status by the last heartbeat.
        dead_by_place: Returns whether the holder is dead by a check of the storage; None if the storage has no check.
    """
    try:
        document = cast("dict[str, Any]", json.loads(content))
        lock = replace(
            lock,
            user=str(document["username"]),
            host=str(document["hostname"]),
            pid=int(document["pid"]),
            since=_moment(document["timestamp"]),
        )
        claimed: Any = document.get("lakewright")
    except (ValueError, KeyError, TypeError, AttributeError):
        return _unreadable(lock, check_heartbeat)
    status = _check_holder(lock, claimed, check_heartbeat, dead_by_place)
    return replace(lock, remark=status.remark, is_abandoned=status.is_dead)


def _check_holder(
    lock: StackLock,
    claimed: Any,
    check_heartbeat: Callable[[], HolderStatus],
    dead_by_place: Callable[[Mapping[str, Any]], bool | None],
) -> HolderStatus:
    if not isinstance(claimed, dict) or lock.pid is None:
        if lock.pid is not None and lock.host == socket.gethostname() and not is_running(lock.pid):
            return HolderStatus(is_dead=False, remark="no such process runs on this machine")
        return _unknown(lock)
    claim = cast("Mapping[str, Any]", claimed)
    dead = dead_by_process(lock.pid, claim)
    if dead is None:
        dead = dead_by_place(claim)
    if dead is not None:
        return HolderStatus(dead)
    if "heartbeat_seconds" not in claim:  # a release without heartbeats
        return _unknown(lock)
    return check_heartbeat()


def _unknown(lock: StackLock) -> HolderStatus:
    return HolderStatus(
        is_dead=False, remark=f"run `ps -p {lock.pid}` on {lock.host} to find out whether it still runs"
    )


def _unreadable(lock: StackLock, check_heartbeat: Callable[[], HolderStatus]) -> StackLock:
    if not lock.name.startswith(NAME_PREFIX):
        return replace(lock, remark=_UNREADABLE)
    # A lock may be empty after a power failure. A living holder still writes heartbeats.
    status = check_heartbeat()
    return replace(lock, remark=f"{_UNREADABLE}; {status.remark}", is_abandoned=status.is_dead)


def _moment(text: Any) -> datetime | None:
    """Return the time of a lock. Go writes nanoseconds, of which Python reads six digits."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
