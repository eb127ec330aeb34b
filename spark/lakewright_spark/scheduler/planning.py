"""MaintenancePlanner: plans warehouses with their histories, and turns the plans into works in their turn."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.maintenance.job_runner import PlannedTable
from lakewright_spark.maintenance.jobs.job import History
from lakewright_spark.maintenance.registry import JOBS_BY_NAME
from lakewright_spark.maintenance.switches import reason_to_wait
from lakewright_spark.policies.model import JobName, PoliciesInForce, TablePolicies
from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_metadata_catalog
from lakewright_spark.pyiceberg_client.read_errors import is_damage, reason_unreadable
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.scheduler import recovery
from lakewright_spark.scheduler.listings import hold_jobs_without_listings
from lakewright_spark.scheduler.ordering import rank_key
from lakewright_spark.scheduler.outcome import MaintenanceOutcome
from lakewright_spark.scheduler.plan import (
    FindDueSince,
    TablePlan,
    WarehousePlan,
    find_expired_candidates,
    hold_jobs_that_delete,
    plan,
)
from lakewright_spark.scheduler.run_log.histories import load_histories
from lakewright_spark.scheduler.run_log.ops_buffer import OpsBuffer
from lakewright_spark.scheduler.run_log.orphan_candidates import drop_handled_days, forget_candidates
from lakewright_spark.scheduler.run_log.records import BASIS, FIRST, PLAN, PREDICTED, RESTORE, RunRecord, RunState
from lakewright_spark.scheduler.runner_claims import RunnerClaims
from lakewright_spark.scheduler.supervisor import Control, Limits
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.scheduler.table_worker import TableWork


@dataclass(frozen=True)
class MaintenancePlanner:
    """Plans the warehouses of one run."""

    config: CatalogConfig
    filters: Filters
    runner: str
    limits: Limits
    control: Control
    registry: ExecutionRegistry | None
    dry_run: bool
    find_due_since: FindDueSince | None = None
    """Finds when a due job became due, for a check of waits."""

    def plan_warehouse(
        self, warehouse: str, catalog: Catalog, outcome: MaintenanceOutcome, claims: RunnerClaims | None, now: datetime
    ) -> WarehousePlan:
        """Return the plan of a warehouse by its policies, metadata and earlier runs. Close runs of dead runners.

        Raises:
            LakewrightSparkError: The warehouse as a whole cannot be planned.
        """
        dead = claims.forget_dead() if claims else {}
        closed = self.close_runs(warehouse, catalog, outcome, now) if claims else []
        histories = self._read_histories(warehouse, catalog, outcome, now)
        warehouse_plan = plan(
            self.config,
            warehouse,
            open_metadata_catalog(self.config, warehouse, catalog),
            filters=self.filters,
            histories=histories or {},
            now=now,
            registry=self.registry,
            stop=self.control.ended,
            find_due_since=self.find_due_since,
        )
        if not self.dry_run and histories is not None:
            # A plan that was stopped lacks some tables.
            complete = self.filters.is_every_table and not self.control.ended.is_set()
            with self._warn_about_damage(
                warehouse, catalog, outcome, "old candidates remain, since ops.orphan_candidates is damaged"
            ):
                expired = find_expired_candidates(warehouse_plan, histories, now, is_complete=complete)
                oldest = {uuid: at for uuid, history in histories.items() if (at := history.oldest_candidate)}
                with suppress(CommitFailedException):  # another runner does the same
                    forget_candidates(catalog, expired)
                    drop_handled_days(catalog, {**oldest, **expired}.values(), now)
        allowed = hold_jobs_that_delete(self.config, warehouse_plan)
        without_listings = hold_jobs_without_listings(self.config, catalog, allowed)
        return self._mark_kills(catalog, without_listings, dead, closed, now) if dead else without_listings

    def _read_histories(
        self, warehouse: str, catalog: Catalog, outcome: MaintenanceOutcome, now: datetime
    ) -> Mapping[str, History] | None:
        """Return the earlier runs and candidates by table UUID; None if they cannot be read, with a warning."""
        with self._warn_about_damage(
            warehouse,
            catalog,
            outcome,
            "every job counts as never run, and old candidates remain, since ops.job_runs or ops.orphan_candidates is "
            "damaged",
        ):
            return load_histories(catalog, now)
        return None

    def close_runs(
        self, warehouse: str, catalog: Catalog, outcome: MaintenanceOutcome, now: datetime
    ) -> list[RunRecord]:
        """Close and return the open runs of dead runners."""
        with self._warn_about_damage(
            warehouse, catalog, outcome, "runs of dead runners remain open, since ops.job_runs is damaged"
        ):
            return recovery.close_abandoned_runs(catalog, warehouse, self.runner, now)
        return []

    def _mark_kills(
        self,
        catalog: Catalog,
        warehouse_plan: WarehousePlan,
        dead: Mapping[str, str],
        closed: Sequence[RunRecord],
        now: datetime,
    ) -> WarehousePlan:
        """Return the plan in which tables are suspects whose runner died without a record of the run."""
        tables = [table for table in warehouse_plan.tables if table.due and table.facts.uuid in dead]
        runs = [self._build_run(table, table.due[0].job, now) for table in tables]
        recorded_tables = {run.table_uuid for run in closed}  # the histories have their kills
        with explain_errors(self.config, warehouse_plan.warehouse, "ops.job_runs"):
            kills = recovery.count_kills(catalog, runs, closed, dead, now)
        return replace(
            warehouse_plan,
            tables=tuple(
                replace(table, rank=replace(table.rank, kills=table.rank.kills + kills[table.facts.uuid]))
                if table.facts.uuid in kills.keys() - recorded_tables
                else table
                for table in warehouse_plan.tables
            ),
        )

    @contextmanager
    def _warn_about_damage(
        self, warehouse: str, catalog: Catalog, outcome: MaintenanceOutcome, consequence: str
    ) -> Generator[None, None, None]:
        """Warn about a damaged table of `ops`, which must not stop the maintenance of the user's tables."""
        with explain_errors(self.config, warehouse, "tables in ops"):
            try:
                yield
            except Exception as error:
                if not is_damage(error):
                    raise  # such as an outage, in which every job would be run again
                outcome.warnings.append(f"warehouse {warehouse}: {consequence}: {reason_unreadable(catalog, error)}")

    def build_failed_plans(self, warehouse_plan: WarehousePlan, now: datetime) -> Iterator[RunRecord]:
        """Yield a failed run for each table that could not be planned."""
        for table, reason in warehouse_plan.problems.items():
            queued = RunRecord(runner=self.runner, table=table, table_uuid="", job=PLAN, queued_at=now)
            yield queued
            yield replace(queued, state=RunState.FAILED, reason=reason, finished_at=now)

    def build_works(self, plans: Sequence[WarehousePlan], buffer: OpsBuffer, now: datetime) -> list[TableWork]:
        """Return the due jobs of all tables, in the tables' turn."""
        tables = [table for warehouse_plan in plans for table in warehouse_plan.tables if table.due]
        tables.sort(key=lambda table: rank_key(table.rank, now))  # stable: the plans are in this order
        return [
            TableWork(
                table.facts.table,
                self._add_limits(table.policies),
                tuple(self._build_run(table, decision.job, now) for decision in table.due),
                self._plan_table,
                buffer,
                runs_alone=table.rank.runs_alone,
                is_suspect=table.rank.is_suspect,
            )
            for table in tables
        ]

    def _build_run(self, table: TablePlan, job: JobName, now: datetime) -> RunRecord:
        decision = next(decision for decision in table.due if decision.job == job)
        prediction, describe_basis = decision.prediction, JOBS_BY_NAME[job].describe_basis
        return RunRecord(
            runner=self.runner,
            table=table.facts.table,
            table_uuid=table.facts.uuid,
            job=job,
            reason=decision.reason,
            snapshot=table.facts.snapshot,
            queued_at=now,
            metrics={
                **({PREDICTED: prediction.to_json()} if prediction else {}),
                **({FIRST: True} if decision.is_first else {}),
                **({BASIS: describe_basis(table.facts, table.policies)} if describe_basis else {}),
            },
        )

    def _plan_table(self, run: RunRecord) -> PlannedTable:
        """Return the values that a job checks right before it begins."""
        assert run.job not in (PLAN, RESTORE)
        job: JobName = run.job
        policies = PolicyTables(self.config, run.table.warehouse)

        def resolve_policies(properties: Mapping[str, str]) -> TablePolicies:
            return self._add_limits(policies.resolve_policies(run.table, dict(properties)).policies)

        def wait() -> str | None:
            return reason_to_wait(job, run.table, self.registry)

        return PlannedTable(run.table_uuid, resolve_policies, wait)

    def _add_limits(self, policies: TablePolicies) -> TablePolicies:
        """Return the policies with this runner's limits, from which jobs derive the size of their steps."""
        if not isinstance(policies, PoliciesInForce):
            return policies
        return policies.model_copy(
            update={"default_timeout": self.limits.task_timeout, "parallel_tables": self.limits.parallel}
        )
