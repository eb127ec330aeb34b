"""The plan for a warehouse: which jobs are due on each table, and which are held back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import PolicyRefusedError, RegistryError
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.maintenance.jobs.job import History, MaintenanceJob
from lakewright_spark.maintenance.registry import JOBS_BY_NAME, MAINTENANCE_JOBS
from lakewright_spark.maintenance.switches import reason_to_skip, reason_to_wait
from lakewright_spark.maintenance.table.facts import TableFacts, table_facts
from lakewright_spark.policies.builtin import CANDIDATES_KEPT
from lakewright_spark.policies.model import JOBS, CompactionPolicy, JobName, StagedFilesPolicy, TablePolicies
from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog
from lakewright_spark.pyiceberg_client.read_errors import reason_unreadable
from lakewright_spark.pyiceberg_client.table_metadata import load_metadata
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.scheduler.back_off import reason_to_back_off
from lakewright_spark.scheduler.due_times import decide_due
from lakewright_spark.scheduler.health import compute_health
from lakewright_spark.scheduler.locations import find_overlaps, need_locations
from lakewright_spark.scheduler.ordering import Budget, Rank, compute_waiting_since, rank_key, select_within
from lakewright_spark.scheduler.prediction import NO_PACE, Pace, Prediction, add_predictions, measure_pace, predict_job
from lakewright_spark.scheduler.table_discovery import Filters, UnreadableTable, discover_tables
from lakewright_spark.table_identifier import TableIdentifier

CANDIDATE_MARGIN = 30
"""Minimum number of days for which due candidates are kept: a run may be late or held back."""

Verdict = Literal["due", "held", "not due"]
FindDueSince = Callable[[MaintenanceJob, TableFacts, TablePolicies, History, datetime], datetime]
"""Returns when a job that is due at a time became due; see `due_times.find_due_since`."""


@dataclass(frozen=True)
class JobDecision:
    """Verdict on one job of one table. `held`: a switch, a lock or a running execution holds the job back."""

    job: JobName
    verdict: Verdict
    reason: str
    prediction: Prediction | None = None
    """Predicted effect and duration of a due job."""
    last_success: datetime | None = None
    """Start of the last successful run (UTC)."""
    due_since: datetime | None = None
    """When a job that is due or held back became due (UTC). None: the plan did not ask."""
    is_first: bool = False
    """Whether the job never ran on the table."""


@dataclass(frozen=True)
class TablePlan:
    """Decisions on a table."""

    facts: TableFacts
    policies: TablePolicies
    decisions: tuple[JobDecision, ...]
    rank: Rank = field(default_factory=Rank)

    @property
    def due(self) -> list[JobDecision]:
        """Decisions on jobs that are due."""
        return [decision for decision in self.decisions if decision.verdict == "due"]

    def hold(self, is_held: Callable[[MaintenanceJob], bool], reason: str) -> TablePlan:
        """Return the plan with the due jobs held back that match a condition."""
        decisions = tuple(
            replace(decision, verdict="held", reason=reason)
            if decision.verdict == "due" and is_held(JOBS_BY_NAME[decision.job])
            else decision
            for decision in self.decisions
        )
        return replace(self, decisions=decisions)


@dataclass(frozen=True)
class WarehousePlan:
    """Plans of the tables of a warehouse that match the filters."""

    warehouse: str
    tables: tuple[TablePlan, ...]
    problems: Mapping[TableIdentifier, str]
    """Tables that could not be planned, and why; a namespace is a table `*`. No job runs on them."""
    shared: Mapping[TableIdentifier, str] = field(default_factory=dict[TableIdentifier, str])
    """Tables whose location overlaps that of others, and how. No job deletes files there."""


def reason_for_no_deletion(config: CatalogConfig, warehouse: str) -> str | None:
    """Return why no job may delete files of a warehouse; None if they may."""
    if config.warehouse(warehouse).may_delete:
        return None
    return "the owner of the bucket does not let the platform delete (`may_delete: false` of the storage)"


def hold_jobs_that_delete(config: CatalogConfig, plan: WarehousePlan) -> WarehousePlan:
    """Return the plan with jobs held back that delete files, or leave files to delete, if none may be deleted."""
    reason = reason_for_no_deletion(config, plan.warehouse)
    if reason is None:
        return plan
    return replace(plan, tables=tuple(table.hold(lambda job: job.deletes_files, reason) for table in plan.tables))


def decide(
    facts: TableFacts,
    policies: TablePolicies,
    history: History,
    now: datetime,
    *,
    jobs: Collection[JobName] = JOBS,
    busy: str | None = None,
    pace: Pace = NO_PACE,
    find_due_since: FindDueSince | None = None,
) -> list[JobDecision]:
    """Return the decisions on a table, in run order.

    Args:
        facts: Metadata of the table.
        policies: Policies of the table.
        history: Earlier runs on the table.
        now: Instant (UTC) that ages are counted from.
        jobs: Names of the jobs to decide on.
        busy: Why jobs that wait for executions are held back.
        pace: Pace of the jobs in the warehouse, for predictions.
        find_due_since: Finds when a due job became due. None: no check needs these times.

    Raises:
        PolicyRefusedError: A property of the table cannot be read.
    """
    decisions: list[JobDecision] = []
    for job in MAINTENANCE_JOBS:
        if job.name not in jobs:
            continue
        is_due, reason = decide_due(job, facts, policies, history, now)
        hold_reason = (
            reason_to_skip(job.name, policies, now)
            or (busy if job.waits_for_executions else None)
            or reason_to_back_off(history.failures.get(job.name), now)
        )
        last = history.succeeded.get(job.name)
        due_since = find_due_since(job, facts, policies, history, now) if is_due and find_due_since else None
        if is_due and hold_reason:
            decisions.append(JobDecision(job.name, "held", hold_reason, last_success=last, due_since=due_since))
        else:
            prediction = predict_job(job.name, facts, policies, history, pace) if is_due else None
            first = history.last_attempt(job.name) is None
            verdict: Verdict = "due" if is_due else "not due"
            decisions.append(JobDecision(job.name, verdict, reason, prediction, last, due_since, is_first=first))
    return decisions


def rank_table(facts: TableFacts, policies: TablePolicies, history: History, decisions: Iterable[JobDecision]) -> Rank:
    """Return the rank of a table by its due jobs."""
    due = [decision for decision in decisions if decision.verdict == "due"]
    waiting_since = compute_waiting_since(facts, [decision.job for decision in due], policies, history)
    return Rank(
        waiting_since=waiting_since,
        kills=history.kills,
        prediction=add_predictions(filter(None, (decision.prediction for decision in due))),
        delete_files=(facts.delete_files or 0) if any(decision.job == "compaction" for decision in due) else 0,
        health=compute_health(facts, policies.compaction or CompactionPolicy()),
        weight=policies.ranking.weight if policies.ranking else 1.0,
    )


def order_plans(plans: Sequence[WarehousePlan], now: datetime, budget: Budget | None = None) -> list[WarehousePlan]:
    """Return the plans with the tables in their turn, and with jobs held back that together exceed the budget."""
    tables = [table for warehouse_plan in plans for table in warehouse_plan.tables]
    tables.sort(key=lambda table: (*rank_key(table.rank, now), table.facts.table.within))
    due = [table for table in tables if table.due]
    selected = dict(
        zip((table.facts.table for table in due), select_within(budget, [t.rank for t in due]), strict=True)
    )
    over = "the run's budget is spent on tables that wait longer or gain more"
    limited_tables = [
        table if selected.get(table.facts.table, True) else table.hold(lambda _: True, over) for table in tables
    ]
    return [
        replace(one, tables=tuple(table for table in limited_tables if table.facts.table.warehouse == one.warehouse))
        for one in plans
    ]


def plan(
    config: CatalogConfig,
    warehouse: str,
    catalog: Catalog,
    *,
    filters: Filters,
    histories: Mapping[str, History],
    now: datetime,
    registry: ExecutionRegistry | None = None,
    stop: threading.Event | None = None,
    find_due_since: FindDueSince | None = None,
) -> WarehousePlan:
    """Plan every table of a warehouse that matches the filters.

    Args:
        config: The catalog configuration.
        warehouse: Name of the warehouse.
        catalog: Its catalog.
        filters: Which tables and jobs to plan.
        histories: Earlier runs by table UUID.
        now: Instant (UTC) that ages are counted from.
        registry: Knows which executions have ended.
        stop: Ends the discovery of tables once it is set.
        find_due_since: Finds when a due job became due. None: no check needs these times.

    Raises:
        CatalogUnreachableError, IdentityError, JobFailedError: The catalog as a whole cannot be used.
        RegistryError: The registry of executions failed.
    """
    policies = PolicyTables(config, warehouse)
    located, pace = need_locations(config, filters.jobs), measure_pace(histories.values())
    plans: list[TablePlan] = []
    problems: dict[TableIdentifier, str] = {}
    unread: list[TableIdentifier] = []
    places: list[TableFacts] = []
    waiting_jobs: list[JobName] = [job for job in filters.jobs if JOBS_BY_NAME[job].waits_for_executions]
    discovered = discover_tables(
        config, warehouse, catalog, Filters() if located else filters, stop or threading.Event()
    )
    for facts in discovered:
        if isinstance(facts, UnreadableTable):
            unread.append(facts.table)
            if filters.wants(facts.table) or (facts.is_namespace and filters.wants_namespace(facts.table.namespace)):
                problems[facts.table] = facts.reason
            continue
        if located:
            places.append(facts.only_places())
        if not filters.wants(facts.table):
            continue
        try:
            resolved = policies.resolve_policies(facts.table, dict(facts.properties)).policies
            busy = reason_to_wait(waiting_jobs[0], facts.table, registry) if waiting_jobs else None
            history = histories.get(facts.uuid, History())
            decisions = tuple(
                decide(
                    facts,
                    resolved,
                    history,
                    now,
                    jobs=filters.jobs,
                    busy=busy,
                    pace=pace,
                    find_due_since=find_due_since,
                )
            )
            rank = rank_table(facts, resolved, history, decisions)
        except RegistryError:
            raise
        except PolicyRefusedError as error:
            problems[facts.table] = str(error).removeprefix(f"table {facts.table}: ")
            continue
        except Exception as error:  # noqa: BLE001  # any error: it must not affect other tables
            problems[facts.table] = reason_unreadable(catalog, error)
            continue
        plans.append(TablePlan(facts.drop_history(), resolved, decisions, rank))
    shared = find_overlaps(places, unread)
    planned = {table.facts.table for table in plans}
    return WarehousePlan(
        warehouse,
        tuple(_hold_by_location(table, shared.get(table.facts.table)) for table in plans),
        problems,
        {table: reason for table, reason in shared.items() if table in planned},
    )


def plan_requested_job(
    config: CatalogConfig, table: TableIdentifier, job: JobName, *, registry: ExecutionRegistry | None, now: datetime
) -> TablePlan:
    """Plan one job that a user requests for one table. The job is due unless something holds it back.

    Raises:
        NoSuchResultError: The table does not exist.
        PolicyRefusedError: A policy of the table cannot be read.
        CatalogUnreachableError, IdentityError, JobFailedError: The catalog cannot be used.
    """
    catalog = open_catalog(config, table.warehouse)
    with explain_errors(config, table.warehouse, f"table {table}"):
        facts = table_facts(table, load_metadata(catalog, table.within))
    shared: Mapping[TableIdentifier, str] = {}
    if need_locations(config, [job]):
        discovered = list(discover_tables(config, table.warehouse, catalog, Filters(), threading.Event()))
        places = [other.only_places() for other in discovered if isinstance(other, TableFacts)]
        unread = [other.table for other in discovered if isinstance(other, UnreadableTable)]
        shared = find_overlaps(places, unread)
    policies = PolicyTables(config, table.warehouse).resolve_policies(table, dict(facts.properties)).policies
    hold_reason = reason_to_skip(job, policies, now) or reason_to_wait(job, table, registry)
    if JOBS_BY_NAME[job].owns_location:
        hold_reason = hold_reason or shared.get(table)
    return TablePlan(facts, policies, (JobDecision(job, "held" if hold_reason else "due", hold_reason or "requested"),))


def find_expired_candidates(
    plan: WarehousePlan, histories: Mapping[str, History], now: datetime, *, is_complete: bool
) -> dict[str, datetime]:
    """Return the orphan candidates to forget: by table UUID, the instant (UTC) up to which they were recorded.

    A file that still exists becomes a candidate again, so nothing is deleted earlier. Candidates of a table that is due
    for `staged-files` remain, since the plan was made with them.

    Args:
        plan: Plan of the warehouse.
        histories: The histories that the plan was made with, by table UUID.
        now: Instant (UTC) that ages are counted from.
        is_complete: Whether the plan covers all tables, so that a missing table no longer exists. Otherwise candidates
            of missing tables remain.
    """
    planned = {table.facts.uuid: table for table in plan.tables}
    expired: dict[str, datetime] = {}
    for uuid, history in histories.items():
        table = planned.get(uuid)
        if table is None and (plan.problems or not is_complete):
            continue  # the table may be unreadable or filtered out
        if table is not None and any(decision.job == "staged-files" for decision in table.due):
            continue
        limit = now - timedelta(days=_days_kept(table))
        if history.oldest_candidate and history.oldest_candidate < limit:
            expired[uuid] = limit
    return expired


def _days_kept(table: TablePlan | None) -> int:
    policy = (table.policies.staged_files if table else None) or StagedFilesPolicy()
    return max(CANDIDATES_KEPT, policy.older_than_days + CANDIDATE_MARGIN)


def _hold_by_location(table: TablePlan, reason: str | None) -> TablePlan:
    """Hold back jobs that treat every file under the location as the table's."""
    return table if reason is None else table.hold(lambda job: job.owns_location, reason)
