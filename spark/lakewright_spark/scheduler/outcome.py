"""Outcome: plans, runs and failures of one maintenance run, and the error that it ends with."""

from __future__ import annotations

from collections import Counter
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
from lakewright_spark.pyiceberg_client.read_errors import ALL_TABLES
from lakewright_spark.scheduler.plan import WarehousePlan
from lakewright_spark.scheduler.run_log.records import BASIS, RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier
from lakewright_spark.times import format_json_time
from lakewright_spark.unavailable_warehouses import UnavailableWarehouses

_UNDONE = (RunState.FAILED, RunState.CANCELLED)


@dataclass
class MaintenanceOutcome:
    """Outcome of a maintenance run. It observes runs and keeps their latest state."""

    runner: str
    dry_run: bool = False
    plans: list[WarehousePlan] = field(default_factory=list[WarehousePlan])
    runs: dict[str, RunRecord] = field(default_factory=dict[str, RunRecord])
    leased_elsewhere: dict[str, str] = field(default_factory=dict[str, str])
    """Warehouses that another runner maintains, with a sentence about it."""
    lost: dict[str, str] = field(default_factory=dict[str, str])
    unavailable: UnavailableWarehouses = field(default_factory=UnavailableWarehouses)
    """Warehouses without maintenance, since this identity may not use them or they failed."""
    why_stopped: str | None = None
    warnings: list[str] = field(default_factory=list[str])
    """Failed records and leases that could not be released."""

    def __call__(self, run: RunRecord) -> None:
        """Handle a run whose state changed."""
        self.runs[run.id] = run

    @property
    def problems(self) -> dict[TableIdentifier, str]:
        """Tables that could not be planned, and why."""
        return {table: reason for plan in self.plans for table, reason in plan.problems.items()}

    @property
    def shared(self) -> dict[TableIdentifier, str]:
        """Tables whose location overlaps that of others, so that no file is deleted."""
        return {table: reason for plan in self.plans for table, reason in plan.shared.items()}

    @property
    def tables(self) -> int:
        """Number of the user's tables that were planned or unreadable."""
        read = [table.facts.table for plan in self.plans for table in plan.tables]
        unread = [table for table in self.problems if table.name != ALL_TABLES]
        return sum(not is_own(table) for table in [*read, *unread])

    def counts(self, *, own_tables: bool = False) -> dict[str, int]:
        """Return the number of runs by state, for the user's tables or for this package's own."""
        return dict(Counter(run.state.value for run in self.runs.values() if is_own(run.table) == own_tables))

    def filter_runs(self, *states: RunState) -> list[RunRecord]:
        """Return the runs in one of these states."""
        return [run for run in self.runs.values() if run.state in states]

    def error(self) -> LakewrightSparkError | None:
        """Return the error of the command. A stop has priority over failed runs."""
        undone = len(self.filter_runs(RunState.CANCELLED))
        if self.why_stopped:
            kind = DeadlineError if "deadline" in self.why_stopped else StoppedError
            return kind(f"{self.why_stopped}: {undone} runs were cancelled or not begun; the next run continues")
        if self.lost:
            return LeaseLostError(f"{'; '.join(self.lost.values())}: {undone} runs were cancelled or not begun")
        failed, unread_warehouses = self.filter_runs(RunState.FAILED, RunState.CANCELLED), self.unavailable.failed
        if failed or self.problems or unread_warehouses:
            problems = [str(error) for error in unread_warehouses.values()]
            problems += [f"{run}: {run.reason}" for run in failed]
            problems += [f"{table}: {reason}" for table, reason in self.problems.items()]
            more = f"; and {len(problems) - 3} more, see `lakewright-spark runs list`" if len(problems) > 3 else ""
            runs = [f"{len(failed)} of {len(self.runs)} runs failed"] if failed else []
            unread = [f"{_count(len(self.problems))} could not be planned"] if self.problems else []
            down = [f"{len(unread_warehouses)} warehouses could not be maintained"] if unread_warehouses else []
            return MaintenanceFailedError(f"{', '.join(down + runs + unread)}: {'; '.join(problems[:3])}{more}")
        if self.leased_elsewhere:
            return LeaseHeldError("; ".join(self.leased_elsewhere.values()))
        return JobFailedError("; ".join(self.warnings)) if self.warnings else None

    def to_json(self) -> dict[str, Any]:
        """Return the outcome for JSON."""
        return {
            "runner": self.runner,
            "dry_run": self.dry_run,
            "tables": self.tables,
            "states": self.counts(),
            "runs": [run_to_json(run) for run in self.runs.values() if not is_own(run.table) or run.state in _UNDONE],
            "own": {"states": self.counts(own_tables=True)},
            "held": self.leased_elsewhere,
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


def run_to_json(run: RunRecord) -> dict[str, Any]:
    """Return a run for JSON, without what only the next plan reads."""
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
        "queued_at": format_json_time(run.queued_at),
        "started_at": run.started_at and format_json_time(run.started_at),
        "finished_at": run.finished_at and format_json_time(run.finished_at),
        "seconds": run.seconds,
        "metrics": {name: value for name, value in run.metrics.items() if name != BASIS},
    }
