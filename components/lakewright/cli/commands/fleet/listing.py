"""`lakewright fleet list`: the tenants of a project and the states of their stacks."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.options import HERE, Directory, Everything, Labels, Names, load_project, make_selection
from lakewright.terminal.escaping import escape_line

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import Selection


def list_fleet(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
    unmanaged: Annotated[
        bool,
        typer.Option(
            "--unmanaged",
            help="List the objects on the servers that are in no stack, and the share that stacks manage.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the tenants with environment, labels and the state of their stack. Exit code 1 if a state is unreadable.

    With --unmanaged, list instead what Lakekeeper, AWS and the cluster of their environments have outside of stacks.

    Example: lakewright fleet list --label cost-center=4711 --json
    """
    from lakewright.fleet.listing import format_listing, list_stacks, to_listing_json  # noqa: PLC0415 - `--help` needs no engine

    project, selection = load_project(directory), make_selection(stack, label, everything=everything)
    if unmanaged:
        raise typer.Exit(_print_coverage(project, selection, as_json=as_json))
    stacks = list_stacks(project, selection)
    if as_json:
        print(json.dumps(to_listing_json(stacks), indent=2, ensure_ascii=False))
    else:
        print("\n".join(format_listing(stacks)))
    if any(entry.problem for entry in stacks):
        raise typer.Exit(1)


def _print_coverage(project: PulumiProject, selection: Selection, *, as_json: bool) -> int:
    """Print which objects of the environments are in no stack. Return the exit code."""
    from lakewright.discovery.survey.coverage import format_coverage  # noqa: PLC0415
    from lakewright.discovery.survey.server_survey import survey_coverage  # noqa: PLC0415
    from lakewright.environment.loading import load_environment  # noqa: PLC0415 - slow to load
    from lakewright.fleet.selection import select  # noqa: PLC0415

    names = dict.fromkeys(stack.environment for stack in select(project, selection) if stack.environment)
    coverage = survey_coverage(project, [*names], load=lambda name: load_environment(project, name))
    print(json.dumps(coverage.to_json(), indent=2, ensure_ascii=False) if as_json else format_coverage(coverage))
    for problem in coverage.problems if not as_json else ():
        print(f"error: {escape_line(problem)}", file=sys.stderr)
    return coverage.exit_code
