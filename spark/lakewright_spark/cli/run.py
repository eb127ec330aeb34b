"""Command `run`: run a PySpark script as one execution."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from lakewright_spark.catalog.loading import load_config
from lakewright_spark.cli import printing
from lakewright_spark.cli.options import (
    AsJson,
    ConfigFile,
    NoRegistry,
    RegistryUrl,
    duration,
    key_and_value,
    open_registry,
)
from lakewright_spark.run.facts import ExecutionFacts
from lakewright_spark.run.permissions import choose_run_warehouse


def run(
    script: Annotated[Path, typer.Argument(help="A PySpark script.", show_default=False)],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")] = None,
    *,
    workflow: Annotated[int, typer.Option(min=0, help="Texera's workflow id.")],
    execution: Annotated[int, typer.Option(min=0, help="Texera's execution id.")],
    config: ConfigFile = None,
    warehouse: Annotated[
        str | None,
        typer.Option(help="Warehouse of the results. Default: the unit's only warehouse, else the submitter's."),
    ] = None,
    computing_unit: Annotated[
        str | None,
        typer.Option("--computing-unit", envvar="LAKEWRIGHT_COMPUTING_UNIT", help="Name of the computing unit."),
    ] = None,
    submitter: Annotated[
        str | None,
        typer.Option(
            envvar="LAKEWRIGHT_SUBMITTER",
            help="Principal that submits the run: user:IDP~SUBJECT or role:NAME.",
        ),
    ] = None,
    deadline: Annotated[
        timedelta | None,
        typer.Option(parser=duration, metavar="DURATION", help="End the run after this time, such as 45m."),
    ] = None,
    master: Annotated[str | None, typer.Option(help="Master URL of Spark. Default: local[*].")] = None,
    remote: Annotated[str | None, typer.Option(help="A Spark Connect server, sc://HOST:PORT.")] = None,
    conf: Annotated[list[str] | None, typer.Option(help="Spark property KEY=VALUE; repeatable.")] = None,
    registry: RegistryUrl = None,
    no_registry: NoRegistry = False,
    as_json: AsJson = False,
) -> None:
    """Run a PySpark script as one execution, and store its results under the execution's addresses.

    Example: lakewright-spark run job.py --config catalog.json --execution 1 --workflow 1
    """
    catalog = load_config(config)
    run_warehouse = choose_run_warehouse(catalog, submitter, warehouse)
    facts = ExecutionFacts(
        workflow=workflow,
        execution=execution,
        warehouse=run_warehouse.name,
        computing_unit=computing_unit,
        submitter=submitter,
        deadline=datetime.now(UTC) + deadline if deadline else None,
        master=master,
        remote=remote,
        conf=dict(key_and_value(text) for text in conf or []),
    )
    from lakewright_spark.run.launch import Launch  # noqa: PLC0415  # loads PyIceberg, which a refusal need not wait for

    with open_registry(catalog, registry, none=no_registry) as entered:
        written = Launch(catalog, facts, script, arguments or [], entered, note=printing.note).run()
    if as_json:
        tables = {str(table.uri): {"rows": table.rows, "bytes": table.bytes} for table in written}
        print(
            json.dumps(
                {"workflow": workflow, "execution": execution, "warehouse": run_warehouse.name, "tables": tables}
            )
        )
        return
    rows = printing.columns("rows", "written as", fold=("written as",))
    for table in written:
        rows.add_row(f"{table.rows:,}", str(table.uri))
    printing.show(rows)
