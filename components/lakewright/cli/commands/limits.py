"""`lakewright enforce-limits`: suspend grants of writers where a limit is reached, and grant them again below it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.deployed_stacks import open_deployed_stacks
from lakewright.cli.options import HERE, Directory, Everything, Labels, Names
from lakewright.cli.stack_reports import read_stack_reports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakewright.limits.stack_enforcement import StackEnforcement


def enforce_limits(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Suspend grants of `create` and `modify` where a limit with `enforce: true` is reached.

    Where the limit of compute is reached, no computing unit is started in the rest of the month.

    Measures usage as `lakewright fleet usage` does, with the identity of the tenants' jobs. When usage is below 95 % of
    the limit, a later run grants the suspended grants again. Reads the states of the stacks and changes none. Stacks
    that are being updated are left to the next run.

    Exit codes: 0 limits are enforced; 1 something could not be measured, suspended or granted again.

    Example: lakewright enforce-limits --all
    """
    from lakewright.limits import enforcement as runs  # noqa: PLC0415 - `--help` needs none of it

    project, selected, states = open_deployed_stacks(stack, label, directory, everything=everything)
    enforcements = runs.enforce_limits(
        project, selected, lambda stacks: read_stack_reports(project, runs.MEASURE_COMMAND, stacks), reader=states
    )
    if as_json:
        print(json.dumps(runs.to_json(enforcements), indent=2, ensure_ascii=False))
    else:
        _print_enforcements(enforcements)
    raise typer.Exit(runs.compute_exit_code(enforcements))


def _print_enforcements(enforcements: Sequence[StackEnforcement]) -> None:
    from lakewright.terminal.escaping import escape_line  # noqa: PLC0415

    lines = [line for enforcement in enforcements for line in _format_enforcement(enforcement)]
    for line in lines:
        print(escape_line(line))
    if not lines:
        print("No limit is enforced.")


def _format_enforcement(enforcement: StackEnforcement) -> list[str]:
    lines = [
        f"{enforcement.stack}: limit of {limit.part} is enforced: {limit.used} of {limit.limit} {limit.quantity}"
        for limit in enforcement.limits
        if limit.part in enforcement.full_parts
    ]
    lines += [f"{enforcement.stack}: suspended {name}" for name in enforcement.suspended]
    lines += [f"{enforcement.stack}: granted {name} again" for name in enforcement.restored]
    if enforcement.units:
        lines.append(f"{enforcement.stack}: starts of computing units are {enforcement.units}")
    return lines + [f"error: {enforcement.stack}: {problem}" for problem in enforcement.problems]
