"""Commands `runs list` and `runs show`: runs of maintenance jobs, from `ops.job_runs`."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright_spark.catalog.loading import choose_warehouse, load_config
from lakewright_spark.cli import printing
from lakewright_spark.cli.config_folder import Configs, print_each_report
from lakewright_spark.cli.options import AsJson, ConfigFile, duration, job_name
from lakewright_spark.errors import LakewrightSparkError, NoSuchResultError
from lakewright_spark.plain_help import PlainHelpTyper
from lakewright_spark.times import format_time
from lakewright_spark.unavailable_warehouses import UnavailableWarehouses

if TYPE_CHECKING:
    from lakewright_spark.catalog import CatalogConfig
    from lakewright_spark.scheduler.run_log.records import RunRecord

app = PlainHelpTyper(no_args_is_help=True, help="List runs of maintenance jobs.")
_STATES = ("QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED")

Warehouses = Annotated[
    list[str] | None, typer.Option("--warehouse", help="Name of a warehouse; repeatable. Default: all.")
]


def _state(text: str) -> str:
    if text.upper() not in _STATES:
        raise typer.BadParameter(f"expected one of {', '.join(_STATES)}, found {text!r}")
    return text.upper()


def _run_id(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{4,32}", text):
        raise typer.BadParameter(f"expected 4 to 32 hexadecimal digits, found {text!r}")
    return text


@app.callback()
def _group() -> None:
    """List runs of maintenance jobs."""


@app.command("list")
def list_runs(
    *,
    config: ConfigFile = None,
    warehouse: Warehouses = None,
    job: Annotated[str | None, typer.Option(parser=job_name, metavar="JOB")] = None,
    table: Annotated[str | None, typer.Option(metavar="NAMESPACE.TABLE", help="Whole name of the table.")] = None,
    state: Annotated[str | None, typer.Option(parser=_state, metavar="STATE", help=", ".join(_STATES))] = None,
    since: Annotated[
        timedelta, typer.Option(parser=duration, metavar="DURATION", help="Runs that were queued within this time.")
    ] = "7d",  # type: ignore[assignment]  # typer parses it
    configs: Configs = None,
    as_json: AsJson = False,
) -> None:
    """List runs, first queued first.

    Example: lakewright-spark runs list --since 7d
    """
    if configs is not None:
        print_each_report(configs, lambda _, catalog: _report_runs(catalog, since))
        return
    runs, error = _runs(load_config(config), warehouse, since, f"job = '{job}'" if job else "")
    selected = [
        run
        for run in runs
        if (job is None or run.job == job)
        and (state is None or run.state.value == state)
        and (table is None or str(run.table) in {table, f"{run.table.warehouse}.{table}"})
    ]
    if as_json:
        from lakewright_spark.scheduler.outcome import run_to_json  # noqa: PLC0415  # as below

        print(json.dumps([run_to_json(run) for run in selected]))
    else:
        _show(selected)
    if error:
        raise error


def _report_runs(catalog: CatalogConfig, since: timedelta) -> tuple[dict[str, Any], list[str]]:
    """Return the runs of a configuration for JSON, and the problems."""
    from lakewright_spark.scheduler.outcome import run_to_json  # noqa: PLC0415  # as below

    runs, error = _runs(catalog, None, since, "")
    return {"runs": [run_to_json(run) for run in runs]}, [str(error)] if error else []


def _show(runs: list[RunRecord]) -> None:
    names = ("run", "queued", "job", "table", "state", "seconds", "reason")
    rows = printing.columns(*names, fold=("table", "reason"))
    for run in runs:
        seconds = "" if run.seconds is None else f"{run.seconds:.1f}"
        queued = format_time(run.queued_at)
        rows.add_row(run.id[:8], queued, run.job, str(run.table), run.state.value, seconds, run.reason)
    printing.show(rows)


@app.command()
def show(
    run: Annotated[str, typer.Argument(parser=_run_id, metavar="RUN", help="ID of the run, or its first digits.")],
    *,
    config: ConfigFile = None,
    warehouse: Warehouses = None,
    as_json: AsJson = False,
) -> None:
    """Print all fields of one run.

    Example: lakewright-spark runs show 3f2a91
    """
    from lakewright_spark.scheduler.outcome import run_to_json  # noqa: PLC0415  # as below

    runs, error = _runs(load_config(config), warehouse, None, f"run_id LIKE '{run}%'")
    matching = [record for record in runs if record.id.startswith(run)]
    if len(matching) != 1:
        raise error or NoSuchResultError(f"expected one run whose id begins with {run}, found {len(matching)}")
    values = run_to_json(matching[0])
    if as_json:
        print(json.dumps(values))
        return
    for key, value in values.items():
        print(f"{key:12} {json.dumps(value) if isinstance(value, dict) else '' if value is None else value}")


def _runs(
    catalog: CatalogConfig, warehouses: list[str] | None, since: timedelta | None, row_filter: str
) -> tuple[list[RunRecord], LakewrightSparkError | None]:
    """Return the runs, and the error of unreadable warehouses. Raise the first error if no warehouse is readable."""
    from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog  # noqa: PLC0415  # loads pyarrow
    from lakewright_spark.scheduler.run_log import job_runs  # noqa: PLC0415

    earliest = datetime.now(UTC) - since if since else None
    runs: list[RunRecord] = []
    named_warehouses = [choose_warehouse(catalog, name) for name in warehouses or []]
    names, unavailable = (
        named_warehouses or [warehouse.name for warehouse in catalog.warehouses],
        UnavailableWarehouses(named_warehouses),
    )
    for name in names:
        with unavailable.record_failures(name):
            opened = open_catalog(catalog, name)
            with explain_errors(catalog, name, "ops.job_runs"):
                runs += job_runs.list_runs(opened, name, earliest, row_filter=row_filter)
    unavailable.check_any_left(names)
    printing.note(unavailable.note())
    return [run for run in runs if earliest is None or run.queued_at >= earliest], unavailable.error()
