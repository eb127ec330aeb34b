"""`lakewright-spark job`: one maintenance job on one table."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lakewright_spark.catalog.loading import chosen_warehouse, load_config
from lakewright_spark.cli.options import (
    AsJson,
    ConfigFile,
    RegistryIfNamed,
    Warehouse,
    duration,
    job_name,
    key_and_value,
    open_registry,
)
from lakewright_spark.errors import DeadlineError, JobFailedError, JobRefusedError, StoppedError
from lakewright_spark.policies.model import JOBS, JobName
from lakewright_spark.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from lakewright_spark.scheduler.outcome import Outcome
    from lakewright_spark.scheduler.run_log.records import RunRecord


def job(
    name: Annotated[str, typer.Argument(parser=job_name, metavar="JOB", help=", ".join(JOBS))],
    *,
    table: Annotated[str, typer.Option(metavar="NAMESPACE.TABLE", help="A part with a dot in it in backquotes.")],
    config: ConfigFile = None,
    warehouse: Warehouse = None,
    registry: RegistryIfNamed = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what it would do, and do nothing.")] = False,
    deadline: Annotated[
        timedelta | None, typer.Option(parser=duration, metavar="DURATION", help="End it after so long, as in 45m.")
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master. Default: local[*].")] = None,
    conf: Annotated[list[str] | None, typer.Option(help="KEY=VALUE of Spark's; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a maintenance job on a table, as its policies say. A result is compacted once its registry says it ended.

    One runner at a time works on a table: a `maintain` of the whole warehouse leaves the table to this job. The run is
    a row of `ops.job_runs`.
    """
    catalog = load_config(config)
    ends = datetime.now(UTC) + deadline if deadline else None
    given = dict(key_and_value(text) for text in conf or [])
    chosen = chosen_warehouse(catalog, warehouse)
    identifier = TableIdentifier.parse(chosen, table)
    # A job that is switched off need not wait for a JVM.
    from lakewright_spark.maintenance.registry import JOBS_BY_NAME  # noqa: PLC0415
    from lakewright_spark.maintenance.switches import reason_of_server  # noqa: PLC0415
    from lakewright_spark.pyiceberg_client.catalog import open_catalog  # noqa: PLC0415
    from lakewright_spark.scheduler.listings import reason_for_no_listing  # noqa: PLC0415
    from lakewright_spark.scheduler.plan import WarehousePlan, plan_requested_job  # noqa: PLC0415

    maintenance_job = JOBS_BY_NAME[cast(JobName, name)]
    named = registry or os.environ.get("LAKEWRIGHT_REGISTRY")
    with open_registry(catalog, named, none=named is None or not maintenance_job.waits_for_executions) as executions:
        plan = plan_requested_job(catalog, identifier, cast(JobName, name), registry=executions, now=datetime.now(UTC))
        if reason := reason_of_server(cast(JobName, name), plan.policies):
            raise JobRefusedError(
                f"{name} of {identifier}: {reason}; one of both may do it: see `maintenance` in the spec"
            )
        if maintenance_job.needs_listing and (
            reason := reason_for_no_listing(catalog, open_catalog(catalog, chosen), identifier)
        ):
            raise JobRefusedError(f"{name} of {identifier}: {reason}")
        (decision,) = plan.decisions
        if decision.verdict == "held":
            held = {"state": "SKIPPED", "reason": decision.reason, "dry_run": dry_run}
            _tell(name, identifier, held, as_json=as_json)
            return
        from lakewright_spark.scheduler import runner, supervisor  # noqa: PLC0415

        with supervisor.handle_signals() as control:
            outcome = runner.Maintenance(
                catalog.for_warehouses([chosen]),
                requested=WarehousePlan(chosen, (plan,), {}),
                limits=runner.Limits(parallel=1, task_timeout=timedelta.max, grace=timedelta(), deadline=ends),
                dry_run=dry_run,
                registry=executions,
                master=master,
                properties=given,
                control=control,
            ).run()
    run = _done(outcome)
    _tell(name, identifier, {"state": run.state.value, "reason": run.reason, **run.metrics}, as_json=as_json)
    if outcome.warnings:
        raise JobFailedError("; ".join(outcome.warnings))


def _done(outcome: Outcome) -> RunRecord:
    """The one run, whose job came to its end; else what ended it is raised."""
    (run,) = outcome.runs.values()
    error = run.error or (outcome.error() if run.state.value in {"FAILED", "CANCELLED"} else None)
    if isinstance(error, DeadlineError | StoppedError):
        raise type(error)(f"{run} was ended: {run.reason}")
    if error:
        raise error
    return run


def _tell(name: str, table: TableIdentifier, found: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"job": name, "table": str(table), **found}))
        return
    if found["state"] == "SKIPPED":
        print(f"{name} of {table}: skipped, {found['reason']}")
        return
    told = ", ".join(f"{key} {value}" for key, value in found.items() if key not in {"state", "reason", "dry_run"})
    print(f"{name} of {table}: {'would do: ' if found['dry_run'] else ''}{told}")
