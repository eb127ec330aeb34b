"""`lakewright-spark`, and `python -m lakewright_spark`: the package alone lacks what its commands need."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> None:
    """Run the command line. Exit with 1 and a message if a package of the extra `jobs` is not installed."""
    try:
        command_line = import_module("lakewright_spark.cli")
    except ModuleNotFoundError as error:
        sys.exit(
            f"error: `{error.name}` is not installed; the commands of lakewright-spark need it."
            " Install it: pip install 'lakewright-spark[jobs]', or `make setup` in a checkout of Lakewright"
        )
    command_line.main()


if __name__ == "__main__":
    main()
