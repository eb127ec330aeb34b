"""The file in which providers name the resources that a run adopts, for the display.

An engine does not know that a provider's `create` takes an existing object over. `check`, which finds that out, writes
the URN to a file that `lakewright` names in an environment variable, with both engines. Plain `pulumi` names none.
"""

from __future__ import annotations

import os

from lakewright.ownership.running_stack import find_running_urn

FILE = "LAKEWRIGHT_ADOPTED_RESOURCES"
"""Environment variable: path of a file with one URN per line."""


def record_adopted_resource() -> None:
    """Append the URN of the resource that a provider checks to the file, if `lakewright` runs the provider."""
    path, urn = os.environ.get(FILE), find_running_urn()
    if not path or urn is None:
        return
    try:
        # One write of one line: threads of the process may check resources at the same time.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    except FileNotFoundError:
        return  # the variable outlived its run
    try:
        os.write(descriptor, f"{urn}\n".encode())
    finally:
        os.close(descriptor)
