"""`lakewright drift`: what differs between the states of many stacks and the servers, without running a program."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli.errors import UsageError, format_error
from lakewright.cli.options import HERE, Directory, Everything, Labels, Names, load_project, selection_of

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.drift.model import DriftReport
    from lakewright.fleet.selection import SelectedStack, Selection

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Requests = Annotated[int, typer.Option("--parallel", "-p", min=1, help="Number of concurrent requests.")]
DEFAULT_REQUESTS = 32


def drift(
    stack: Names = None,
    directory: Directory = HERE,
    *,
    label: Labels = None,
    everything: Everything = False,
    as_json: AsJson = False,
    parallel: Requests = DEFAULT_REQUESTS,
    unmanaged_tables: Annotated[
        bool,
        typer.Option("--unmanaged-tables", help="Also show namespaces and tables in no stack, which jobs make."),
    ] = False,
) -> None:
    """Show what was changed outside the stacks. No program runs, and nothing is changed.

    Exit code 0 without drift, 7 with drift, and 1 if anything could not be checked.

    Example: lakewright drift --all --json
    """
    if not (stack or label or everything):
        raise UsageError("drift: name stacks with --stack or --label, or use --all")
    try:
        project, selection = load_project(directory), selection_of(stack, label, everything=everything)
        report = _find(project, selection, parallel, unmanaged_tables=unmanaged_tables)
    except Exception as error:
        if as_json:
            print(json.dumps(_failure(error), indent=2, ensure_ascii=False))
        raise
    if as_json:
        print(json.dumps(report.to_json(), indent=2, ensure_ascii=False, default=str))
    else:
        _print(report)
    raise typer.Exit(report.exit_code)


def _find(project: PulumiProject, selection: Selection, parallel: int, *, unmanaged_tables: bool) -> DriftReport:
    from lakewright.drift.detection.run import find_drift  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.drift.detection.steps import DriftOptions  # noqa: PLC0415
    from lakewright.drift.model import UnmanagedSearch  # noqa: PLC0415
    from lakewright.fleet.selection import select  # noqa: PLC0415
    from lakewright.fleet.states import state_reader  # noqa: PLC0415

    reader = state_reader(project)
    names = reader.names()
    selected = select(project, selection, names)
    options = DriftOptions(search=UnmanagedSearch.TABLES if unmanaged_tables else UnmanagedSearch.OBJECTS)
    return find_drift(
        project, _deployed(selected, names), parallel=parallel, progress=_report, reader=reader, options=options
    )


def _deployed(selected: list[SelectedStack], names: list[str]) -> list[SelectedStack]:
    """Return the stacks that have a state. Those without one have nothing that could drift."""
    known = set(names)
    if absent := [stack.name for stack in selected if stack.name not in known]:
        _report(f"not deployed, so not compared: {', '.join(absent)}")
    return [stack for stack in selected if stack.name in known]


def _report(text: str) -> None:
    print(f"drift: {text}", file=sys.stderr, flush=True)


def _failure(error: Exception) -> dict[str, Any]:
    return {"version": 1, "exit": getattr(error, "exit_code", 1), "stacks": [], "error": format_error(error)}


def _print(report: DriftReport) -> None:
    from rich.console import Console  # noqa: PLC0415

    from lakewright.drift.text import LOG_WIDTH, print_report  # noqa: PLC0415

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=LOG_WIDTH)
    print_report(report, console)
