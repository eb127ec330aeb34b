"""Maintenance: plans all warehouses, runs the due jobs in one Spark application, reports the outcome."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from py4j.protocol import Py4JError
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError, LeaseHeldError
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.maintenance.job_runner import session_properties
from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog
from lakewright_spark.pyiceberg_client.limit_checks import LimitUse
from lakewright_spark.scheduler import recovery
from lakewright_spark.scheduler.claims import list_live_runners
from lakewright_spark.scheduler.heartbeat import Heartbeat
from lakewright_spark.scheduler.lease_table import LIFE
from lakewright_spark.scheduler.ordering import Budget
from lakewright_spark.scheduler.outcome import MaintenanceOutcome
from lakewright_spark.scheduler.plan import FindDueSince, WarehousePlan, order_plans
from lakewright_spark.scheduler.planning import MaintenancePlanner
from lakewright_spark.scheduler.run_log.completed_runs import CompletedRuns
from lakewright_spark.scheduler.run_log.daily_usage import DailyUsage
from lakewright_spark.scheduler.run_log.ops_buffer import OpsBuffer
from lakewright_spark.scheduler.run_log.recorder import COMMIT_INTERVAL_SECONDS, Recorder
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.runner_claims import RunnerClaims
from lakewright_spark.scheduler.supervisor import Control, Limits, Observer, Supervisor, ignore_run
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.scheduler.table_worker import TableWork, TableWorker
from lakewright_spark.scheduler.usage_recording import list_recorded_uses, read_hours, record_usage
from lakewright_spark.scheduler.work_queue import WorkQueue
from lakewright_spark.session.builder import Workload, forget_dead_session, spark_session
from lakewright_spark.session.secrets import check_before_start
from lakewright_spark.unavailable_warehouses import UnavailableWarehouses

FAIR = {"spark.scheduler.mode": "FAIR"}
MAX_RESTARTS = 20
"""Number of times that a run replaces a JVM that ended. Each table can end two per run."""


def new_runner_name() -> str:
    """Return a unique name for this process."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _limit_restarts(restarts: int, most: int) -> None:
    """Raise ConnectionError if Spark ended too often."""
    if restarts > most:
        raise ConnectionError(f"Spark's JVM ended {restarts} times")


@dataclass
class MaintenanceRunner:
    """A maintenance run of the warehouses in `config`. Several runners share the tables of a warehouse."""

    config: CatalogConfig
    filters: Filters = field(default_factory=Filters)
    limits: Limits = field(default_factory=Limits)
    dry_run: bool = False
    requested: WarehousePlan | None = None
    """Plan of one table that replaces the plan of due jobs."""
    registry: ExecutionRegistry | None = None
    """Knows which executions still run. Without one, results are not compacted."""
    budget: Budget | None = None
    """Most work of this run."""
    master: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    """Spark properties in addition to the properties of the catalogs."""
    lease_life: timedelta = LIFE
    record_every: float = COMMIT_INTERVAL_SECONDS
    """Seconds."""
    named_warehouses: Collection[str] = ()
    """Warehouses that the user named. Other warehouses are left out if this identity may not use them."""
    observers: Sequence[Observer] = ()
    plan_observers: Sequence[Callable[[Sequence[WarehousePlan]], None]] = ()
    """Are called with the plans before the work begins."""
    usage_observers: Sequence[Callable[[Sequence[DailyUsage], Sequence[LimitUse]], None]] = ()
    """Are called with the rows that the run wrote to `ops.daily_usage`."""
    control: Control = field(default_factory=Control)
    clock: Callable[[], datetime] = _utc_now
    """Clock of ages and run records. Claims use the real time."""
    session: SparkSession | None = None
    """Existing session, which is not stopped. By default, a session is created when there is work."""
    runner: str = field(default_factory=new_runner_name)
    start_worker: Callable[..., TableWorker] = TableWorker

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
                check_before_start(self.config, self.limits.deadline)  # before a table is claimed
            claims: dict[str, RunnerClaims] = {}
            ended: dict[str, CompletedRuns] = {}
            if not self.dry_run and self.requested:
                stack.enter_context(self._hold_table(self.requested, catalogs, outcome))
            elif not self.dry_run:
                claims = stack.enter_context(self._hold_claims(catalogs, outcome))
                # Before the histories are read, so that no run of another runner is missed.
                ended = self._watch_completed_runs(claims, outcome.unavailable)
                catalogs = {name: catalogs[name] for name in ended}
            now, planner = self.clock(), self._build_planner()
            plans = self._plan(planner, catalogs, outcome, claims, now)
            buffer = OpsBuffer(self.config, catalogs)
            works = planner.build_works(plans, buffer, now)
            observers: list[Observer] = [outcome, *self.observers]
            unplanned = [run for warehouse_plan in plans for run in planner.build_failed_plans(warehouse_plan, now)]
            recorder: Recorder | None = None
            if not self.dry_run:
                recorder = Recorder(self.config, catalogs, self.clock, every=self.record_every, buffer=buffer)
                stack.callback(self._close, recorder, outcome)
                observers.insert(0, recorder)
            self._notify([observer for observer in observers if observer is not outcome], unplanned)
            self._notify(observers, [run for work in works for run in work.runs])
            if recorder:
                recorder.start()
            queue = WorkQueue(
                works,
                claims,
                lost=self.control.lost,
                look_ahead=2 * self.limits.parallel,
                ended=ended,
                is_recorded=recorder.has_recorded if recorder else lambda _: True,
                record_soon=recorder.flush_soon if recorder else lambda: None,
                report_dead=self._report_dead,
            )
            stack.callback(queue.close)
            queue.start()
            if works:
                self._work(queue, observers, outcome, recorder)
        outcome.lost = dict(self.control.lost)
        self._record_usage(catalogs, outcome)
        return outcome

    def decide(self, find_due_since: FindDueSince | None = None) -> MaintenanceOutcome:
        """Return the plans without running a job, claiming a table or starting Spark.

        Args:
            find_due_since: Finds when a due job became due, which takes many times as long as the plan.
        """
        dry_run = replace(self, dry_run=True)
        outcome = MaintenanceOutcome(
            self.runner, dry_run=True, unavailable=UnavailableWarehouses(self.named_warehouses)
        )
        catalogs = dry_run._open_catalogs(outcome.unavailable)
        for name, catalog in catalogs.items():
            with outcome.unavailable.record_failures(name), explain_errors(self.config, name, "the claims"):
                for row in list_live_runners(catalog, datetime.now(UTC)):
                    outcome.leased_elsewhere[name] = f"warehouse {name} is being maintained by {row.holder}"
        planner = replace(dry_run._build_planner(), find_due_since=find_due_since)
        dry_run._plan(planner, catalogs, outcome, {}, self.clock())
        return outcome

    def _record_usage(self, catalogs: Mapping[str, Catalog], outcome: MaintenanceOutcome) -> None:
        """Write the usage of the day, also if the run ended at its deadline. A run of some tables writes none."""
        is_stopped = self.control.ended.is_set()
        if self.dry_run or self.requested is not None or is_stopped or not self.filters.is_every_table:
            return
        maintained = {name: catalog for name, catalog in catalogs.items() if name not in outcome.unavailable}
        usages, problems = record_usage(self.config, maintained, self.clock())
        outcome.warnings += problems
        if not self.usage_observers:
            return
        config, hours = self.config, None
        if self.named_warehouses:
            # Limits of the tenant are about all warehouses, and a pod may be recorded in other warehouses, too.
            config = config.model_copy(update={"limits": None})
        else:
            usages, hours, problems = read_hours(config, maintained, usages, self.clock())
            outcome.warnings += problems
        uses = list_recorded_uses(config, usages, hours)
        for observe in self.usage_observers:
            observe(usages, uses)

    def _build_planner(self) -> MaintenancePlanner:
        return MaintenancePlanner(
            self.config, self.filters, self.runner, self.limits, self.control, self.registry, dry_run=self.dry_run
        )

    def _plan(
        self,
        planner: MaintenancePlanner,
        catalogs: Mapping[str, Catalog],
        outcome: MaintenanceOutcome,
        claims: Mapping[str, RunnerClaims],
        now: datetime,
    ) -> list[WarehousePlan]:
        plans: list[WarehousePlan] = []
        for name, catalog in catalogs.items():
            with outcome.unavailable.record_failures(name):
                if self.requested is None:
                    plans.append(planner.plan_warehouse(name, catalog, outcome, claims.get(name), now))
                    continue
                if not self.dry_run:
                    planner.close_runs(name, catalog, outcome, now)
                plans.append(self.requested)
        outcome.unavailable.check_any_left([warehouse.name for warehouse in self.config.warehouses])
        outcome.plans = order_plans(plans, now, self.budget)
        for observe in self.plan_observers:
            observe(outcome.plans)
        return outcome.plans

    def _open_catalogs(self, unavailable: UnavailableWarehouses) -> dict[str, Catalog]:
        """Return the catalogs of the warehouses that respond. Raise the first error if none does."""
        opened: dict[str, Catalog] = {}
        for warehouse in self.config.warehouses:
            with unavailable.record_failures(warehouse.name):
                opened[warehouse.name] = open_catalog(self.config, warehouse.name)
        unavailable.check_any_left([warehouse.name for warehouse in self.config.warehouses])
        return opened

    def _watch_completed_runs(
        self, claims: Mapping[str, RunnerClaims], unavailable: UnavailableWarehouses
    ) -> dict[str, CompletedRuns]:
        """Return the runs that others complete from now on, by warehouse. Leave out warehouses that do not respond."""
        ended: dict[str, CompletedRuns] = {}
        for name, warehouse_claims in claims.items():
            with unavailable.record_failures(name):
                ended[name] = CompletedRuns(self.config, name, warehouse_claims.catalog)
        return ended

    def _close(self, recorder: Recorder, outcome: MaintenanceOutcome) -> None:
        outcome.warnings += recorder.close(frozenset(self.control.lost))

    def _notify(self, observers: Sequence[Observer], runs: Iterable[RunRecord]) -> None:
        for run in runs:
            for observer in observers:
                observer(run)

    def _work(
        self,
        queue: WorkQueue,
        observers: Sequence[Observer],
        outcome: MaintenanceOutcome,
        recorder: Recorder | None,
    ) -> None:
        restarts = 0
        try:
            while not queue.is_done and outcome.why_stopped is None:
                with self._spark() as spark:
                    supervisor = Supervisor(
                        spark,
                        self.limits,
                        self.control,
                        observers,
                        self.clock,
                        self.dry_run,
                        recorder.record_now if recorder else ignore_run,
                        start_worker=self.start_worker,
                    )
                    supervisor.run(queue)
                    outcome.why_stopped = supervisor.why_stopped
                if not supervisor.has_spark_died:
                    return
                restarts += 1
                _limit_restarts(restarts, 0 if self.session is not None else MAX_RESTARTS)
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

    def _report_dead(self, name: str, holders: Mapping[str, str], works: Collection[TableWork]) -> dict[str, int]:
        """Close the runs of runners that died during this run, and return the deaths that each table may have caused.

        `holders` has the dead runners of tables (by UUID) of the warehouse that this runner took over.
        """
        catalog, now = open_catalog(self.config, name), self.clock()
        with explain_errors(self.config, name, "ops.job_runs"):
            closed = recovery.close_abandoned_runs(catalog, name, self.runner, now)
            return recovery.count_kills(catalog, [work.runs[0] for work in works], closed, holders, now)

    @contextmanager
    def _hold_claims(
        self, catalogs: Mapping[str, Catalog], outcome: MaintenanceOutcome
    ) -> Generator[dict[str, RunnerClaims], None, None]:
        """Register this runner for the block, and yield its claims by warehouse. At first it holds none.

        Raises:
            LeaseHeldError: Runners of earlier releases maintain all warehouses.
        """
        tried: list[RunnerClaims] = []
        heartbeat: Heartbeat | None = None
        try:
            for name, catalog in catalogs.items():
                claims = RunnerClaims(self.config, name, catalog, self.runner, self.lease_life)
                tried.append(claims)  # if this fails, the commit may have succeeded all the same
                try:
                    with outcome.unavailable.record_failures(name):
                        claims.register(datetime.now(UTC))
                except LeaseHeldError as error:
                    outcome.leased_elsewhere[name] = str(error)
                    tried.remove(claims)
            ours = [claims for claims in tried if claims.warehouse not in outcome.unavailable]
            if not ours:
                outcome.unavailable.check_any_left([warehouse.name for warehouse in self.config.warehouses])
                raise LeaseHeldError("; ".join(outcome.leased_elsewhere.values()))
            heartbeat = Heartbeat(ours, self.control)
            heartbeat.start()
            yield {claims.warehouse: claims for claims in ours}
        finally:
            outcome.warnings += (heartbeat or Heartbeat([], self.control)).close()
            # These could not be taken, so a failure to release them adds nothing.
            Heartbeat([claims for claims in tried if claims.warehouse in outcome.unavailable], self.control).close()

    @contextmanager
    def _hold_table(
        self, requested: WarehousePlan, catalogs: Mapping[str, Catalog], outcome: MaintenanceOutcome
    ) -> Generator[None, None, None]:
        """Hold the claim of the requested table for the block.

        Raises:
            LeaseHeldError: Another runner works on the table.
        """
        (table,) = requested.tables
        claim = TableClaim(
            self.config,
            table.facts.table,
            table.facts.uuid,
            catalogs[requested.warehouse],
            self.runner,
            self.lease_life,
            stop=self.control.ended,
        )
        claim.take(datetime.now(UTC))
        heartbeat = Heartbeat([claim], self.control)
        heartbeat.start()
        try:
            yield
        finally:
            outcome.warnings += heartbeat.close()

    @contextmanager
    def _spark(self) -> Generator[SparkSession, None, None]:
        if self.session is not None:
            yield self.session
            return
        properties = dict(FAIR)
        for warehouse in self.config.warehouses:
            properties |= session_properties(self.config, warehouse.name)
        properties |= self.properties
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
            forget_dead_session()
