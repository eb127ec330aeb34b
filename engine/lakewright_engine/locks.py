"""A stack's locks, as the Pulumi CLI leaves and respects them: one JSON file for each process that holds the stack."""

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

from lakewright_engine.errors import StackLocked


@dataclass(frozen=True)
class Lock:
    """A lock file and what it says of its holder."""

    file: Path
    holder: str


def held(folder: Path) -> list[Lock]:
    """The locks in the folder of a stack's locks, those that cannot be read too."""
    return [Lock(file, _holder(file)) for file in sorted(folder.glob("*.json"))] if folder.is_dir() else []


@contextmanager
def hold(folder: Path, stack: str) -> Generator[None]:
    """Holds the stack. Raises StackLocked, which names the holders, if anybody else does.

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
    if locks:
        holders = "".join(f"\n  {lock.file}: {lock.holder}" for lock in locks)
        message = (
            f"the stack '{stack}' is locked by {len(locks)} other process(es). Wait for them to end, or, if they are "
            f"gone, remove the locks with `lakewright stack cancel --stack {stack}`:{holders}"
        )
        raise StackLocked(message)


def _holder(file: Path) -> str:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        pid, host = content["pid"], content["hostname"]
        text = f"created by {content['username']}@{host} (pid {pid}) at {content['timestamp']}"
    except FileNotFoundError:
        return "just released"
    except (OSError, ValueError, KeyError, TypeError):
        return "held by somebody: the file cannot be read"
    return text if host != socket.gethostname() or _runs(pid) else f"{text}; no such process runs on this machine"


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
