"""One warm process for all commands of a fleet, so that its stacks do not each pay for the imports."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from lakewright.warm import address

_MIN_STACKS = 2
"""Number of stacks from which on starting the process is worth its time."""


@contextmanager
def share_process(stacks: int) -> Generator[dict[str, str]]:
    """Yield the environment variables for the commands of a fleet.

    The commands use the user's warm process if it may run. In CI and under tests they share a process that ends with
    the fleet: its socket is in a folder that is removed. LAKEWRIGHT_WARM=0 means none.
    """
    environ = dict(os.environ)
    if stacks < _MIN_STACKS or sys.platform != "linux":
        yield environ
        return
    if address.is_enabled():
        _start(environ)
        yield environ
        return
    if os.environ.get(address.SWITCH):  # another spelling of `off`
        yield environ
        return
    with tempfile.TemporaryDirectory(prefix="lakewright-", ignore_cleanup_errors=True) as folder:
        environ |= {address.SWITCH: "1", address.FOLDER: folder}
        _start(environ)
        yield environ


def _start(environ: dict[str, str]) -> None:
    """Start the process. Without it, each command runs by itself."""
    command = [sys.executable, "-P", "-m", "lakewright.warm.start"]
    subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False)
