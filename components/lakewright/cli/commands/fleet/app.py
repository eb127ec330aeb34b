"""The commands of `lakewright fleet`."""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from lakewright.cli.commands.fleet.listing import list_fleet
from lakewright.cli.commands.fleet.operations import preview, refresh, up, verify
from lakewright.cli.commands.fleet.spark_reports import runs, usage
from lakewright.cli.commands.fleet.status import status
from lakewright.cli.commands.report import report as _report
from lakewright.cli.stack_argument import CommandLine

app = CommandLine(add_completion=False, no_args_is_help=True, help="Run operations on many stacks, and report on them.")
_drift: Any = import_module("lakewright.cli.commands.drift").drift


@wraps(_drift)
def drift(**options: Any) -> None:
    """Run `lakewright drift`, by default on all stacks."""
    is_limited = options.get("stack") or options.get("label")
    _drift(**{**options, "everything": options.get("everything") or not is_limited})


drift.__doc__ = """Show what was changed outside the stacks: `lakewright drift`, by default on all stacks.

Example: lakewright fleet drift --stack 'team-*'
"""


@wraps(_report)
def report(**options: Any) -> None:
    """Run `lakewright report`."""
    _report(**options)


report.__doc__ = (_report.__doc__ or "").replace("lakewright report", "lakewright fleet report")

for _command in (preview, up, refresh, verify, drift, status, usage, runs, report):
    app.command()(_command)
app.command("list")(list_fleet)
