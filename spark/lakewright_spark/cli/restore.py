"""Command `restore`: restore rows that retention deleted with a backup."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright_spark.catalog.loading import choose_warehouse, load_config
from lakewright_spark.cli import printing
from lakewright_spark.cli.options import AsJson, ConfigFile, Warehouse, key_and_value
from lakewright_spark.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def restore(
    *,
    table: Annotated[str, typer.Option(metavar="NAMESPACE.TABLE", help="A part with a dot in it in backquotes.")],
    backup: Annotated[
        str | None, typer.Option(metavar="NAME", help="The backup's name. Without it, the table's backups are listed.")
    ] = None,
    config: ConfigFile = None,
    warehouse: Warehouse = None,
    master: Annotated[str | None, typer.Option(help="Spark's master. Default: local[*].")] = None,
    conf: Annotated[list[str] | None, typer.Option(help="KEY=VALUE of Spark's; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Restore the rows of a backup of job `retention`. Rows that were deleted earlier remain deleted.

    Change the retention policy first: its next run deletes the rows again, into a new backup. No job works on the table
    in the meantime. The restore is recorded in `ops.job_runs`.

    Example: lakewright-spark restore --table results.orders --backup 2026-11-01
    """
    catalog = load_config(config)
    warehouse_name = choose_warehouse(catalog, warehouse)
    identifier = TableIdentifier.parse(warehouse_name, table)
    user_properties = dict(key_and_value(text) for text in conf or [])
    from lakewright_spark.maintenance import job_runner  # noqa: PLC0415  # load PySpark
    from lakewright_spark.maintenance import restore as restoring  # noqa: PLC0415
    from lakewright_spark.pyiceberg_client.table_policies import PolicyTables  # noqa: PLC0415
    from lakewright_spark.scheduler import supervisor  # noqa: PLC0415
    from lakewright_spark.scheduler.restore import RestoreRun  # noqa: PLC0415
    from lakewright_spark.session.builder import spark_session  # noqa: PLC0415

    policies = PolicyTables(catalog, warehouse_name).show(identifier).policies
    properties = {**job_runner.session_properties(catalog, warehouse_name), **user_properties}

    def start_spark() -> SparkSession:
        return spark_session(
            catalog.select_warehouses([warehouse_name]), "lakewright-restore", master=master, properties=properties
        )

    if backup is None:
        spark = start_spark()
        try:
            names = restoring.list_backups(spark, identifier)
        finally:
            spark.stop()
        print(json.dumps({"table": str(identifier), "backups": names}) if as_json else "\n".join(names) or "none")
        return
    with supervisor.handle_signals() as control:
        run = RestoreRun(catalog, identifier, backup, start_spark, control, warn=printing.complain)
        done = run.run()
    if as_json:
        print(json.dumps({"table": str(identifier), **dataclasses.asdict(done)}))
    else:
        print(f"{identifier}: {done.rows} rows of {done.files} files are restored from {done.backup}")
    if policies.retention:
        printing.complain("the retention policy still applies: its next run deletes these rows again")
