"""`lakewright fleet usage` and `lakewright fleet runs`: reports of `lakewright-spark` on many tenants."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from lakewright.cli.options import HERE, Directory, Everything, Labels, Names, load_project, make_selection
from lakewright.cli.stack_reports import read_stack_reports
from lakewright.terminal.escaping import escape_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakewright.costs.cost_report import CostReport
    from lakewright.fleet.selection import Selection
    from lakewright.fleet.spark_reports import SparkReport

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def usage(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="DURATION", help="Report months and costs from recorded days, such as 90d."),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", metavar="GROUP", help="With --since: `month`, `owner`, `label` or `label=NAME`.")
    ] = "month",
    prices: Annotated[
        Path | None, typer.Option("--prices", metavar="FILE", help="With --since: file of prices, for costs.")
    ] = None,
    requests: Annotated[
        bool,
        typer.Option(
            "--requests", help="With --since: read requests to S3 from CloudWatch, with the identity of the stacks."
        ),
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="With --since and --prices: print CSV with the columns of FOCUS.")
    ] = False,
    textfile: Annotated[
        Path | None,
        typer.Option(
            "--textfile", metavar="FILE", help="With --since: also write gauges for Prometheus to a file *.prom."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report storage use by tenant, warehouse and owner: live and reclaimable bytes, tables, files and snapshots.

    Reads the tables' metadata with the identity of the tenants' jobs; no Spark runs. It needs PyIceberg
    (`lakewright-spark[jobs]`), and the secrets that the catalog configurations refer to. With `--since`, it reports
    months, costs, growth and when limits are reached, from the rows that maintenance writes to `ops.daily_usage` every
    day. Exit code 1 if something could not be read.

    Example: lakewright fleet usage --since 90d --by owner --prices prices.yaml --csv
    """
    from lakewright.cli.errors import UsageError  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.fleet.usage import COMMAND, format_usage, to_usage_json  # noqa: PLC0415

    selection = make_selection(stack, label, everything=everything)
    if since is not None:
        if as_csv and as_json:
            raise UsageError("expected either --csv or --json")
        if as_csv and prices is None:
            raise UsageError("expected --prices with --csv: rows of FOCUS have no empty costs")
        from lakewright.ci.publishing.gauges import check_textfile  # noqa: PLC0415
        from lakewright.costs.cost_report import DAYS_COMMAND, CostReport, Grouping  # noqa: PLC0415
        from lakewright.costs.prices import read_prices  # noqa: PLC0415

        try:
            grouping = Grouping.parse(by)
        except ValueError as error:
            raise UsageError(f"--by: {error}") from None
        price_list = read_prices(prices) if prices else None
        if textfile:
            check_textfile(textfile)
        reports = _read_reports((*DAYS_COMMAND, "--since", since), directory, selection)
        if requests:
            reports = _add_requests(reports, directory)
        form = "csv" if as_csv else "json" if as_json else "lines"
        report = CostReport(reports, grouping, price_list)
        if textfile:
            _write_gauges(report, textfile)
        _print_costs(reports, report, form)
    if prices or as_csv or requests or textfile or by != "month":
        raise UsageError("expected --since with --by, --prices, --requests, --textfile and --csv")
    reports = _read_reports(COMMAND, directory, selection)
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


def _add_requests(reports: list[SparkReport], directory: Path) -> list[SparkReport]:
    """Return the reports with the requests that CloudWatch has."""
    from lakewright.costs.store_requests import add_requests  # noqa: PLC0415
    from lakewright.credentials.aws_session import open_aws_session  # noqa: PLC0415
    from lakewright.environment.loading import load_environment  # noqa: PLC0415
    from lakewright.validation.documents import as_text  # noqa: PLC0415

    project = load_project(directory)

    def open_client(environment: str, region: str | None) -> Any:
        aws = load_environment(project, environment).aws
        session = open_aws_session(aws.profile, region or aws.region, aws.shared_credentials_file)
        return session.client("cloudwatch", endpoint_url=aws.endpoint)

    def find_region(stack: str) -> str | None:
        return as_text(project.stack_config(stack).values.get("aws:region"))

    return add_requests(reports, open_client, find_region)


def _write_gauges(report: CostReport, file: Path) -> None:
    from lakewright.ci.publishing.gauges import write_registry  # noqa: PLC0415

    write_registry(report.make_gauges(), file)


def _print_costs(reports: Sequence[SparkReport], report: CostReport, form: Literal["csv", "json", "lines"]) -> NoReturn:
    """Print usage and costs since a time, and end the command."""
    if form == "json":
        _print_reports(reports, lambda _: report.to_json(), lambda _: [])
    lines = report.format_csv().splitlines() if form == "csv" else report.format_lines()
    _print_reports(reports, None, lambda _: lines)


def _read_reports(command: Sequence[str], directory: Path, selection: Selection) -> list[SparkReport]:
    from lakewright.fleet.absent_stacks import find_absent_stacks  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.fleet.selection import select  # noqa: PLC0415

    project = load_project(directory)
    stacks = select(project, selection)
    absent = [stack.name for stack in find_absent_stacks(project, stacks)]
    return read_stack_reports(project, command, stacks, absent)


def _print_reports(
    reports: Sequence[SparkReport],
    to_json: Callable[[Sequence[SparkReport]], dict[str, Any]] | None,
    format_lines: Callable[[Sequence[SparkReport]], list[str]],
) -> NoReturn:
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
