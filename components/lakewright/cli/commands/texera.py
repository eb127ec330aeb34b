"""`lakewright texera register`: register a tenant's computing units at Texera."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, StackName, open_stack
from lakewright.cli.stack_argument import CommandLine
from lakewright.terminal.escaping import escape_line

if TYPE_CHECKING:
    from lakewright_engine.state.backend import StateBackend

    from lakewright.kubernetes.texera_registration import RegisteredUnit

OUTPUT = "texera_register"
WAREHOUSES = (
    "note: Texera cannot offer this stack's warehouses in its dashboard. It uses a warehouse by the rows of its table"
    " user_warehouse, which only its own POST /warehouse writes. Executions without a warehouse use the first warehouse"
    " of the unit"
)

app = CommandLine(add_completion=False, no_args_is_help=True, help="Register computing units at Apache Texera.")


@app.callback()
def _group() -> None:
    """Register computing units at Apache Texera."""


@app.command()
def register(
    stack: StackName,
    *,
    url: Annotated[str, typer.Option(metavar="URL", help="Address of Texera, such as https://texera.example.")],
    token: Annotated[
        str,
        typer.Option(metavar="REFERENCE", help="The token of the user who will own the units, by reference."),
    ] = "env:TEXERA_TOKEN",  # noqa: S107 - a reference
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Register the stack's Texera units, which Texera then offers to the user. Known units are left as they are.

    Texera calls them `local` and starts no pod for them; COMPUTING_UNIT_LOCAL_ENABLED must be set there.

    Example: lakewright texera register --stack acme --url https://texera.example
    """
    from lakewright.credentials.references import check_reference  # noqa: PLC0415
    from lakewright.environment.loading import stack_resolver  # noqa: PLC0415 - slow to load
    from lakewright.kubernetes.texera_registration import TexeraUnits  # noqa: PLC0415 - `--help` needs no client

    project, backend = open_stack(directory, stack)
    bodies = _read_registrations(project.name, backend, stack)
    try:
        reference = check_reference(token)
    except ValueError as error:
        raise UsageError(f"--token: {error}") from None
    resolve = stack_resolver(project.stack_config(stack))
    texera = TexeraUnits(url, resolve(reference))
    units = [texera.register(body) for body in bodies]
    if as_json:
        print(json.dumps([_to_json(unit) for unit in units], indent=2))
    else:
        for unit in units:
            state = "registered" if unit.is_new else "was registered"
            print(escape_line(f"{unit.name}  {unit.uri}  {state} as {unit.cuid}"))
    print(WAREHOUSES, file=sys.stderr)


def _read_registrations(project: str, backend: StateBackend, stack: str) -> list[dict[str, str]]:
    """Return the bodies of the stack's registrations. Raises UsageError if the stack has no units of Texera."""
    from lakewright_engine.state.outputs import stack_outputs  # noqa: PLC0415 - `--help` needs no engine

    bodies = stack_outputs(backend, project, stack).get(OUTPUT)
    if not bodies:
        raise UsageError(
            f"stack '{stack}' has no output `{OUTPUT}`; declare a computing unit with `runtime: texera` and run"
            f" `lakewright up --stack {stack}` first"
        )
    return cast(list[dict[str, str]], bodies)


def _to_json(unit: RegisteredUnit) -> dict[str, Any]:
    return {"name": unit.name, "uri": unit.uri, "cuid": unit.cuid, "is_new": unit.is_new}
