"""Command `maintain`: run the due jobs of all tables in one Spark application."""

from __future__ import annotations

import json
import os
import re
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lakewright_spark.catalog.loading import choose_warehouse, load_config
from lakewright_spark.cli import printing
from lakewright_spark.cli.options import (
    AsJson,
    ConfigFile,
    RegistryIfNamed,
    duration,
    job_name,
    key_and_value,
    open_registry,
)
from lakewright_spark.cli.ranking import refuse_long_waits, show_ranking
from lakewright_spark.errors import JobRefusedError
from lakewright_spark.policies.model import JOBS, JobName

if TYPE_CHECKING:
    from lakewright_spark.scheduler.ordering import Budget
    from lakewright_spark.scheduler.outcome import MaintenanceOutcome
    from lakewright_spark.scheduler.plan import TablePlan


def _regex(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise typer.BadParameter(f"expected a regular expression, found {text!r}: {error}") from None


def _budget(text: str) -> Budget:
    from lakewright_spark.scheduler.ordering import parse_budget  # noqa: PLC0415  # loads PyIceberg

    try:
        return parse_budget(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def maintain(
    *,
    config: ConfigFile = None,
    warehouse: Annotated[list[str] | None, typer.Option(help="Name of a warehouse; repeatable. Default: all.")] = None,
    namespace: Annotated[
        re.Pattern[str] | None,
        typer.Option(parser=_regex, metavar="REGEX", help="Matches the whole namespace, levels joined by a dot."),
    ] = None,
    table: Annotated[
        re.Pattern[str] | None,
        typer.Option(parser=_regex, metavar="REGEX", help="Matches the whole name of the table."),
    ] = None,
    job: Annotated[
        list[str] | None, typer.Option(parser=job_name, metavar="JOB", help=f"Repeatable, of {', '.join(JOBS)}.")
    ] = None,
    skip_job: Annotated[
        list[str] | None,
        typer.Option(parser=job_name, metavar="JOB", help="Repeatable: all jobs but these; not with --job."),
    ] = None,
    parallel: Annotated[int, typer.Option(min=1, max=64, help="Number of tables at the same time.")] = 4,
    deadline: Annotated[
        timedelta | None, typer.Option(parser=duration, metavar="DURATION", help="Stop after this time, such as 4h.")
    ] = None,
    task_timeout: Annotated[
        timedelta,
        typer.Option(
            parser=duration,
            metavar="DURATION",
            help="Time limit of one job on one table. Compaction then has half of it more for its groups in work.",
        ),
    ] = "15m",  # type: ignore[assignment]  # typer parses it
    grace: Annotated[
        timedelta,
        typer.Option(parser=duration, metavar="DURATION", help="Time from SIGTERM until running jobs are cancelled."),
    ] = "2m",  # type: ignore[assignment]
    lease: Annotated[
        timedelta,
        typer.Option(parser=duration, metavar="DURATION", help="A runner that is silent for this long counts as dead."),
    ] = "3m",  # type: ignore[assignment]
    budget: Annotated[
        str | None,
        typer.Option(
            parser=_budget,
            metavar="AMOUNT",
            help="Most work of this run: bytes to rewrite (500GiB), or the sum of the jobs' times (8h).",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what each job would do, and change nothing.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print which jobs are due on each table and why, without Spark.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the tables in their turn with waiting time, gain and cost.")
    ] = False,
    max_wait: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration,
            metavar="DURATION",
            help="With --plan or --explain: fail if a job of a table has been due for this time, such as 5d.",
        ),
    ] = None,
    registry: RegistryIfNamed = None,
    metrics: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append one JSON line for each run.", dir_okay=False)
    ] = None,
    master: Annotated[str | None, typer.Option(help="Master URL of Spark. Default: local[*].")] = None,
    conf: Annotated[list[str] | None, typer.Option(help="Spark property KEY=VALUE; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the due jobs of all tables, by policies, metadata and earlier runs.

    The tables that wait longest come first, then tables that gain most. Several runners share the tables of a
    warehouse, and leave tables to jobs that are started in the meantime. Each run is recorded in `ops.job_runs`; see
    `lakewright-spark runs`.

    Example: lakewright-spark maintain --warehouse executions --plan
    """
    if job and skip_job:
        raise typer.BadParameter("expected either --job or --skip-job")
    if max_wait and not (plan or explain):
        raise typer.BadParameter("expected --plan or --explain with --max-wait")
    catalog = load_config(config)
    names = [choose_warehouse(catalog, name) for name in dict.fromkeys(warehouse or [])]
    if names:
        catalog = catalog.select_warehouses(names)
    for warehouse_config in catalog.warehouses:
        # Refuse jobs that the user named. Otherwise the decision on each table says so.
        if served := [name for name in job or [] if name in warehouse_config.server_jobs]:
            raise JobRefusedError(
                f"{', '.join(served)} of warehouse {warehouse_config.name}: the catalog's server does it itself, by "
                "`maintenance.server` of the tenant's spec; leave out the job, or the warehouse"
            )
    ends = datetime.now(UTC) + deadline if deadline else None
    properties = dict(key_and_value(text) for text in conf or [])
    from lakewright_spark.scheduler import due_times, progress, runner, supervisor, telemetry  # noqa: PLC0415  # load PySpark

    remaining_jobs: list[JobName] = [name for name in JOBS if name not in (skip_job or [])]
    jobs = tuple(cast(list[JobName], job)) if job else tuple(remaining_jobs)
    registry_url = registry or os.environ.get("LAKEWRIGHT_REGISTRY")
    with ExitStack() as stack:
        observers = [stack.enter_context(progress.show_progress(printing.console_of_errors()))]
        observers += stack.enter_context(telemetry.open_observers(metrics))
        control = stack.enter_context(supervisor.handle_signals())
        maintenance = runner.MaintenanceRunner(
            catalog,
            runner.Filters(namespace, table, jobs),
            runner.Limits(parallel, task_timeout, grace, ends),
            dry_run=dry_run,
            budget=cast("Budget | None", budget),
            registry=stack.enter_context(open_registry(catalog, registry_url, none=registry_url is None)),
            master=master,
            properties=properties,
            lease_life=lease,
            named_warehouses=names,
            observers=observers,
            plan_observers=[one.observe_plans for one in observers if isinstance(one, telemetry.TelemetryObserver)],
            usage_observers=[one.observe_usage for one in observers if isinstance(one, telemetry.TelemetryObserver)],
            control=control,
        )
        find_due_since = due_times.find_due_since if max_wait else None
        outcome = maintenance.decide(find_due_since) if plan or explain else maintenance.run()
    printing.note(outcome.unavailable.note())
    if plan or explain:
        now = datetime.now(UTC)
        if explain:
            show_ranking(outcome, now, as_json=as_json)
        else:
            _show_plan(outcome, as_json=as_json)
        if max_wait:
            refuse_long_waits(outcome, max_wait, now)
        return
    print(json.dumps(outcome.to_json()) if as_json else _summary(outcome))
    if error := outcome.error():
        raise error


def _summary(outcome: MaintenanceOutcome) -> str:
    from lakewright_spark.policies.builtin import is_own  # noqa: PLC0415  # as above

    counts = ", ".join(f"{number} {state.lower()}" for state, number in sorted(outcome.counts().items()))
    users = [table for plan in outcome.plans for table in plan.tables if not is_own(table.facts.table)]
    decisions = [decision for table in users for decision in table.decisions]
    off = sum(decision.verdict == "held" for decision in decisions)
    due_jobs = "1 more is" if off == 1 else f"{off} more are"
    more = f"; {due_jobs} due and held back by switches, locks or running executions" if off else ""
    tables = f"{outcome.tables} table{'' if outcome.tables == 1 else 's'}{' (dry run)' if outcome.dry_run else ''}"
    shared = [f"\n{table}: no file is deleted, since {reason}" for table, reason in outcome.shared.items()]
    return f"{tables}: {counts or 'nothing is due'}{more}{''.join(shared)}"


def _show_plan(outcome: MaintenanceOutcome, *, as_json: bool) -> None:
    """Print the plan, and raise the error for tables or warehouses that could not be planned.

    Raises:
        MaintenanceFailedError: Some tables or warehouses could not be read. The plan of the rest is printed.
    """
    tables = _tables(outcome)
    problems = {str(table): reason for table, reason in outcome.problems.items()}
    if as_json:
        documents: list[dict[str, Any]] = [
            {
                "table": str(table.facts.table),
                "jobs": [
                    {"job": decision.job, "verdict": decision.verdict, "reason": decision.reason}
                    for decision in table.decisions
                ],
            }
            for table in tables
        ]
        print(json.dumps({"tables": documents, "undecided": problems, "held": outcome.leased_elsewhere}))
    else:
        _print_plan(tables, problems)
        for sentence in outcome.leased_elsewhere.values():
            printing.complain(sentence)
    outcome.leased_elsewhere.clear()  # a table that another runner holds is no failure of a plan
    if error := outcome.error():
        raise error


def _print_plan(tables: list[TablePlan], problems: dict[str, str]) -> None:
    for table in tables:
        print(table.facts.table)
        for decision in table.decisions:
            print(f"  {decision.verdict:<7}  {decision.job}: {decision.reason}")
    for table, reason in problems.items():
        print(f"{table}\n  unknown  {reason}")
    due = sum(len(table.due) for table in tables)
    print(f"{len(tables) + len(problems)} tables, {due} jobs are due")


def _tables(outcome: MaintenanceOutcome) -> list[TablePlan]:
    """Return the plans of the user's tables, without the tables of the maintenance itself."""
    from lakewright_spark.policies.builtin import is_own  # noqa: PLC0415  # loads PySpark

    return [table for plan in outcome.plans for table in plan.tables if not is_own(table.facts.table)]
