"""`lakewright fleet usage` and `lakewright fleet runs`: reports of `lakewright-spark` on many tenants."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli.options import HERE, Directory, Everything, Labels, Names, load_project, make_selection
from lakewright.terminal.escaping import escape_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lakewright.fleet.selection import Selection
    from lakewright.fleet.spark_reports import SparkReport

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def usage(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
    as_json: AsJson = False,
) -> None:
    """Report storage use by tenant, warehouse and owner: live and reclaimable bytes, tables, files and snapshots.

    Reads the tables' metadata with the identity of the tenants' jobs; no Spark runs. It needs PyIceberg
    (`lakewright-spark[jobs]`), and the secrets that the catalog configurations refer to. Exit code 1 if something could
    not be read.

    Example: lakewright fleet usage --label cost-center=4711 --json
    """
    from lakewright.fleet.usage import COMMAND, format_usage, to_usage_json  # noqa: PLC0415 - `--help` needs none of it

    reports = _read_reports(COMMAND, directory, make_selection(stack, label, everything=everything))
    _print_reports(reports, to_usage_json if as_json else None, format_usage)


def runs(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
    since: Annotated[
        str, typer.Option("--since", metavar="DURATION", help="Runs that were queued within this time, such as 30d.")
    ] = "7d",
    as_json: AsJson = False,
) -> None:
    """List the runs of maintenance jobs of many tenants, with their cost and gain in --json.

    Reads the tables `ops.job_runs` with the identity of the tenants' jobs; no Spark runs. It needs the same as
    `lakewright fleet usage`. Exit code 1 if something could not be read.

    Example: lakewright fleet runs --since 1d --json
    """
    from lakewright.fleet.maintenance_runs import COMMAND, format_runs, to_runs_json  # noqa: PLC0415

    command = (*COMMAND, "--since", since)
    reports = _read_reports(command, directory, make_selection(stack, label, everything=everything))
    _print_reports(reports, to_runs_json if as_json else None, format_runs)


def _read_reports(command: Sequence[str], directory: Path, selection: Selection) -> list[SparkReport]:
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415 - `--help` needs no engine

    from lakewright.cli.catalog_config import read_catalog_config  # noqa: PLC0415
    from lakewright.cli.errors import UsageError  # noqa: PLC0415
    from lakewright.fleet.absent_stacks import find_absent_stacks  # noqa: PLC0415
    from lakewright.fleet.selection import select  # noqa: PLC0415
    from lakewright.fleet.spark_reports import read_spark_reports  # noqa: PLC0415

    project = load_project(directory)
    stacks = select(project, selection)
    absent = [stack.name for stack in find_absent_stacks(project, stacks)]
    errors = (EngineError, UsageError)
    return read_spark_reports(command, stacks, lambda name: read_catalog_config(project, name), errors, absent)


def _print_reports(
    reports: Sequence[SparkReport],
    to_json: Callable[[Sequence[SparkReport]], dict[str, Any]] | None,
    format_lines: Callable[[Sequence[SparkReport]], list[str]],
) -> None:
    """Print the reports as JSON or as lines, and end the command."""
    from lakewright.fleet.progress import format_not_deployed  # noqa: PLC0415
    from lakewright.fleet.spark_reports import compute_exit_code  # noqa: PLC0415

    if to_json:
        print(json.dumps(to_json(reports), indent=2, ensure_ascii=False))
    else:
        print("\n".join(format_lines(reports)))
        for report in reports:
            if report.problem:
                print(f"error: {report.stack.name}: {escape_line(report.problem)}", file=sys.stderr)
        if absent := [report.stack.name for report in reports if not report.is_deployed]:
            print(format_not_deployed(absent), file=sys.stderr)
    raise typer.Exit(compute_exit_code(reports))
