"""The `lakewright` command. It starts in a few milliseconds: what a warm process can run needs none of the imports."""

from __future__ import annotations

import contextlib
import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process, in the project's warm process where there is one.

    Args:
        arguments: The words after `lakewright`; None for the arguments of this process.
    """
    from lakewright.warm.client import WarmClient  # noqa: PLC0415

    warm = WarmClient.create_for_command(sys.argv[1:]) if arguments is None else None
    if warm is not None and (code := warm.run()) is not None:
        sys.exit(code)
    from lakewright.cli.app import run  # noqa: PLC0415 - slow to load

    try:
        run(arguments)
    finally:
        if warm is not None:
            with contextlib.suppress(OSError):  # the command's own result counts
                warm.start_process()
