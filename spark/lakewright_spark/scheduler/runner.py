"""Maintenance: takes leases, plans all warehouses, runs the due jobs in one Spark application, reports the outcome."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from py4j.protocol import Py4JError
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError, LeaseHeldError
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.maintenance.job_runner import PlannedTable, session_properties
from lakewright_spark.maintenance.jobs.job import History
from lakewright_spark.maintenance.switches import reason_to_wait
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog
from lakewright_spark.pyiceberg_client.read_errors import is_damage, reason_unreadable
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.scheduler import recovery
from lakewright_spark.scheduler.lease import LIFE, Heartbeat, Lease, read_lease
from lakewright_spark.scheduler.listings import hold_jobs_without_listings
from lakewright_spark.scheduler.outcome import MaintenanceOutcome
from lakewright_spark.scheduler.plan import WarehousePlan, find_expired_candidates, hold_jobs_that_delete, plan
from lakewright_spark.scheduler.run_log.histories import load_histories
from lakewright_spark.scheduler.run_log.ops_buffer import OpsBuffer, delete_handled_candidates
from lakewright_spark.scheduler.run_log.recorder import COMMIT_INTERVAL_SECONDS, Recorder
from lakewright_spark.scheduler.run_log.records import PLAN, RESTORE, RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Control, Limits, Observer, Supervisor
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.scheduler.table_worker import TableWork
from lakewright_spark.session.builder import Workload, spark_session
from lakewright_spark.session.secrets import check_before_start
from lakewright_spark.unavailable_warehouses import UnavailableWarehouses

FAIR = {"spark.scheduler.mode": "FAIR"}


def new_runner_name() -> str:
    """Return a unique name for this process."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class MaintenanceRunner:
    """A maintenance run of the warehouses in `config`."""

    config: CatalogConfig
    filters: Filters = field(default_factory=Filters)
    limits: Limits = field(default_factory=Limits)
    dry_run: bool = False
    requested: WarehousePlan | None = None
    """Plan of one table that replaces the plan of due jobs."""
    registry: ExecutionRegistry | None = None
    """Knows which executions still run. Without one, results are not compacted."""
    master: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    """Spark properties in addition to the properties of the catalogs."""
    lease_life: timedelta = LIFE
    record_every: float = COMMIT_INTERVAL_SECONDS
    """Seconds."""
    named_warehouses: Collection[str] = ()
    """Warehouses that the user named. Other warehouses are left out if this identity may not use them."""
    observers: Sequence[Observer] = ()
    control: Control = field(default_factory=Control)
    clock: Callable[[], datetime] = _utc_now
    """Clock of ages and run records. Leases use the real time."""
    session: SparkSession | None = None
    """Existing session, which is not stopped. By default, a session is created when there is work."""
    runner: str = field(default_factory=new_runner_name)

    def run(self) -> MaintenanceOutcome:
        """Run the due jobs. After work has begun, errors are in the outcome.

        Raises:
            LakewrightSparkError: No work could begin.
        """
        outcome = MaintenanceOutcome(
            self.runner, self.dry_run, unavailable=UnavailableWarehouses(self.named_warehouses)
        )
        with ExitStack() as stack:
            catalogs = self._open_catalogs(outcome.unavailable)
            if self.session is None:
                check_before_start(self.config, self.limits.deadline)  # before a lease is taken
            if not self.dry_run:
                catalogs = stack.enter_context(self._hold_leases(catalogs, outcome))
            plans: list[WarehousePlan] = []
            for name, catalog in catalogs.items():
                with outcome.unavailable.record_failures(name):
                    plans.append(self._plan(name, catalog, outcome))
            outcome.unavailable.check_any_left([warehouse.name for warehouse in self.config.warehouses])
            outcome.plans = plans
            buffer = OpsBuffer(self.config, catalogs)
            works = [work for warehouse_plan in plans for work in self._works(warehouse_plan, buffer)]
            observers: list[Observer] = [outcome, *self.observers]
            unplanned = [run for warehouse_plan in plans for run in self._build_failed_plans(warehouse_plan)]
            recorder: Recorder | None = None
            if not self.dry_run:
                recorder = Recorder(self.config, catalogs, self.clock, every=self.record_every, buffer=buffer)
                stack.callback(self._close, recorder, outcome)
                observers.insert(0, recorder)
            self._notify([observer for observer in observers if observer is not outcome], unplanned)
            self._notify(observers, [run for work in works for run in work.runs])
            if recorder:
                recorder.start()
            if works:
                self._work(works, observers, outcome)
        outcome.lost = dict(self.control.lost)
        return outcome

    def decide(self) -> MaintenanceOutcome:
        """Return the plans without running a job, taking a lease or starting Spark."""
        dry_run = replace(self, dry_run=True)
        outcome = MaintenanceOutcome(
            self.runner, dry_run=True, unavailable=UnavailableWarehouses(self.named_warehouses)
        )
        plans: list[WarehousePlan] = []
        for name, catalog in dry_run._open_catalogs(outcome.unavailable).items():
            with outcome.unavailable.record_failures(name), explain_errors(self.config, name, "the lease"):
                row = read_lease(catalog)
                if row and row.is_held_by_other(self.runner, datetime.now(UTC)):
                    outcome.leased_elsewhere[name] = f"warehouse {name} is being maintained by {row.holder}"
                plans.append(dry_run._plan(name, catalog, outcome))
        outcome.unavailable.check_any_left([warehouse.name for warehouse in self.config.warehouses])
        outcome.plans = plans
        return outcome

    def _open_catalogs(self, unavailable: UnavailableWarehouses) -> dict[str, Catalog]:
        """Return the catalogs of the warehouses that respond. Raise the first error if none does."""
        opened: dict[str, Catalog] = {}
        for warehouse in self.config.warehouses:
            with unavailable.record_failures(warehouse.name):
                opened[warehouse.name] = open_catalog(self.config, warehouse.name)
        unavailable.check_any_left([warehouse.name for warehouse in self.config.warehouses])
        return opened

    def _close(self, recorder: Recorder, outcome: MaintenanceOutcome) -> None:
        outcome.warnings += recorder.close(frozenset(self.control.lost))

    def _notify(self, observers: Sequence[Observer], runs: Iterable[RunRecord]) -> None:
        for run in runs:
            for observer in observers:
                observer(run)

    def _work(self, works: Sequence[TableWork], observers: Sequence[Observer], outcome: MaintenanceOutcome) -> None:
        try:
            with self._spark() as spark:
                supervisor = Supervisor(spark, self.limits, self.control, observers, self.clock, self.dry_run)
                supervisor.run(works)
                outcome.why_stopped = supervisor.why_stopped
        except BaseException as error:
            # Spark did not start or has ended, so no job reports the end of its run.
            self._give_up(observers, outcome, f"{type(error).__name__}: {error}".splitlines()[0])
            if isinstance(error, Py4JError | ConnectionError):
                raise JobFailedError(
                    f"Spark ended during its work: {type(error).__name__}. It may have run out of memory "
                    f"(spark.driver.memory). The next run continues the work"
                ) from error
            raise

    def _give_up(self, observers: Sequence[Observer], outcome: MaintenanceOutcome, why: str) -> None:
        for run in [run for run in outcome.runs.values() if not run.state.has_ended]:
            ended = run.cancel_before_start(why)
            if run.state is RunState.RUNNING:
                ended = replace(run, state=RunState.FAILED, reason=why, finished_at=self.clock())
            for observer in observers:
                observer(ended)

    @contextmanager
    def _hold_leases(
        self, catalogs: Mapping[str, Catalog], outcome: MaintenanceOutcome
    ) -> Generator[dict[str, Catalog], None, None]:
        """Hold the leases for the block, and yield the catalogs of the leased warehouses.

        Raises:
            LeaseHeldError: No warehouse could be leased.
        """
        tried: list[Lease | TableClaim] = []
        heartbeat: Heartbeat | None = None
        try:
            for name, catalog in catalogs.items():
                lease = self._lease(name, catalog)
                tried.append(lease)  # if this fails, the commit may have succeeded all the same
                try:
                    with outcome.unavailable.record_failures(name):
                        lease.take(datetime.now(UTC))
                except LeaseHeldError as error:
                    outcome.leased_elsewhere[name] = str(error)
                    tried.remove(lease)
            ours = [lease for lease in tried if lease.warehouse not in outcome.unavailable]
            if not ours:
                self._raise_no_lease(outcome)
            heartbeat = Heartbeat(ours, self.control)
            heartbeat.start()
            yield {lease.warehouse: lease.catalog for lease in ours}
        finally:
            outcome.warnings += (heartbeat or Heartbeat([], self.control)).close()
            # These could not be taken, so a failure to release them adds nothing.
            Heartbeat([lease for lease in tried if lease.warehouse in outcome.unavailable], self.control).close()

    def _lease(self, warehouse: str, catalog: Catalog) -> Lease | TableClaim:
        """Return the lease of the warehouse, or the claim of the requested table."""
        if self.requested is None:
            claimed = self.control.claimed
            return Lease(self.config, warehouse, catalog, self.runner, self.lease_life, claimed=claimed)
        (table,) = self.requested.tables
        return TableClaim(
            self.config,
            table.facts.table,
            table.facts.uuid,
            catalog,
            self.runner,
            self.lease_life,
            stop=self.control.ended,
        )

    def _raise_no_lease(self, outcome: MaintenanceOutcome) -> NoReturn:
        outcome.unavailable.check_any_left([warehouse.name for warehouse in self.config.warehouses])
        raise LeaseHeldError("; ".join(outcome.leased_elsewhere.values()))

    def _plan(self, warehouse: str, catalog: Catalog, outcome: MaintenanceOutcome) -> WarehousePlan:
        now = self.clock()
        histories: Mapping[str, History] = {}
        with self._warn_about_damage(
            warehouse, catalog, outcome, "every job counts as never run, since ops.job_runs is damaged"
        ):
            if not self.dry_run:
                recovery.close_abandoned_runs(catalog, warehouse, self.runner, now)
            if not self.requested:
                histories = load_histories(catalog, now)
        if self.requested:
            return self.requested
        warehouse_plan = plan(
            self.config,
            warehouse,
            catalog,
            filters=self.filters,
            histories=histories,
            now=now,
            registry=self.registry,
            stop=self.control.ended,
        )
        if not self.dry_run:
            # A plan that was stopped lacks some tables.
            complete = self.filters.is_every_table and not self.control.ended.is_set()
            with self._warn_about_damage(
                warehouse, catalog, outcome, "old candidates remain, since ops.orphan_candidates is damaged"
            ):
                expired = find_expired_candidates(warehouse_plan, histories, now, is_complete=complete)
                delete_handled_candidates(catalog, expired)
        allowed = hold_jobs_that_delete(self.config, warehouse_plan)
        return hold_jobs_without_listings(self.config, catalog, allowed)

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

    def _build_failed_plans(self, warehouse_plan: WarehousePlan) -> Iterator[RunRecord]:
        """Yield a failed run for each table that could not be planned."""
        now = self.clock()
        for table, reason in warehouse_plan.problems.items():
            queued = RunRecord(runner=self.runner, table=table, table_uuid="", job=PLAN, queued_at=now)
            yield queued
            yield replace(queued, state=RunState.FAILED, reason=reason, finished_at=now)

    def _works(self, warehouse_plan: WarehousePlan, buffer: OpsBuffer) -> Iterator[TableWork]:
        now = self.clock()
        for table in warehouse_plan.tables:
            runs = tuple(
                RunRecord(
                    runner=self.runner,
                    table=table.facts.table,
                    table_uuid=table.facts.uuid,
                    job=decision.job,
                    reason=decision.reason,
                    snapshot=table.facts.snapshot,
                    queued_at=now,
                )
                for decision in table.due
            )
            if runs:
                yield TableWork(table.facts.table, table.policies, runs, self._plan_table, buffer)

    def _plan_table(self, run: RunRecord) -> PlannedTable:
        """Return the values that a job checks right before it begins."""
        assert run.job not in (PLAN, RESTORE)
        job: JobName = run.job
        policies = PolicyTables(self.config, run.table.warehouse)

        def resolve_policies(properties: Mapping[str, str]) -> TablePolicies:
            return policies.resolve_policies(run.table, dict(properties)).policies

        def wait() -> str | None:
            return reason_to_wait(job, run.table, self.registry)

        return PlannedTable(run.table_uuid, resolve_policies, wait)

    @contextmanager
    def _spark(self) -> Generator[SparkSession, None, None]:
        if self.session is not None:
            yield self.session
            return
        names = [warehouse.name for warehouse in self.config.warehouses]
        warehouse_properties = {key: value for name in names for key, value in session_properties(name).items()}
        properties = {**FAIR, **warehouse_properties, **self.properties}
        spark = spark_session(
            self.config,
            "lakewright-maintain",
            master=self.master,
            deadline=self.limits.deadline,
            properties=properties,
            workload=Workload.SMALL_JOB if self.requested else Workload.MAINTENANCE,
        )
        self.control.listen()
        try:
            yield spark
        finally:
            with suppress(Py4JError, ConnectionError):  # it may have ended already
                spark.stop()
