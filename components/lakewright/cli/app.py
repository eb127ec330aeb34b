"""The command line. Each command is a module that is loaded only when it is called."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated, Any

import typer
from lakewright_spark.plain_help import PlainHelpTyper
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

from lakewright.cli.errors import UsageError, format_error, to_usage_error
from lakewright.cli.json_errors import JsonErrorsCommand
from lakewright.cli.stack_argument import CommandLine
from lakewright.terminal.escaping import indent_continuation
from lakewright.terminal.streams import escape_standard_streams
from lakewright.warm import address

COMMANDS = {
    "init": ("lakewright.cli.commands.init:init", "Create a project in a folder."),
    "preview": ("lakewright.cli.commands.operations:preview", "Show what an update would change."),
    "up": ("lakewright.cli.commands.operations:up", "Create or update a tenant's resources."),
    "refresh": (
        "lakewright.cli.commands.operations:refresh",
        "Update the state with changes made outside the stack.",
    ),
    "destroy": ("lakewright.cli.commands.operations:destroy", "Delete all resources of the stack."),
    "plan": ("lakewright.cli.commands.plan:app", "Show a kept plan of `preview --save-plan`."),
    "adopt": (
        "lakewright.cli.commands.ownership:app",
        "Let a stack adopt objects that it did not create.",
    ),
    "fleet": (
        "lakewright.cli.commands.fleet.app:app",
        "Preview, update, refresh, verify and list many stacks at once.",
    ),
    "drift": ("lakewright.cli.commands.drift:drift", "Show changes made outside one stack or all stacks."),
    "stack": ("lakewright.cli.commands.stack:app", "List, create, read, export, import and remove stacks."),
    "state": ("lakewright.cli.commands.state:app", "List, remove, unprotect and rename resources in a stack's state."),
    "config": (
        "lakewright.cli.commands.config:app",
        "Read and write a stack's settings; print the catalog configuration of jobs.",
    ),
    "upgrade": (
        "lakewright.cli.commands.upgrade:upgrade",
        "Convert a project of an earlier version, and show the differences.",
    ),
    "new": ("lakewright.cli.commands.specs.new:new", "Write the spec of a new tenant."),
    "spec": (
        "lakewright.cli.commands.specs.spec:app",
        "Check and explain tenants' specs, write a spec from a server, print the JSON Schema.",
    ),
    "undrop": ("lakewright.cli.commands.undrop:undrop", "List dropped tables, or restore a table."),
    "byo": (
        "lakewright.cli.commands.byo:app",
        "Bring your own bucket: reserve the external ID of a role, and print the policies that the role needs.",
    ),
    "external-ids": (
        "lakewright.cli.commands.byo:print_external_ids",
        "Print the external IDs of roles: of consumers, of maintenance, and of the catalog in tenants' buckets.",
    ),
    "verify": (
        "lakewright.cli.commands.verify:verify",
        "Prove with the identity of the computing units what they can and cannot do.",
    ),
    "texera": (
        "lakewright.cli.commands.texera:app",
        "Register computing units at Apache Texera.",
    ),
    "ci": (
        "lakewright.cli.commands.ci:app",
        "Comments, summaries, issues, events and gauges of a fleet, for CI and monitoring.",
    ),
    "completion": (
        "lakewright.cli.commands.completion:completion",
        "Print the completion script of a shell.",
    ),
    "check": (
        "lakewright.cli.commands.check:check",
        "Check what specs assert about their data: recent rows, sizes of warehouses, and rights.",
    ),
    "grants": (
        "lakewright.cli.commands.grants:grants",
        "List grants, members of roles and shares of stacks, and when they end.",
    ),
    "expire": (
        "lakewright.cli.commands.grants:expire",
        "Remove grants and members of roles that have reached their end.",
    ),
    "enforce-limits": (
        "lakewright.cli.commands.limits:enforce_limits",
        "Suspend grants of writers where a limit is reached.",
    ),
    "record-compute": (
        "lakewright.cli.commands.compute:record_compute",
        "Record the hours of computing units from the pods of Kubernetes.",
    ),
    "report": (
        "lakewright.cli.commands.report:report",
        "Write a page about all tenants from the JSON of other commands.",
    ),
    "ui": (
        "lakewright.cli.commands.ui:ui",
        "Serve the report to a browser on this machine, and keep it up to date.",
    ),
    "doctor": (
        "lakewright.cli.commands.doctor:doctor",
        "Check what is installed and reachable, and how to fix what is missing.",
    ),
}
"""Commands by name: the Typer app or function, and its line in `--help`."""

_COMPLETES = "_LAKEWRIGHT_COMPLETE"
"""Variable of a shell that asks for completions."""

ENTRY_POINTS = "lakewright.commands"
"""Entry point group for commands of other packages."""


class LazyGroup(TyperGroup):
    """A group that imports only the command that is called."""

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *(name for name in _list_plugins() if name not in COMMANDS)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the names are Typer's
        """Return a stand-in with the line for `--help`; commands of other packages show their package's summary."""
        if cmd_name in COMMANDS:
            summary = COMMANDS[cmd_name][1]
        elif point := _list_plugins().get(cmd_name):
            summary = point.dist.metadata["Summary"] if point.dist else ""
        else:
            return None
        return TyperCommand(cmd_name, help=summary, short_help=summary)

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        is_known = args[0].startswith("-") or args[0] in COMMANDS  # the packages are searched for other names alone
        if not is_known and args[0] not in (names := self.list_commands(ctx)):
            from lakewright_engine.state.names import suggest_name  # noqa: PLC0415

            if args[0] == "sandbox":
                raise UsageError("the sandbox is not installed; install it: pip install 'lakewright[sandbox]'")
            suggestion = suggest_name(args[0], names)
            raise UsageError(f"no command `{args[0]}`{suggestion}`lakewright --help` lists the commands")
        name, command, remaining = super().resolve_command(ctx, args)
        return name, load_command(name) if name else command, remaining


def load_command(name: str) -> Any:
    """Import a command."""
    target = COMMANDS[name][0] if name in COMMANDS else _list_plugins()[name].value
    module, _, attribute = target.partition(":")
    loaded: Any = getattr(import_module(module), attribute)
    is_operation = target.startswith("lakewright.cli.commands.operations:")
    if not isinstance(loaded, typer.Typer):
        app = CommandLine(add_completion=False)
        app.command(name, cls=JsonErrorsCommand if is_operation else None)(loaded)
        loaded = app
    command = typer.main.get_command(loaded)
    command.name = name
    if name in address.VERBS:
        _add_warm_options(command)
    return command


def _add_warm_options(command: Any) -> None:
    """Add the options of warm processes to a command and to its subcommands."""
    command.params += _warm_options()
    for subcommand in getattr(command, "commands", {}).values():
        _add_warm_options(subcommand)


def _warm_options() -> list[Any]:
    """Return the options that the command line reads before it loads a command."""

    def options(
        *,
        no_warm: Annotated[
            bool,
            typer.Option(address.OPTION, expose_value=False, help="Neither use nor start the project's warm process."),
        ] = False,
    ) -> None: ...

    app = PlainHelpTyper(add_completion=False)
    app.command()(options)
    return typer.main.get_command(app).params


def _list_plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


app = PlainHelpTyper(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Manage tenants: one stack holds storage, Lakekeeper warehouses and Spark compute of one tenant.",
)


def _print_version(requested: object) -> None:
    if requested:
        typer.echo(f"lakewright {version('lakewright')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Manage tenants: one stack holds storage, Lakekeeper warehouses and Spark compute of one tenant."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line in this process and end it. An expected error is one message without a traceback."""
    gc.set_threshold(50_000, 20, 20)  # a short process that mostly imports creates little garbage
    command = typer.main.get_command(app)
    if _COMPLETES in os.environ:
        from typer.completion import completion_init  # noqa: PLC0415 # pyright: ignore[reportPrivateImportUsage]

        completion_init()
    with escape_standard_streams():  # whatever a command prints, names from servers included
        _run_command(command, arguments)


def _run_command(command: Any, arguments: list[str] | None) -> None:
    try:
        code: Any = command.main(args=arguments, prog_name="lakewright", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except typer.Abort:
        print("Aborted.", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:  # the reader has closed the pipe, such as `head`
        sys.exit(1)
    except Exception as raised:  # noqa: BLE001 - the last place where an error can be reported
        if type(raised).__name__ == "NoArgsIsHelpError":  # printed its help
            sys.exit(2)
        error = to_usage_error(raised)
        if os.environ.get("LAKEWRIGHT_DEBUG", "") not in ("", "0"):
            traceback.print_exc()
        print(f"error: {indent_continuation(format_error(error))}", file=sys.stderr)
        sys.exit(getattr(error, "exit_code", 1))
    finally:
        _flush()


def _flush() -> None:
    """Write buffered output. Otherwise Python prints an error at exit if the reader closed the pipe, such as `head`."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
