"""The command line: each group of commands is a module of its own, loaded only when it is called."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from lakewright.cli.errors import told
from lakewright.cli.json_errors import JsonVerb
from lakewright.warm import address

COMMANDS = {
    "preview": ("lakewright.cli.commands.operations:preview", "Show what an update would change."),
    "up": ("lakewright.cli.commands.operations:up", "Make a tenant what its program says."),
    "refresh": (
        "lakewright.cli.commands.operations:refresh",
        "Take what changed behind the stack's back into its state.",
    ),
    "destroy": ("lakewright.cli.commands.operations:destroy", "Delete everything that the stack holds."),
    "stack": ("lakewright.cli.commands.stack:app", "List, make, read, export, import and remove stacks."),
    "state": ("lakewright.cli.commands.state:app", "List, forget, unprotect and rename resources of a stack's state."),
    "config": ("lakewright.cli.commands.config:app", "A stack's settings, and the configuration that jobs read."),
    "new": ("lakewright.cli.commands.new:new", "Write the spec of a new tenant."),
    "spec": ("lakewright.cli.commands.spec:app", "Check a tenant's spec; print its JSON Schema."),
    "undrop": ("lakewright.cli.commands.undrop:undrop", "List dropped tables; bring one back."),
    "external-ids": (
        "lakewright.cli.commands.external_ids:external_ids",
        "Print what roles of a tenant's own have to demand.",
    ),
    "doctor": ("lakewright.cli.commands.doctor:doctor", "Say what is there, what is missing, and how to mend it."),
}
"""Name -> where the command is (a Typer app or a function), and the line that `--help` shows for it."""

ENTRY_POINTS = "lakewright.commands"
"""The group under which other packages add commands of theirs."""


class LazyGroup(TyperGroup):
    """Knows its commands by name, and imports the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the name is Typer's
        return [*COMMANDS, *(name for name in _plugged_in() if name not in COMMANDS)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the names are Typer's
        """For `--help`: a stand-in that knows the command's line; for another package's command, that package's."""
        if cmd_name in COMMANDS:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1])
        if point := _plugged_in().get(cmd_name):
            return TyperCommand(cmd_name, help=point.dist.metadata["Summary"] if point.dist else None)
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name else command, rest


def load_command(name: str) -> Any:
    """Imports a command."""
    place = COMMANDS[name][0] if name in COMMANDS else _plugged_in()[name].value
    module, _, attribute = place.partition(":")
    found: Any = getattr(import_module(module), attribute)
    is_operation = place.startswith("lakewright.cli.commands.operations:")
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(name, cls=JsonVerb if is_operation else None)(found)
        found = app
    command = typer.main.get_command(found)
    command.name = name
    if is_operation:
        command.params += _warm_options()
    return command


def _warm_options() -> list[Any]:
    """Return the options that the command line reads before it loads a command."""

    def options(
        *,
        no_warm: Annotated[
            bool,
            typer.Option(address.OPTION, expose_value=False, help="Neither use nor start the project's warm process."),
        ] = False,
    ) -> None: ...

    app = typer.Typer(add_completion=False)
    app.command()(options)
    return typer.main.get_command(app).params


def _plugged_in() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    help="One stack a tenant: from its S3 storage through a Lakekeeper warehouse to its Spark compute.",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"lakewright {version('lakewright')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """One stack a tenant: from its S3 storage through a Lakekeeper warehouse to its Spark compute."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line in this process and end it. An expected error is one message without a traceback."""
    gc.set_threshold(50_000, 20, 20)  # a short life, most of it imports: hardly anything is ever garbage
    command = typer.main.get_command(app)
    try:
        command.main(args=arguments, prog_name="lakewright")
    except Exception as error:  # noqa: BLE001 - the last place where an error can be told
        if os.environ.get("LAKEWRIGHT_DEBUG", "") not in ("", "0"):
            traceback.print_exc()
        print(f"error: {told(error)}", file=sys.stderr)
        sys.exit(getattr(error, "exit_code", 1))
