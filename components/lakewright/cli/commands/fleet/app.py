"""The commands of `lakewright fleet`."""

from __future__ import annotations

import typer

from lakewright.cli.commands.fleet.listing import list_fleet
from lakewright.cli.commands.fleet.operations import preview, refresh, up, verify

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Run operations on many stacks, and report on them.",
    epilog="Example: lakewright fleet preview --stack 'team-*' --label cost-center=4711",
)

for _command in (preview, up, refresh, verify):
    app.command(epilog=f"Example: lakewright fleet {_command.__name__} --stack 'team-*' --parallel-stacks 8")(_command)
app.command("list", epilog="Example: lakewright fleet list --label cost-center=4711 --json")(list_fleet)
