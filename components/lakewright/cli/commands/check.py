"""`lakewright check`: evaluate the assertions in `checks` of tenants' specs."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Concurrency, Directory, Everything, Labels, Names, load_project, make_selection

if TYPE_CHECKING:
    from lakewright.data_checks.result import StackChecks
    from lakewright.fleet.selection import Selection

DEFAULT_CONCURRENCY = 16
_COLORS = {"passed": "green", "failed": "red", "not evaluated": "yellow"}


def check(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    parallel_stacks: Concurrency = None,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check what specs assert about their data: recent rows, sizes of warehouses, and who can read or write.

    Only reads metadata, with the identity of the stacks. No Spark is needed, and no data file is read.

    Exit codes: 0 all checks passed; 7 a check failed; 1 a check could not be evaluated.

    Example: lakewright check --stack acme --json
    """
    if not everything and not stack and not label:
        raise UsageError("name the stacks with --stack PATTERN or --label NAME=VALUE, or choose --all")
    started = time.monotonic()
    selection = make_selection(stack, label, everything=everything)
    results = _results(selection, directory, parallel_stacks or DEFAULT_CONCURRENCY)
    from lakewright.data_checks.result import compute_exit_code, to_json  # noqa: PLC0415 - `--help` needs none of it

    if as_json:
        print(json.dumps(to_json(results, seconds=time.monotonic() - started), indent=2, ensure_ascii=False))
    else:
        _print(results)
    raise typer.Exit(compute_exit_code(results))


def _results(selection: Selection, directory: Directory, parallel: int) -> list[StackChecks]:
    from lakewright.data_checks.run import run_checks  # noqa: PLC0415
    from lakewright.data_checks.target_loading import check_targets  # noqa: PLC0415
    from lakewright.fleet.selection import select  # noqa: PLC0415

    project = load_project(directory)
    targets, unreadable = check_targets(project, select(project, selection))
    return sorted([*run_checks(targets, parallel=parallel), *unreadable], key=lambda result: result.stack)


def _print(results: list[StackChecks]) -> None:
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from lakewright.terminal.console import open_console  # noqa: PLC0415
    from lakewright.terminal.escaping import escape_line  # noqa: PLC0415

    console = open_console()
    if not results:
        console.print("No stack of the selection has `checks` in its spec.")
        return
    table = Table("stack", "check", "expected", "found", "result")
    for result in results:
        for check in result.checks:
            color = _COLORS[check.outcome]
            table.add_row(
                *(escape(escape_line(cell)) for cell in (result.stack, check.check, check.expected, check.finding)),
                f"[{color}]{check.outcome}[/]",
            )
    if table.row_count:
        console.print(table)
    for result in results:
        for problem in result.problems:
            console.print(
                f"error: {escape(result.stack)}: not evaluated: {escape(escape_line(problem))}", soft_wrap=True
            )
    outcomes = [check.outcome for result in results for check in result.checks]
    unread = sum(bool(result.problems) for result in results)
    counts = [f"{outcomes.count(name)} {name}" for name in ("passed", "failed", "not evaluated") if name in outcomes]
    counts += [f"{unread} stacks not evaluated"] if unread else []
    console.print(f"{len(results)} stacks with checks: {', '.join(counts) or 'nothing to check'}.")
