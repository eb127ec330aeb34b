"""`lakewright fleet status`: archived warehouses and enforced limits of many tenants."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from lakewright.cli.deployed_stacks import open_deployed_stacks
from lakewright.cli.options import HERE, Directory, Everything, Labels, Names
from lakewright.terminal.escaping import escape_line
from lakewright.validation.moment import read_clock


def status(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List archived warehouses with the times of their purges, and enforced limits, by default of all stacks.

    Reads Lakekeeper with the identity of the stacks, and changes nothing. Exit code 1 if something could not be read.

    Example: lakewright fleet status --stack 'team-*' --json
    """
    from lakewright.restrictions.model import compute_exit_code, list_lines, to_json  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.restrictions.reading import read_restrictions  # noqa: PLC0415

    selects_all = everything or not (stack or label)
    project, selected, states = open_deployed_stacks(stack, label, directory, everything=selects_all)
    restrictions, now = read_restrictions(project, selected, reader=states), read_clock()
    if as_json:
        print(json.dumps(to_json(restrictions, now), indent=2, ensure_ascii=False))
    else:
        for line in list_lines(restrictions, now):
            print(escape_line(line))
        for entry in restrictions:
            for problem in entry.problems:
                print(f"error: {entry.stack}: {escape_line(problem)}", file=sys.stderr)
    raise typer.Exit(compute_exit_code(restrictions))
