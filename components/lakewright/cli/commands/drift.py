"""`lakewright drift`: what differs between the states of many stacks and the servers, without running a program."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli.errors import UsageError, format_error
from lakewright.cli.options import HERE, Directory, Everything, Labels, Names, load_project, make_selection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakewright_engine.project.project import PulumiProject

    from lakewright.cli.commands.drift_actions import Outcome
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
    accept: Annotated[
        bool, typer.Option("--accept", help="Write what was found into the specs, after a confirmation.")
    ] = False,
    heal: Annotated[
        bool, typer.Option("--heal", help="Revert what was found, and nothing else, after a confirmation.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Go ahead with --accept or --heal without asking.")] = False,
    unmanaged_tables: Annotated[
        bool,
        typer.Option("--unmanaged-tables", help="Also show namespaces and tables in no stack, which jobs make."),
    ] = False,
) -> None:
    """Show what was changed outside the stacks. No program runs, and nothing is changed without --accept or --heal.

    Exit code 0 without drift, 7 with drift, and 1 if anything could not be checked. After --accept and --heal, 7 means
    that differences are left, and 1 that something failed.

    Example: lakewright drift --all --json
    """
    if not (stack or label or everything):
        raise UsageError("drift: name stacks with --stack or --label, or use --all")
    if accept and heal:
        raise UsageError("drift: --accept and --heal cannot be combined: one changes the specs, the other the servers")
    if accept or heal:
        from lakewright.cli.commands.drift_actions import require_confirmation  # noqa: PLC0415

        require_confirmation("--accept" if accept else "--heal", yes=yes, as_json=as_json)
    try:
        project, selection = load_project(directory), make_selection(stack, label, everything=everything)
        selected = _select_stacks(project, selection)
        find = _finder(project, parallel, unmanaged_tables=unmanaged_tables)
        report = find(selected)
        if not as_json:
            _print(report)
        outcome = _act(project, report, selected, find, accept=accept, heal=heal, yes=yes)
    except Exception as error:
        if as_json:
            print(json.dumps(_failure(error), indent=2, ensure_ascii=False))
        raise
    if as_json:
        document = {**report.to_json(), **outcome.document, "exit": outcome.exit_code}
        print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
    raise typer.Exit(outcome.exit_code)


def _act(
    project: PulumiProject,
    report: DriftReport,
    selected: list[SelectedStack],
    find: Callable[[Sequence[SelectedStack]], DriftReport],
    *,
    accept: bool,
    heal: bool,
    yes: bool,
) -> Outcome:
    """Do what the options ask for. Return the exit code, and what is added to the JSON document."""
    from lakewright.cli.commands.drift_actions import Outcome, accept_drift, heal_drift  # noqa: PLC0415

    if accept:
        return accept_drift(project, report, yes=yes)
    if heal:
        return heal_drift(project, report, selected, find, yes=yes)
    return Outcome({}, report.exit_code)


def _select_stacks(project: PulumiProject, selection: Selection) -> list[SelectedStack]:
    from lakewright.fleet.selection import select  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.fleet.states import state_reader  # noqa: PLC0415

    names = state_reader(project).names()
    return _drop_undeployed(select(project, selection, names), names)


def _finder(
    project: PulumiProject, parallel: int, *, unmanaged_tables: bool
) -> Callable[[Sequence[SelectedStack]], DriftReport]:
    """Return a function that finds the drift of stacks."""
    from lakewright.drift.detection.run import find_drift  # noqa: PLC0415
    from lakewright.drift.detection.steps import DriftOptions  # noqa: PLC0415
    from lakewright.drift.model import UnmanagedSearch  # noqa: PLC0415

    options = DriftOptions(search=UnmanagedSearch.TABLES if unmanaged_tables else UnmanagedSearch.OBJECTS)
    return lambda stacks: find_drift(project, stacks, parallel=parallel, progress=_report, options=options)


def _drop_undeployed(selected: list[SelectedStack], names: list[str]) -> list[SelectedStack]:
    """Return the stacks that have a state. A stack without a state has nothing that could drift."""
    deployed_names = set(names)
    if absent := [stack.name for stack in selected if stack.name not in deployed_names]:
        _report(f"not deployed, so not compared: {', '.join(absent)}")
    return [stack for stack in selected if stack.name in deployed_names]


def _report(text: str) -> None:
    print(f"drift: {text}", file=sys.stderr, flush=True)


def _failure(error: Exception) -> dict[str, Any]:
    from lakewright.terminal.json_document import make_head  # noqa: PLC0415

    return {**make_head("drift"), "exit": getattr(error, "exit_code", 1), "stacks": [], "error": format_error(error)}


def _print(report: DriftReport) -> None:
    from lakewright.drift.detection.text import LOG_WIDTH, print_report  # noqa: PLC0415
    from lakewright.terminal.console import open_console  # noqa: PLC0415

    console = open_console(highlight=False)
    if not console.is_terminal:
        console = open_console(highlight=False, width=LOG_WIDTH)
    print_report(report, console)
