"""A stack's locks, as the Pulumi CLI leaves and respects them: one JSON file for each process that holds the stack.

The CLI leaves a killed run's lock to a person. Ours says which process of which boot of which machine holds it, so
that the next run can tell for certain that nobody does, and goes on.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from lakewright_engine.errors import StackLocked


@dataclass(frozen=True)
class Lock:
    """A lock file, what it says of its holder, and whether that is certainly gone."""

    file: Path
    holder: str
    abandoned: bool = False


def held(folder: Path) -> list[Lock]:
    """The locks in the folder of a stack's locks, those that cannot be read too."""
    return [_read(file) for file in sorted(folder.glob("*.json"))] if folder.is_dir() else []


@contextmanager
def hold(folder: Path, stack: str) -> Generator[None]:
    """Holds the stack. Raises StackLocked, which names the holders, if anybody else does; a killed holder's lock goes.

    Two processes that come at the same moment may both be refused, as with the CLI; never are both let in.
    """
    _refuse(folder, stack, except_for=None)
    folder.mkdir(parents=True, exist_ok=True)
    mine = folder / f"{uuid.uuid4()}.json"
    content = {
        "pid": os.getpid(),
        "username": _username(),
        "hostname": socket.gethostname(),
        "timestamp": datetime.now().astimezone().isoformat(),
        "lakewright": _identity(os.getpid()),
    }
    partial = mine.with_suffix(".partial")
    partial.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
    partial.replace(mine)
    try:
        _refuse(folder, stack, except_for=mine)
        yield
    finally:
        mine.unlink(missing_ok=True)


def cancel(folder: Path) -> list[Lock]:
    """Removes every lock of the stack; answers what was removed."""
    locks = held(folder)
    for lock in locks:
        lock.file.unlink(missing_ok=True)
    return locks


def _refuse(folder: Path, stack: str, except_for: Path | None) -> None:
    locks = [lock for lock in held(folder) if lock.file != except_for]
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
        raise StackLocked(message)


def _read(file: Path) -> Lock:
    try:
        content = cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))
        pid, host = content["pid"], content["hostname"]
        text = f"created by {content['username']}@{host} (pid {pid}) at {content['timestamp']}"
    except FileNotFoundError:
        return Lock(file, "just released")
    except (OSError, ValueError, KeyError, TypeError):
        return Lock(file, "held by somebody: the file cannot be read")
    if host == socket.gethostname() and not _runs(pid):
        text += "; no such process runs on this machine"
    return Lock(file, text, _gone(pid, content.get("lakewright")))


def _identity(pid: int) -> dict[str, str]:
    """Which process this is, on which boot of which machine, seen from which container; empty where Linux is not."""
    try:
        # The 22nd field of stat is when the process started; the name before it may hold spaces and brackets.
        started = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return {"boot": boot, "pids": str(Path("/proc/self/ns/pid").readlink()), "started": started}
    except OSError:
        return {}


def _gone(pid: object, identity: object) -> bool:
    """Whether the holder certainly runs no more: a process that this one would see, and does not."""
    mine = _identity(os.getpid())
    if not mine or not isinstance(pid, int) or not isinstance(identity, dict):
        return False
    theirs = cast("dict[str, str]", identity)
    if any(theirs.get(key) != mine[key] for key in ("boot", "pids")):
        return False
    if not _runs(pid):
        return True
    now = _identity(pid)  # empty where another user's processes are hidden: alive as far as we can tell
    return bool(now) and now != theirs


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError, TypeError):
        return True
    return True


def _username() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return str(os.getuid())
