"""One run of the scheduler: leases, plans, one Spark application for the work of all warehouses, what came of it."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from lakewright_spark.maintenance import registry as jobs
from lakewright_spark.maintenance.switches import reason_to_wait
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.pyiceberg_client.catalog import explained, open_catalog
from lakewright_spark.pyiceberg_client.read_errors import is_damage, reason_unreadable
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.scheduler import recovery
from lakewright_spark.scheduler.candidate_expiry import expired_candidates
from lakewright_spark.scheduler.due import History
from lakewright_spark.scheduler.lease import LIFE, Heartbeat, Lease, read
from lakewright_spark.scheduler.listings import held_without_listing
from lakewright_spark.scheduler.outcome import Outcome
from lakewright_spark.scheduler.plan import WarehousePlan, plan
from lakewright_spark.scheduler.run_log.job_runs import histories
from lakewright_spark.scheduler.run_log.ops_buffer import OpsBuffer, forget_handled_candidates
from lakewright_spark.scheduler.run_log.recorder import EVERY, Recorder
from lakewright_spark.scheduler.run_log.records import PLAN, RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Control, Limits, Observer, Supervisor
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.scheduler.table_worker import TableWork
from lakewright_spark.session.builder import spark_session
from lakewright_spark.session.secrets import check_before_start
from lakewright_spark.unavailable_warehouses import Unavailable

FAIR = {"spark.scheduler.mode": "FAIR"}


def this_runner() -> str:
    """A name for this process that no other has."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Maintenance:
    """What is wanted. `config` has the warehouses that are meant, and no others."""

    config: CatalogConfig
    filters: Filters = field(default_factory=Filters)
    limits: Limits = field(default_factory=Limits)
    dry_run: bool = False
    asked: WarehousePlan | None = None
    """What somebody asked for, instead of what is due."""
    registry: ExecutionRegistry | None = None
    """Says which executions still run; without one, results are not compacted."""
    master: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    """Spark's, beside those of the catalogs."""
    lease_life: timedelta = LIFE
    record_every: float = EVERY
    """Seconds."""
    chosen: Collection[str] = ()
    """Warehouses that the user named. Of the others, those that this identity may not use are left out."""
    observers: Sequence[Observer] = ()
    control: Control = field(default_factory=Control)
    clock: Callable[[], datetime] = _utc_now
    """What ages are counted by, and runs are told by; leases go by the real one."""
    session: SparkSession | None = None
    """One that is there already, and stays; by default one is made when there is work."""
    runner: str = field(default_factory=this_runner)

    def run(self) -> Outcome:
        """Do what is due. Raises this package's errors if nothing could be begun; else the outcome tells all."""
        outcome = Outcome(self.runner, self.dry_run, unavailable=Unavailable(self.chosen))
        with ExitStack() as stack:
            catalogs = self._opened(outcome.unavailable)
            if self.session is None:
                check_before_start(self.config, self.limits.deadline)  # before there is a lease, or a row
            if not self.dry_run:
                catalogs = stack.enter_context(self._leased(catalogs, outcome))
            plans: list[WarehousePlan] = []
            for name, catalog in catalogs.items():
                with outcome.unavailable.leaving_out(name):
                    plans.append(self._planned(name, catalog, outcome))
            outcome.unavailable.check_any_left([one.name for one in self.config.warehouses])
            outcome.planned(plans)
            buffer = OpsBuffer(self.config, catalogs)
            works = [work for one in plans for work in self._works(one, buffer)]
            observers: list[Observer] = [outcome, *self.observers]
            undecided = [run for one in plans for run in self._undecided(one)]
            recorder: Recorder | None = None
            if not self.dry_run:
                recorder = Recorder(self.config, catalogs, self.clock, every=self.record_every, buffer=buffer)
                stack.callback(self._close, recorder, outcome)
                observers.insert(0, recorder)
            self._tell([one for one in observers if one is not outcome], undecided)
            self._tell(observers, [run for work in works for run in work.runs])
            if recorder:
                recorder.start()
            if works:
                self._work(works, observers, outcome)
        outcome.lost = dict(self.control.lost)
        return outcome

    def decide(self) -> Outcome:
        """Return what `run` would do with each table and why: without a lease, without Spark, without a change."""
        asking = replace(self, dry_run=True)
        outcome = Outcome(self.runner, dry_run=True, unavailable=Unavailable(self.chosen))
        plans: list[WarehousePlan] = []
        for name, catalog in asking._opened(outcome.unavailable).items():
            with outcome.unavailable.leaving_out(name), explained(self.config, name, "the lease"):
                row = read(catalog)
                if row and row.held_against(self.runner, datetime.now(UTC)):
                    outcome.held[name] = f"warehouse {name} is being maintained by {row.holder}"
                plans.append(asking._planned(name, catalog, outcome))
        outcome.unavailable.check_any_left([one.name for one in self.config.warehouses])
        outcome.planned(plans)
        return outcome

    def _opened(self, unavailable: Unavailable) -> dict[str, Catalog]:
        """The catalogs of the warehouses that answer. Raises the first error if none does."""
        opened: dict[str, Catalog] = {}
        for one in self.config.warehouses:
            with unavailable.leaving_out(one.name):
                opened[one.name] = open_catalog(self.config, one.name)
        unavailable.check_any_left([one.name for one in self.config.warehouses])
        return opened

    def _close(self, recorder: Recorder, outcome: Outcome) -> None:
        outcome.warnings += recorder.close(frozenset(self.control.lost))

    def _tell(self, observers: Sequence[Observer], runs: Iterable[RunRecord]) -> None:
        for run in runs:
            for observer in observers:
                observer(run)

    def _work(self, works: Sequence[TableWork], observers: Sequence[Observer], outcome: Outcome) -> None:
        try:
            with self._spark() as spark:
                supervisor = Supervisor(spark, self.limits, self.control, observers, self.clock, self.dry_run)
                supervisor.run(works)
                outcome.why_stopped = supervisor.why_stopped
        except BaseException as error:
            # It did not start, or is no more: nobody else says what became of the runs.
            self._give_up(observers, outcome, f"{type(error).__name__}: {error}".splitlines()[0])
            if isinstance(error, Py4JError | ConnectionError):
                raise JobFailedError(
                    f"Spark ended in the middle of its work, killed perhaps for the memory that it took "
                    f"(spark.driver.memory): {type(error).__name__}; the next run does what is left"
                ) from error
            raise

    def _give_up(self, observers: Sequence[Observer], outcome: Outcome, why: str) -> None:
        for run in [one for one in outcome.runs.values() if not one.state.ended]:
            ended = run.not_begun(why)
            if run.state is RunState.RUNNING:
                ended = replace(run, state=RunState.FAILED, reason=why, finished_at=self.clock())
            for observer in observers:
                observer(ended)

    @contextmanager
    def _leased(self, catalogs: Mapping[str, Catalog], outcome: Outcome) -> Iterator[dict[str, Catalog]]:
        """The catalogs of the warehouses that are ours for the block. LeaseHeldError if not one of them is."""
        tried: list[Lease | TableClaim] = []
        heartbeat: Heartbeat | None = None
        try:
            for name, catalog in catalogs.items():
                lease = self._lease(name, catalog)
                tried.append(lease)  # where it fails, it may be ours all the same: a commit may lose its answer
                try:
                    with outcome.unavailable.leaving_out(name):
                        lease.take(datetime.now(UTC))
                except LeaseHeldError as error:
                    outcome.held[name] = str(error)
                    tried.remove(lease)
            ours = [lease for lease in tried if lease.warehouse not in outcome.unavailable]
            if not ours:
                self._raise_no_lease(outcome)
            heartbeat = Heartbeat(ours, self.control)
            heartbeat.start()
            yield {lease.warehouse: lease.catalog for lease in ours}
        finally:
            outcome.warnings += (heartbeat or Heartbeat([], self.control)).close()
            # Why these could not be taken is known already, so a failure to give them back adds nothing.
            Heartbeat([lease for lease in tried if lease.warehouse in outcome.unavailable], self.control).close()

    def _lease(self, warehouse: str, catalog: Catalog) -> Lease | TableClaim:
        """Return what is to be taken before anything is changed: the warehouse, or the one table that was asked for."""
        if self.asked is None:
            claimed = self.control.claimed
            return Lease(self.config, warehouse, catalog, self.runner, self.lease_life, claimed=claimed)
        (asked,) = self.asked.tables
        return TableClaim(
            self.config,
            asked.facts.table,
            asked.facts.uuid,
            catalog,
            self.runner,
            self.lease_life,
            stop=self.control.ended,
        )

    def _raise_no_lease(self, outcome: Outcome) -> NoReturn:
        outcome.unavailable.check_any_left([one.name for one in self.config.warehouses])
        raise LeaseHeldError("; ".join(outcome.held.values()))

    def _planned(self, warehouse: str, catalog: Catalog, outcome: Outcome) -> WarehousePlan:
        now = self.clock()
        known: Mapping[str, History] = {}
        with self._reporting_damage(warehouse, catalog, outcome, "every job counts as never run: ops.job_runs"):
            if not self.dry_run:
                recovery.close_runs_of_the_dead(catalog, warehouse, self.runner, now)
            if not self.asked:
                known = histories(catalog, now)
        if self.asked:
            return self.asked
        found = plan(
            self.config,
            warehouse,
            catalog,
            filters=self.filters,
            histories=known,
            now=now,
            registry=self.registry,
            stop=self.control.ended,
        )
        if not self.dry_run:
            # A plan that was stopped is of some tables only.
            complete = self.filters.is_every_table and not self.control.ended.is_set()
            with self._reporting_damage(warehouse, catalog, outcome, "old candidates stay: ops.orphan_candidates"):
                expired = expired_candidates(found, known, now, is_complete=complete)
                forget_handled_candidates(catalog, expired)
        return held_without_listing(self.config, catalog, found)

    @contextmanager
    def _reporting_damage(self, warehouse: str, catalog: Catalog, outcome: Outcome, what: str) -> Iterator[None]:
        """Warn of a table of `ops` that is damaged: that is no reason to leave the user's tables alone."""
        with explained(self.config, warehouse, "tables in ops"):
            try:
                yield
            except Exception as error:
                if not is_damage(error):
                    raise  # as a server that is down for a moment: every job would be done again
                outcome.warnings.append(f"warehouse {warehouse}: {what}: {reason_unreadable(catalog, error)}")

    def _undecided(self, found: WarehousePlan) -> Iterator[RunRecord]:
        """Yield, for each table that could not be planned, a run that failed."""
        now = self.clock()
        for table, reason in found.problems.items():
            queued = RunRecord(runner=self.runner, table=table, table_uuid="", job=PLAN, queued_at=now)
            yield queued
            yield replace(queued, state=RunState.FAILED, reason=reason, finished_at=now)

    def _works(self, found: WarehousePlan, buffer: OpsBuffer) -> Iterator[TableWork]:
        now = self.clock()
        for one in found.tables:
            runs = tuple(
                RunRecord(
                    runner=self.runner,
                    table=one.facts.table,
                    table_uuid=one.facts.uuid,
                    job=decision.job,
                    reason=decision.reason,
                    snapshot=one.facts.snapshot,
                    queued_at=now,
                )
                for decision in one.due
            )
            if runs:
                yield TableWork(one.facts.table, one.policies, runs, self._look_again, buffer)

    def _look_again(self, run: RunRecord) -> jobs.Planned:
        """Return what a job checks right before it begins."""
        policies = PolicyTables(self.config, run.table.warehouse)

        def policies_of(properties: Mapping[str, str]) -> TablePolicies:
            return policies.of(run.table, dict(properties)).policies

        def wait() -> str | None:
            return reason_to_wait(run.table, self.registry) if run.job == "compaction" else None

        return jobs.Planned(run.table_uuid, policies_of, wait)

    @contextmanager
    def _spark(self) -> Iterator[SparkSession]:
        if self.session is not None:
            yield self.session
            return
        names = [one.name for one in self.config.warehouses]
        ours = {key: value for name in names for key, value in jobs.session_properties(name).items()}
        properties = {**FAIR, **ours, **self.properties}
        deadline = self.limits.deadline
        spark = spark_session(
            self.config, "lakewright-maintain", master=self.master, deadline=deadline, properties=properties
        )
        self.control.listen()
        try:
            yield spark
        finally:
            with suppress(Py4JError, ConnectionError):  # one that died cannot be stopped
                spark.stop()
