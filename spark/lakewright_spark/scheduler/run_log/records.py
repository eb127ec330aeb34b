"""One run of a job on a table, and the states that it goes through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import uuid4

from lakewright_spark.errors import LakewrightSparkError
from lakewright_spark.policies.model import Job
from lakewright_spark.table_identifier import TableIdentifier

PLAN = "plan"
"""In place of a job, where it could not be decided which jobs a table is due for."""


RESTORE = "restore"
"""In place of a job: a user brought back the rows of a backup."""


class RunState(StrEnum):
    """OpenHouse's states, without SUBMITTED: here nobody stands between who decides and who runs."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"

    @property
    def ended(self) -> bool:
        return self not in {RunState.QUEUED, RunState.RUNNING}


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A run as it stands at one moment. Times are UTC."""

    id: str = field(default_factory=lambda: uuid4().hex)
    runner: str
    """Who runs it: host, process, and a part that no other runner has."""
    table: TableIdentifier
    table_uuid: str
    job: Job | Literal["plan", "restore"]
    state: RunState = RunState.QUEUED
    reason: str = ""
    """While it waits or runs, why it was due; afterwards, why it did not succeed."""
    snapshot: int | None = None
    """The table's current one when it was decided."""
    queued_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The job's own numbers."""
    error: LakewrightSparkError | None = field(default=None, compare=False, repr=False)
    """What it ended with, for whoever asked for it in this process; records do not have it."""

    @property
    def seconds(self) -> float | None:
        """How long it ran; None unless it has ended."""
        return (self.finished_at - self.started_at).total_seconds() if self.started_at and self.finished_at else None

    def not_begun(self, why: str) -> RunRecord:
        """As it ends where nobody begins it any more."""
        return replace(self, state=RunState.CANCELLED, reason=f"not begun: {why}")

    def __str__(self) -> str:
        return f"{self.job} of {self.table}"
