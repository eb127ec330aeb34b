"""RunRecord: one run of a job on a table, and its states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import uuid4

from lakewright_spark.errors import LakewrightSparkError
from lakewright_spark.policies.model import JobName
from lakewright_spark.table_identifier import TableIdentifier

PLAN = "plan"
"""Stands for a job where a table could not be planned."""


RESTORE = "restore"
"""Stands for a job where a user restored a backup."""
PREDICTED, GB_HOURS = "predicted", "gb_hours"
"""Keys in the metrics of a run: its predicted effect and cost, and its actual cost."""
FIRST = "first"
"""Key in the metrics of a run of a job that never ran on the table. It is recorded before it begins, so that the time
that the table waits is known."""
BASIS = "basis"
"""Key in the metrics of a run: what the run depended on beside the rows of the table."""
KILLED, TIMED_OUT = "killed_runner", "timed_out"
"""Keys in the metrics of a run during which the runner or its JVM died, and of a run that passed its time limit."""
SUSPECT = "suspect"
"""Key in the metrics of a run on a table that may have killed a runner before. If its runner dies again, this table is
the cause, and not the tables beside it."""


class RunState(StrEnum):
    """OpenHouse's states, without SUBMITTED: the scheduler runs jobs itself."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"

    @property
    def has_ended(self) -> bool:
        """Return whether the state is final."""
        return self not in {RunState.QUEUED, RunState.RUNNING}


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """State of a run at one moment. Times are UTC."""

    id: str = field(default_factory=lambda: uuid4().hex)
    runner: str
    """Unique name of the runner: host, process, random digits."""
    table: TableIdentifier
    table_uuid: str
    job: JobName | Literal["plan", "restore"]
    state: RunState = RunState.QUEUED
    reason: str = ""
    """Reason why the run is due, or why it ended without success."""
    snapshot: int | None = None
    """Current snapshot of the table when the run was planned."""
    queued_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Metrics of the job."""
    error: LakewrightSparkError | None = field(default=None, compare=False, repr=False)
    """The error, for callers in this process. It is not recorded."""

    @property
    def seconds(self) -> float | None:
        """Duration; None unless the run has ended."""
        return (self.finished_at - self.started_at).total_seconds() if self.started_at and self.finished_at else None

    @property
    def killed_runner(self) -> bool:
        """Return whether the runner or its JVM died during the run."""
        return bool(self.metrics.get(KILLED))

    @property
    def is_suspect(self) -> bool:
        """Return whether the table may have killed a runner before."""
        return bool(self.metrics.get(SUSPECT))

    def cancel_before_start(self, why: str) -> RunRecord:
        """Return the run as cancelled before it began."""
        return replace(self, state=RunState.CANCELLED, reason=f"not begun: {why}")

    def __str__(self) -> str:
        """Return the text form."""
        return f"{self.job} of {self.table}"
