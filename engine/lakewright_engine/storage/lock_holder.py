"""Decide whether the process that holds a lock is dead.

There are three checks. The first check with a result counts:

1. The process id, if holder and reader share the PID namespace and the boot of a machine.
2. A `flock` on the lock file, which the kernel releases with the process, if holder and reader are containers of one
   machine and have the same file mounted.
3. The heartbeat: the holder touches the file every 10 seconds. A holder without a heartbeat for 5 minutes is considered
   dead. A holder that was only suspended finds before its next save that its lock was removed, and stops.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakewright_engine.processes.process_identity import identity, is_running

HEARTBEAT_SECONDS = 10
DEAD_AFTER_SECONDS = 300
PROBE_PREFIX = ".now-"
"""Prefix of temporary files that are created to read the time of a file server."""


@dataclass(frozen=True)
class HolderStatus:
    """Whether a holder is dead, and a remark for the user."""

    is_dead: bool
    remark: str = ""


def claim_lock(descriptor: int) -> dict[str, Any]:
    """Lock the lock file for the lifetime of this process. Return the fields with which a reader checks the holder.

    Args:
        descriptor: The open lock file.
    """
    claim: dict[str, Any] = {**identity(os.getpid()), "heartbeat_seconds": HEARTBEAT_SECONDS}
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a file system without locks
        return claim
    return claim | {"file": _file_identity(os.fstat(descriptor))}


def check_heartbeat(file: Path) -> HolderStatus:
    """Check the holder of a lock of this engine by its last heartbeat. Raise FileNotFoundError if it was released."""
    # Not in the folder of the locks: the CLI counts every file there as a lock.
    return status_of_silence(file_server_time(file.parent.parent) - file.stat().st_mtime)


def status_of_silence(seconds: float) -> HolderStatus:
    """Return the status of a holder by the time since its last heartbeat."""
    silent = max(0, int(seconds))
    remark = f"its last heartbeat was {silent} s ago; it is considered dead {DEAD_AFTER_SECONDS} s after a heartbeat"
    return HolderStatus(silent > DEAD_AFTER_SECONDS, remark)


def file_server_time(folder: Path) -> float:
    """Return the current time by the clock of a folder's file server, which may be another machine."""
    descriptor, probe = tempfile.mkstemp(dir=folder, prefix=PROBE_PREFIX)
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
        Path(probe).unlink(missing_ok=True)


def dead_by_process(pid: int, claim: Mapping[str, Any]) -> bool | None:
    """Return whether a holder on this machine, in this PID namespace, is dead; None for other holders."""
    own_identity = identity(os.getpid())
    if not own_identity or any(claim.get(key) != own_identity[key] for key in ("boot", "pids")):
        return None
    if not is_running(pid):
        return True
    now = identity(pid)
    return now["started"] != claim.get("started") if now else None


def dead_by_file(file: Path, claim: Mapping[str, Any]) -> bool | None:
    """Return whether a holder that has the same file mounted on this machine is dead; None for other holders.

    Raises:
        FileNotFoundError: The lock was released.
    """
    own_identity = identity(os.getpid())
    if not own_identity or claim.get("boot") != own_identity["boot"] or "file" not in claim:
        return None
    with file.open("rb") as stream:
        if claim["file"] != _file_identity(os.fstat(stream.fileno())):
            return None
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
    return True


def _file_identity(claim: os.stat_result) -> str:
    return f"{claim.st_dev}:{claim.st_ino}"
