"""`lakewright-spark job`: one maintenance job on one table."""

from __future__ import annotations

import dataclasses
import json
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lakewright_spark.catalog_policies import JOBS, Job
from lakewright_spark.cli.durations import duration
from lakewright_spark.cli.options import (
    AsJson,
    ConfigFile,
    RegistryUrl,
    Warehouse,
    chosen_warehouse,
    key_and_value,
    load_config,
    open_registry,
)
from lakewright_spark.errors import JobRefusedError
from lakewright_spark.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from lakewright_spark.maintenance.job import Metrics


def _job(name: str) -> str:
    if name not in JOBS:
        raise typer.BadParameter(f"expected one of {', '.join(JOBS)}, found {name!r}")
    return name


def job(
    name: Annotated[str, typer.Argument(parser=_job, metavar="JOB", help=", ".join(JOBS))],
    *,
    table: Annotated[str, typer.Option(metavar="NAMESPACE.TABLE", help="A part with a dot in it in backquotes.")],
    config: ConfigFile = None,
    warehouse: Warehouse = None,
    registry: RegistryUrl = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what it would do, and do nothing.")] = False,
    deadline: Annotated[
        timedelta | None, typer.Option(parser=duration, metavar="DURATION", help="End it after so long, as in 45m.")
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master. Default: local[*].")] = None,
    conf: Annotated[list[str] | None, typer.Option(help="KEY=VALUE of Spark's; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a maintenance job on a table, as its policies say. A result is compacted once its registry says it ended."""
    catalog = load_config(config)
    ends = datetime.now(UTC) + deadline if deadline else None
    given = dict(key_and_value(text) for text in conf or [])
    chosen = chosen_warehouse(catalog, warehouse)
    identifier = TableIdentifier.parse(chosen, table)
    # A job that is switched off need not wait for a JVM.
    from lakewright_spark.maintenance.job import Metrics, reason_of_server, reason_to_skip  # noqa: PLC0415
    from lakewright_spark.maintenance.running import reason_to_wait  # noqa: PLC0415
    from lakewright_spark.policies.tables import PolicyTables  # noqa: PLC0415

    policy = PolicyTables(catalog, chosen).show(identifier).policies
    if reason := reason_of_server(cast(Job, name), policy):
        raise JobRefusedError(f"{name} of {identifier}: {reason}; one of both may do it: see `maintenance` in the spec")
    now = datetime.now(UTC)
    reason = reason_to_skip(cast(Job, name), policy, now)
    if reason is None and name == "compaction":
        named = registry or os.environ.get("LAKEWRIGHT_REGISTRY")
        with open_registry(catalog, named, none=named is None) as executions:
            reason = reason_to_wait(identifier, executions)
    if reason:
        _tell(name, identifier, Metrics(state="SKIPPED", reason=reason, dry_run=dry_run), as_json=as_json)
        return
    from lakewright_spark.deadline import ending  # noqa: PLC0415
    from lakewright_spark.maintenance import jobs  # noqa: PLC0415
    from lakewright_spark.session import spark_session  # noqa: PLC0415

    only = catalog.for_warehouses([chosen])
    properties = jobs.session_properties(chosen) | given
    spark = spark_session(only, f"lakewright-{name}", master=master, deadline=ends, properties=properties)
    try:
        with ending(spark, ends, f"{name} of {identifier}"):
            metrics = jobs.run(cast(Job, name), spark, identifier, policy, dry_run=dry_run, now=now)
    finally:
        spark.stop()
    _tell(name, identifier, metrics, as_json=as_json)


def _tell(name: str, table: TableIdentifier, metrics: Metrics, *, as_json: bool) -> None:
    found = dataclasses.asdict(metrics)
    if as_json:
        print(json.dumps({"job": name, "table": str(table), **found}))
        return
    if metrics.state == "SKIPPED":
        print(f"{name} of {table}: skipped, {metrics.reason}")
        return
    told = ", ".join(f"{key} {value}" for key, value in found.items() if key not in {"state", "reason", "dry_run"})
    print(f"{name} of {table}: {'would do: ' if metrics.dry_run else ''}{told}")
