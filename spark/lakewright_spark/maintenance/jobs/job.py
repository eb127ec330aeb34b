"""MaintenanceJob: what a maintenance job declares about itself. Each other module of this folder holds one job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.maintenance.table.row_buffer import OpsTable
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.times import format_time

PAUSE = timedelta(hours=16)
"""Time after a successful run until a job is due again. OpenHouse's value: every nightly run includes the job."""


@dataclass(frozen=True, kw_only=True)
class JobMetrics:
    """Result of a job, or of its dry run. Subclasses add the job's counts and bytes."""

    state: Literal["SUCCEEDED", "SKIPPED"] = "SUCCEEDED"
    reason: str = ""
    """Reason why the job was skipped, or a note about its result."""
    dry_run: bool = False

    @property
    def failure(self) -> str | None:
        """The part of the work that a completed job could not do; None if it did everything."""
        return None


class JobFunction(Protocol):
    """Runs a job on one table. `now` is the instant (UTC) that ages are counted from."""

    def __call__(self, opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> JobMetrics:
        """Run the job on a table and return what it did."""
        ...


@dataclass(frozen=True)
class History:
    """Earlier runs on one table."""

    succeeded: Mapping[JobName, datetime] = field(default_factory=dict[JobName, datetime])
    """Start (UTC) of the last successful run of each job."""
    oldest_candidate: datetime | None = None
    """When the oldest remaining orphan candidate was found (UTC)."""


class DueDecision(NamedTuple):
    """Whether a job is due, and why."""

    is_due: bool
    reason: str


class DueRule(Protocol):
    """Decides whether a job is due on a table. A pure function.

    Raises:
        PolicyRefusedError: A property of the table cannot be read.
    """

    def __call__(self, facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
        """Return whether the job is due, and why."""
        ...


@dataclass(frozen=True, kw_only=True)
class MaintenanceJob:
    """A maintenance job. `maintenance.registry` lists all jobs in the order in which they run on a table."""

    name: JobName
    run: JobFunction
    is_due: DueRule
    primary_only: bool = False
    """Whether the job leaves replicas alone."""
    read_only: bool = False
    """Whether the job changes nothing of the table, so that a lock does not hold it back."""
    waits_for_executions: bool = False
    """Whether the job replaces files that readers of a running execution page through."""
    owns_location: bool = False
    """Whether the job treats every file under the table's location as the table's."""
    deletes_files: bool = False
    """Whether the job deletes files, or replaces files that another job has to delete."""
    needs_listing: bool = False
    """Whether the job lists the table's location."""
    ops_tables: tuple[OpsTable, ...] = ()
    """Tables of `ops` that hold the job's result. A run succeeds once its rows are committed."""


def due_after(pause: timedelta, job: JobName, history: History, now: datetime) -> DueDecision:
    """Return that the job is due if its last successful run began at least a pause ago."""
    last = history.succeeded.get(job)
    if last is None:
        return DueDecision(is_due=True, reason="no earlier run")
    return DueDecision(now - last >= pause, f"last run {format_time(last)}")


def due_after_change(job: JobName, facts: TableFacts, history: History) -> DueDecision:
    """Return that the job is due if rows of the table changed since its last successful run."""
    last = history.succeeded.get(job)
    if last is None:
        return DueDecision(is_due=True, reason="no earlier run")
    if facts.changed_at is None or facts.changed_at < last:
        return DueDecision(is_due=False, reason=f"unchanged since {format_time(last)}")
    return DueDecision(is_due=True, reason=f"changed {format_time(facts.changed_at)}")
