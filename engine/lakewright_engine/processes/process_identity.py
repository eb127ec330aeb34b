"""Identify processes: a process id may be reused, and is another process in another container."""

from __future__ import annotations

import os
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether a process with that id is visible to this process, and has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OverflowError:
        return True
    except PermissionError:
        pass
    return not _is_zombie(Path(f"/proc/{pid}"))


def _is_zombie(folder: Path) -> bool:
    """Return whether a process has ended, and its parent has not read its exit code: False outside of Linux.

    In a container without an init, nothing reads the exit codes of processes whose parent has ended.
    """
    try:
        state = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        # The first thread of a process may end before its other threads.
        return state == "Z" and len([*(folder / "task").iterdir()]) == 1
    except OSError:
        return False


def identity(pid: int) -> dict[str, str]:
    """Return the machine's boot id, the PID namespace of this process, and the start time of a process.

    Return an empty dict outside of Linux, and for hidden processes of other users.
    """
    try:
        # The 22nd field of stat is the start time; the name before it may hold spaces and brackets.
        started = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return {"boot": boot, "pids": str(Path("/proc/self/ns/pid").readlink()), "started": started}
    except OSError:
        return {}
