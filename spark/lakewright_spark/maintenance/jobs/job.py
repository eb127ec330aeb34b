"""MaintenanceJob: what a maintenance job declares about itself. Each other module of this folder holds one job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, Protocol

from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.maintenance.table.row_buffer import OpsTable
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.times import format_time

NIGHTLY, WEEKLY = timedelta(days=1), timedelta(days=7)
"""Times between two runs of a job."""
_MAX_SLACK = timedelta(hours=8)
"""OpenHouse lets 16 hours pass before a nightly job is due again, since nights begin and end at different times."""


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
class Failures:
    """Runs of a job that failed, or passed their time-out, since its last successful run."""

    count: int
    last: datetime
    """End (UTC) of the last failed run."""
    kills: int = 0
    """Failed runs during which the runner or its JVM died."""

    @property
    def proven(self) -> int:
        """Failures that the job caused. At the first death, other tables were in work too, and may be the cause."""
        return self.count - min(self.kills, 1)


@dataclass(frozen=True)
class Effect:
    """Effect of a job on a table, predicted or measured."""

    files: int = 0
    """Files that the table has fewer afterwards."""
    bytes: int = 0
    """Bytes to rewrite."""
    rewritten: int = 0
    """Files to rewrite."""


@dataclass(frozen=True)
class History:
    """Earlier runs on one table."""

    succeeded: Mapping[JobName, datetime] = field(default_factory=dict[JobName, datetime])
    """Start (UTC) of the last successful run of each job."""
    oldest_candidate: datetime | None = None
    """When the oldest remaining orphan candidate was found (UTC)."""
    failures: Mapping[JobName, Failures] = field(default_factory=dict[JobName, Failures])
    seconds: Mapping[JobName, float] = field(default_factory=dict[JobName, float])
    """Duration of the last successful run of each job."""
    effects: Mapping[JobName, Effect] = field(default_factory=dict[JobName, Effect])
    """Measured effect of the last successful run of each job that rewrites files."""
    bases: Mapping[JobName, Mapping[str, Any]] = field(default_factory=dict[JobName, Mapping[str, Any]])
    """Basis of the last successful run of each job that describes it: what the run depended on beside the rows."""
    first_due: datetime | None = None
    """When a job that never ran on the table was first due, as far as is known (UTC)."""

    @property
    def kills(self) -> int:
        """Return how many runs on the table killed their runner since the jobs' last successful runs."""
        return sum(failures.kills for failures in self.failures.values())

    def last_attempt(self, job: JobName) -> datetime | None:
        """Return when the job last succeeded, or failed by its own fault (UTC); None if it did not yet."""
        failures = self.failures.get(job)
        last_failure = failures.last if failures and failures.proven else None
        return max(filter(None, [self.succeeded.get(job), last_failure]), default=None)


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


class PredictRule(Protocol):
    """Predicts the effect of a job from the table's metadata and its last run. A pure function."""

    def __call__(self, facts: TableFacts, policies: TablePolicies, history: History) -> Effect:
        """Return the predicted effect."""
        ...


class BasisRule(Protocol):
    """Describes what a run depends on beside the rows of the table. A pure function."""

    def __call__(self, facts: TableFacts, policies: TablePolicies) -> dict[str, Any]:
        """Return the basis of a run, as JSON."""
        ...


class KeepsRule(Protocol):
    """Decides whether a cancelled run of a job keeps its completed steps. A pure function."""

    def __call__(self, policies: TablePolicies) -> bool:
        """Return whether it keeps them."""
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
    keeps_steps: KeepsRule | None = None
    """Decides whether a cancelled run keeps what its completed Spark jobs did, so that these may complete first. None:
    it keeps nothing."""
    reads_columns: bool = False
    """Whether Spark reads the table's columns, so that the job cannot run on a table with a type that Spark lacks."""
    needs_listing: bool = False
    """Whether the job lists the table's location."""
    ops_tables: tuple[OpsTable, ...] = ()
    """Tables of `ops` that hold the job's result. A run succeeds once its rows are committed."""
    every: timedelta = NIGHTLY
    """Time between two runs on a table that needs the job, unless the policy `job_settings` has another."""
    predict: PredictRule | None = None
    """Predicts the effect of the job. None: it removes no files, and rewrites none."""
    describe_basis: BasisRule | None = None
    """Describes what a run depends on, which is recorded with it. None: only the rows and the time count."""


def compute_pause(every: timedelta) -> timedelta:
    """Return the time after a successful run until a job is due again: a third less, at most eight hours less.

    >>> str(compute_pause(NIGHTLY)), str(compute_pause(WEEKLY))
    ('16:00:00', '6 days, 16:00:00')
    """
    return every - min(every / 3, _MAX_SLACK)


def due_after(every: timedelta, job: JobName, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether the last successful run is long enough ago, by the table's policy or else by `every`."""
    last = history.succeeded.get(job)
    if last is None:
        return DueDecision(is_due=True, reason="no earlier run")
    return DueDecision(now - last >= compute_pause(policies.every(job) or every), f"last run {format_time(last)}")


def due_after_change(job: JobName, facts: TableFacts, history: History) -> DueDecision:
    """Return that the job is due if rows of the table changed since its last successful run."""
    last = history.succeeded.get(job)
    if last is None:
        return DueDecision(is_due=True, reason="no earlier run")
    if facts.changed_at is None or facts.changed_at < last:
        return DueDecision(is_due=False, reason=f"unchanged since {format_time(last)}")
    return DueDecision(is_due=True, reason=f"changed {format_time(facts.changed_at)}")
