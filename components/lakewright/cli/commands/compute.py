"""`lakewright record-compute`: record the hours of computing units from the pods of Kubernetes."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from lakewright.cli.deployed_stacks import open_deployed_stacks
from lakewright.cli.options import HERE, Directory, Everything, Labels, Names
from lakewright.cli.stack_reports import read_stack_reports


def record_compute(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Record for how long each pod of a computing unit ran on each UTC day, until now.

    Reads the pods in the tenants' namespaces, and writes `ops.compute_usage` with the identity of the tenants' jobs. A
    later run replaces the measurement of the same pod and day, so the command can run at any interval. Pods that start
    and end between two runs are not counted.

    Exit codes: 0 all pods are recorded; 1 something could not be read or recorded.

    Example: lakewright record-compute --all
    """
    from lakewright.costs import compute_collection  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.terminal.escaping import escape_line  # noqa: PLC0415

    project, selected, states = open_deployed_stacks(stack, label, directory, everything=everything)
    computes = compute_collection.record_compute(
        project, selected, lambda command, stacks: read_stack_reports(project, command, stacks), reader=states
    )
    if as_json:
        print(json.dumps(compute_collection.to_json(computes), indent=2, ensure_ascii=False))
    else:
        for compute in computes:
            print(escape_line(f"{compute.stack.name}: {compute.pods} pods of computing units"))
        if not computes:
            print("No stack has computing units.")
    for compute in computes if not as_json else ():
        if compute.problem:
            print(f"error: {escape_line(f'{compute.stack.name}: {compute.problem}')}", file=sys.stderr)
    raise typer.Exit(compute_collection.compute_exit_code(computes))
