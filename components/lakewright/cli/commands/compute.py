"""`lakewright record-compute`: record hours of computing units, and the days of archived warehouses."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.deployed_stacks import open_deployed_stacks
from lakewright.cli.options import HERE, Directory, Everything, Labels, Names
from lakewright.cli.stack_reports import read_stack_reports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakewright.fleet.selection import SelectedStack
    from lakewright.fleet.spark_reports import SparkReport


def record_compute(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Record for how long each pod of a computing unit ran on each UTC day until now, and days of archived warehouses.

    Reads the pods in the tenants' namespaces, and writes `ops.compute_usage` with the identity of the tenants' jobs. A
    later run replaces the measurement of the same pod and day, so the command can run at any interval. Pods that start
    and end between two runs are not counted. For an archived warehouse, whose jobs cannot write, it adds a row for each
    day until now to `ops.daily_usage` of the tenant's first warehouse.

    Exit codes: 0 all pods and days are recorded; 1 something could not be read or recorded.

    Example: lakewright record-compute --all
    """
    from lakewright.costs import archive_collection, compute_collection  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.terminal.escaping import escape_line  # noqa: PLC0415

    project, selected, states = open_deployed_stacks(stack, label, directory, everything=everything)

    def record(command: Sequence[str], stacks: Sequence[SelectedStack]) -> Sequence[SparkReport]:
        return read_stack_reports(project, command, stacks)

    computes = compute_collection.record_compute(project, selected, record, reader=states)
    archives = archive_collection.record_archives(project, selected, record, reader=states)
    exit_code = int(any(entry.problem for entry in (*computes, *archives)))
    if as_json:
        document = compute_collection.to_json(computes)
        document |= {"exit": exit_code, "archives": [entry.to_json() for entry in archives]}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        raise typer.Exit(exit_code)
    for compute in computes:
        print(escape_line(f"{compute.stack.name}: {compute.pods} pods of computing units"))
    if not computes:
        print("No stack has computing units.")
    for entry in archives:
        for warehouse, days in entry.days.items():
            print(escape_line(f"{entry.stack.name}: {days} days of archived warehouse {warehouse}"))
    for entry in (*computes, *archives):
        if entry.problem:
            print(f"error: {escape_line(f'{entry.stack.name}: {entry.problem}')}", file=sys.stderr)
    raise typer.Exit(exit_code)
