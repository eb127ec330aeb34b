"""Who holds a lock, and whether that process is dead for certain.

Three signs, of which the first that says anything counts:

1. The process id, where holder and reader are in one PID namespace of one boot of one machine.
2. A `flock` on the lock file, which the kernel drops with the process. It counts for containers of one machine that
   have the very same file mounted.
3. The heartbeat: the holder touches the file every 10 seconds. After 5 minutes without one the holder counts as dead.
   One that was only suspended notices, before its next save, that its lock is gone, and stops.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lakewright_engine.processes.process_identity import identity, is_running

HEARTBEAT_SECONDS = 10
DEAD_AFTER_SECONDS = 300
PROBE_PREFIX = ".now-"
"""Begins the names of files that are made to see the time of a file server."""


@dataclass(frozen=True)
class HolderStatus:
    """Whether a holder is dead for certain, and what a user may want to know of it."""

    is_dead: bool
    remark: str = ""


def claim_lock(descriptor: int) -> dict[str, Any]:
    """Lock the lock file of this process for as long as it lives; return what a reader needs to judge it.

    Args:
        descriptor: The open lock file.
    """
    found: dict[str, Any] = {**identity(os.getpid()), "heartbeat_seconds": HEARTBEAT_SECONDS}
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a file system without locks
        return found
    return found | {"file": _file_identity(os.fstat(descriptor))}


def check_holder(file: Path, pid: object, host: object, claimed: object) -> HolderStatus:
    """Judge the holder of a lock.

    Args:
        file: The lock file.
        pid: The holder's process id, in its own PID namespace.
        host: The holder's host name.
        claimed: What `claim_lock` returned to the holder; None for the Pulumi CLI, which says nothing.

    Raises:
        FileNotFoundError: The lock was released.
    """
    unknown = HolderStatus(is_dead=False, remark=f"run `ps -p {pid}` on {host} to find out whether it still runs")
    if not isinstance(claimed, dict) or not isinstance(pid, int):
        return unknown
    theirs = cast("Mapping[str, Any]", claimed)
    dead = _dead_by_process(pid, theirs)
    if dead is None:
        dead = _dead_by_file(file, theirs)
    if dead is not None:
        return HolderStatus(dead)
    if "heartbeat_seconds" not in theirs:  # a release without heartbeats
        return unknown
    return check_heartbeat(file)


def check_heartbeat(file: Path) -> HolderStatus:
    """Judge the holder of a lock of ours by its last heartbeat alone. Raises FileNotFoundError if it was released."""
    # Not beside the locks: the CLI counts every file there as one.
    silent = max(0, int(file_server_time(file.parent.parent) - file.stat().st_mtime))
    remark = f"its last heartbeat was {silent} s ago; {DEAD_AFTER_SECONDS} s after the last one it counts as dead"
    return HolderStatus(silent > DEAD_AFTER_SECONDS, remark)


def file_server_time(folder: Path) -> float:
    """Return the present time by the clock that stamps the files of a folder, which may be another machine's."""
    descriptor, probe = tempfile.mkstemp(dir=folder, prefix=PROBE_PREFIX)
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
        Path(probe).unlink(missing_ok=True)


def _dead_by_process(pid: int, theirs: Mapping[str, Any]) -> bool | None:
    mine = identity(os.getpid())
    if not mine or any(theirs.get(key) != mine[key] for key in ("boot", "pids")):
        return None
    if not is_running(pid):
        return True
    now = identity(pid)
    return now["started"] != theirs.get("started") if now else None


def _dead_by_file(file: Path, theirs: Mapping[str, Any]) -> bool | None:
    mine = identity(os.getpid())
    if not mine or theirs.get("boot") != mine["boot"] or "file" not in theirs:
        return None
    with file.open("rb") as stream:
        if theirs["file"] != _file_identity(os.fstat(stream.fileno())):
            return None
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
    return True


def _file_identity(found: os.stat_result) -> str:
    return f"{found.st_dev}:{found.st_ino}"
