"""How much memory the JVM of a user's script gets: half of what this process may use, the rest is Python's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_LEAST = 1024
"""MiB: Spark's own default."""


def driver_memory(defaults: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> str | None:
    """Return `spark.driver.memory` for a script on this machine; None where the user has set it already.

    Args:
        defaults: Of `spark-defaults.conf`.
        environ: May have Spark's own SPARK_DRIVER_MEMORY.
    """
    if "spark.driver.memory" in defaults or environ.get("SPARK_DRIVER_MEMORY"):
        return None
    return f"{max(_usable_bytes() // 2**21, _LEAST)}m"


def _usable_bytes() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for path in _LIMITS if (limit := _limit(path)) is not None)])


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
