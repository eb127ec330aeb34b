"""`lakewright-spark`, and `python -m lakewright_spark`: the package alone lacks what its commands need."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Exit with 1 and a message if a package of the extra `jobs` is not installed."""
    try:
        from lakewright_spark.cli import main as run_command_line  # noqa: PLC0415 - it may lack packages
    except ModuleNotFoundError as error:
        sys.exit(
            f"error: `{error.name}` is not installed; the commands of lakewright-spark need it."
            " Install it: pip install 'lakewright-spark[jobs]', or `make setup` in a checkout of Lakewright"
        )
    run_command_line()


if __name__ == "__main__":
    main()
