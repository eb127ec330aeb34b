"""The commands of `lakewright fleet`."""

from __future__ import annotations

import typer

from lakewright.cli.commands.fleet.listing import list_fleet
from lakewright.cli.commands.fleet.operations import preview, refresh, up, verify

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Run operations on many stacks, and report on them.")

for _command in (preview, up, refresh, verify):
    app.command()(_command)
app.command("list")(list_fleet)
