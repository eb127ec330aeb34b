"""`python -P -m lakewright.warm.start`: start the project's warm process, and wait until it takes commands.

For a process that runs many commands. Exit code 0 if it takes commands, 1 if there is none.
"""

from __future__ import annotations

import os
import sys
import time

from lakewright.warm.address import VERBS, find_address
from lakewright.warm.client import WarmClient

_START_SECONDS = 60
_POLL_SECONDS = 0.02


def start() -> bool:
    """Start the warm process of the working directory's project unless it runs. Return whether it takes commands."""
    arguments = [VERBS[0]]
    address, client = find_address(arguments), WarmClient.create_for_command(arguments)
    if address is None or client is None:
        return False
    if os.path.exists(address.socket):  # noqa: PTH110
        return True
    pid = client.start_process()
    deadline = time.monotonic() + _START_SECONDS
    while pid and time.monotonic() < deadline:
        if os.path.exists(address.socket):  # noqa: PTH110
            return True
        if os.waitpid(pid, os.WNOHANG)[0]:
            return False
        time.sleep(_POLL_SECONDS)
    return False


if __name__ == "__main__":
    sys.exit(0 if start() else 1)
