"""What came of one run of the scheduler, and the error that it ends with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lakewright_spark.errors import (
    DeadlineError,
    JobFailedError,
    LakewrightSparkError,
    LeaseHeldError,
    LeaseLostError,
    MaintenanceFailedError,
    StoppedError,
)
from lakewright_spark.policies.builtin import is_own
from lakewright_spark.pyiceberg_client.read_errors import EVERY_TABLE
from lakewright_spark.scheduler.plan import WarehousePlan
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier
from lakewright_spark.unavailable_warehouses import Unavailable

_UNDONE = (RunState.FAILED, RunState.CANCELLED)


@dataclass
class Outcome:
    """An observer of runs, too: it keeps how each stands."""

    runner: str
    dry_run: bool = False
    plans: list[WarehousePlan] = field(default_factory=list[WarehousePlan])
    runs: dict[str, RunRecord] = field(default_factory=dict[str, RunRecord])
    held: dict[str, str] = field(default_factory=dict[str, str])
    """Warehouse -> who maintains it."""
    lost: dict[str, str] = field(default_factory=dict[str, str])
    unavailable: Unavailable = field(default_factory=Unavailable)
    """Warehouses in which nothing was done: those that this identity may not use, and those that failed."""
    why_stopped: str | None = None
    warnings: list[str] = field(default_factory=list[str])
    """What could not be put on record, and leases that could not be given back."""

    def __call__(self, run: RunRecord) -> None:
        self.runs[run.id] = run

    def planned(self, plans: Iterable[WarehousePlan]) -> None:
        self.plans = list(plans)

    @property
    def problems(self) -> dict[TableIdentifier, str]:
        """Tables about which nothing could be decided."""
        return {table: reason for one in self.plans for table, reason in one.problems.items()}

    @property
    def shared(self) -> dict[TableIdentifier, str]:
        """Tables where no file is deleted, since their location overlaps that of others."""
        return {table: reason for one in self.plans for table, reason in one.shared.items()}

    @property
    def tables(self) -> int:
        """How many of the user's tables were looked at."""
        read = [one.facts.table for plan in self.plans for one in plan.tables]
        unread = [table for table in self.problems if table.name != EVERY_TABLE]
        return sum(not is_own(table) for table in [*read, *unread])

    def counts(self, *, own: bool = False) -> dict[str, int]:
        """Return how many runs of the user's tables, or of this package's own, are in each state."""
        return dict(Counter(run.state.value for run in self.runs.values() if is_own(run.table) == own))

    def in_state(self, *states: RunState) -> list[RunRecord]:
        return [run for run in self.runs.values() if run.state in states]

    def error(self) -> LakewrightSparkError | None:
        """What the command ends with: the reason why it stopped before its end counts for more than failed runs."""
        undone = len(self.in_state(RunState.CANCELLED))
        if self.why_stopped:
            kind = DeadlineError if "deadline" in self.why_stopped else StoppedError
            return kind(f"{self.why_stopped}: {undone} runs were cancelled or not begun; the next run does them")
        if self.lost:
            return LeaseLostError(f"{'; '.join(self.lost.values())}: {undone} runs were cancelled or not begun")
        failed, unread_warehouses = self.in_state(RunState.FAILED, RunState.CANCELLED), self.unavailable.failed
        if failed or self.problems or unread_warehouses:
            told = [str(error) for error in unread_warehouses.values()]
            told += [f"{run}: {run.reason}" for run in failed]
            told += [f"{table}: {reason}" for table, reason in self.problems.items()]
            more = f"; and {len(told) - 3} more, see `lakewright-spark runs list`" if len(told) > 3 else ""
            runs = [f"{len(failed)} of {len(self.runs)} runs failed"] if failed else []
            unread = [f"{_count(len(self.problems))} could not be planned"] if self.problems else []
            down = [f"{len(unread_warehouses)} warehouses could not be maintained"] if unread_warehouses else []
            return MaintenanceFailedError(f"{', '.join(down + runs + unread)}: {'; '.join(told[:3])}{more}")
        if self.held:
            return LeaseHeldError("; ".join(self.held.values()))
        return JobFailedError("; ".join(self.warnings)) if self.warnings else None

    def as_json(self) -> dict[str, Any]:
        return {
            "runner": self.runner,
            "dry_run": self.dry_run,
            "tables": self.tables,
            "states": self.counts(),
            "runs": [told(run) for run in self.runs.values() if not is_own(run.table) or run.state in _UNDONE],
            "own": {"states": self.counts(own=True)},
            "held": self.held,
            "left_out": {name: str(error) for name, error in self.unavailable.hidden.items()},
            "failed": {name: str(error) for name, error in self.unavailable.failed.items()},
            "lost": self.lost,
            "undecided": {str(table): reason for table, reason in self.problems.items()},
            "shared": {str(table): reason for table, reason in self.shared.items()},
            "stopped": self.why_stopped,
            "warnings": self.warnings,
        }


def _count(problems: int) -> str:
    return "1 table or namespace" if problems == 1 else f"{problems} tables or namespaces"


def told(run: RunRecord) -> dict[str, Any]:
    """A run as JSON."""
    return {
        "id": run.id,
        "runner": run.runner,
        "warehouse": run.table.warehouse,
        "table": str(run.table),
        "table_uuid": run.table_uuid,
        "job": run.job,
        "state": run.state.value,
        "reason": run.reason,
        "snapshot": run.snapshot,
        "queued_at": run.queued_at.isoformat(),
        "started_at": run.started_at and run.started_at.isoformat(),
        "finished_at": run.finished_at and run.finished_at.isoformat(),
        "seconds": run.seconds,
        "metrics": dict(run.metrics),
    }
