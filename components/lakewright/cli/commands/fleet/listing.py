"""`lakewright fleet list`: the tenants of a project and the states of their stacks."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lakewright.cli.options import HERE, Directory, Everything, Labels, Names, load_project, selection_of


def list_fleet(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the tenants with environment, labels and the state of their stack.

    Example: lakewright fleet list --label cost-center=4711 --json
    """
    from lakewright.fleet.listing import list_stacks, listing_lines  # noqa: PLC0415 - `--help` needs no engine

    listed = list_stacks(load_project(directory), selection_of(stack, label, everything=everything))
    if as_json:
        print(json.dumps({"version": 1, "stacks": [found.to_json() for found in listed]}, indent=2, ensure_ascii=False))
    else:
        print("\n".join(listing_lines(listed)))
    if any(found.problem for found in listed):
        raise typer.Exit(1)
