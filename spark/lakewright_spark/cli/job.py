"""Command `job`: run one maintenance job on one table."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lakewright_spark.catalog.loading import choose_warehouse, load_config
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
    from lakewright_spark.scheduler.outcome import MaintenanceOutcome
    from lakewright_spark.scheduler.run_log.records import RunRecord


def job(
    name: Annotated[str, typer.Argument(parser=job_name, metavar="JOB", help=", ".join(JOBS))],
    *,
    table: Annotated[
        str, typer.Option(metavar="NAMESPACE.TABLE", help="Put a part that contains a dot in backquotes.")
    ],
    config: ConfigFile = None,
    warehouse: Warehouse = None,
    registry: RegistryIfNamed = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what the job would do, and change nothing.")
    ] = False,
    deadline: Annotated[
        timedelta | None,
        typer.Option(parser=duration, metavar="DURATION", help="Cancel the job after this time, such as 45m."),
    ] = None,
    master: Annotated[str | None, typer.Option(help="Master URL of Spark. Default: local[*].")] = None,
    conf: Annotated[list[str] | None, typer.Option(help="Spark property KEY=VALUE; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a maintenance job on a table by its policies.

    Only one runner works on a table: `maintain` leaves the table to this job. Results of executions are compacted
    after their execution has ended. The run is recorded in `ops.job_runs`.

    Example: lakewright-spark job compaction --table results.orders --dry-run
    """
    catalog = load_config(config)
    ends = datetime.now(UTC) + deadline if deadline else None
    user_properties = dict(key_and_value(text) for text in conf or [])
    warehouse_name = choose_warehouse(catalog, warehouse)
    identifier = TableIdentifier.parse(warehouse_name, table)
    # These imports start no JVM, so a job that is held back ends fast.
    from lakewright_spark.maintenance.registry import JOBS_BY_NAME  # noqa: PLC0415
    from lakewright_spark.maintenance.switches import reason_of_server  # noqa: PLC0415
    from lakewright_spark.pyiceberg_client.catalog import open_catalog  # noqa: PLC0415
    from lakewright_spark.scheduler.listings import reason_for_no_listing  # noqa: PLC0415
    from lakewright_spark.scheduler.plan import WarehousePlan, plan_requested_job, reason_for_no_deletion  # noqa: PLC0415

    maintenance_job = JOBS_BY_NAME[cast(JobName, name)]
    registry_url = registry or os.environ.get("LAKEWRIGHT_REGISTRY")
    with open_registry(
        catalog, registry_url, none=registry_url is None or not maintenance_job.waits_for_executions
    ) as executions:
        plan = plan_requested_job(catalog, identifier, cast(JobName, name), registry=executions, now=datetime.now(UTC))
        if reason := reason_of_server(cast(JobName, name), plan.policies):
            raise JobRefusedError(
                f"{name} of {identifier}: {reason}; only one of them may do it: see `maintenance` in the spec"
            )
        if maintenance_job.deletes_files and (reason := reason_for_no_deletion(catalog, warehouse_name)):
            raise JobRefusedError(f"{name} of {identifier}: {reason}")
        if maintenance_job.needs_listing and (
            reason := reason_for_no_listing(catalog, open_catalog(catalog, warehouse_name), identifier)
        ):
            raise JobRefusedError(f"{name} of {identifier}: {reason}")
        (decision,) = plan.decisions
        if decision.verdict == "held":
            result = {"state": "SKIPPED", "reason": decision.reason, "dry_run": dry_run}
            _print_result(name, identifier, result, as_json=as_json)
            return
        from lakewright_spark.scheduler import runner, supervisor  # noqa: PLC0415

        with supervisor.handle_signals() as control:
            outcome = runner.MaintenanceRunner(
                catalog.select_warehouses([warehouse_name]),
                requested=WarehousePlan(warehouse_name, (plan,), {}),
                limits=runner.Limits(parallel=1, task_timeout=timedelta.max, grace=timedelta(), deadline=ends),
                dry_run=dry_run,
                registry=executions,
                master=master,
                properties=user_properties,
                control=control,
            ).run()
    run = _get_completed_run(outcome)
    _print_result(
        name, identifier, {"state": run.state.value, "reason": run.reason, **_select_metrics(run)}, as_json=as_json
    )
    if outcome.warnings:
        raise JobFailedError("; ".join(outcome.warnings))


def _get_completed_run(outcome: MaintenanceOutcome) -> RunRecord:
    """Return the completed run, or raise its error."""
    (run,) = outcome.runs.values()
    error = run.error or (outcome.error() if run.state.value in {"FAILED", "CANCELLED"} else None)
    if isinstance(error, DeadlineError | StoppedError):
        raise type(error)(f"{run} was ended: {run.reason}")
    if error:
        raise error
    return run


def _select_metrics(run: RunRecord) -> dict[str, Any]:
    """Return the metrics of a run without what only the next plan reads."""
    from lakewright_spark.scheduler.run_log.records import BASIS  # noqa: PLC0415

    return {name: value for name, value in run.metrics.items() if name != BASIS}


def _print_result(name: str, table: TableIdentifier, result: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"job": name, "table": str(table), **result}))
        return
    if result["state"] == "SKIPPED":
        print(f"{name} of {table}: skipped, {result['reason']}")
        return
    metrics = ", ".join(f"{key} {value}" for key, value in result.items() if key not in {"state", "reason", "dry_run"})
    print(f"{name} of {table}: {'would do: ' if result['dry_run'] else ''}{metrics}")
