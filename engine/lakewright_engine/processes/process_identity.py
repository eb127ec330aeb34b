"""Which process is which: its id may be another's later, or mean another in a container."""

from __future__ import annotations

import os
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether this process sees one with that id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def identity(pid: int) -> dict[str, str]:
    """Return the boot of the machine, the PID namespace of this process, and when a process started.

    Empty outside of Linux, and for processes of other users where those are hidden.
    """
    try:
        # The 22nd field of stat is when the process started; the name before it may hold spaces and brackets.
        started = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return {"boot": boot, "pids": str(Path("/proc/self/ns/pid").readlink()), "started": started}
    except OSError:
        return {}
