"""Records of executions, from the registry or from Texera's database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from lakewright_spark.result_uris import ResultUri


class ExecutionStatus(StrEnum):
    """Texera's execution states."""

    READY = "ready"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"

    @property
    def has_ended(self) -> bool:
        """Return whether the status is final."""
        return self in {ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.KILLED}


@dataclass(frozen=True)
class WrittenTable:
    """One table of an execution. Rows and bytes are None if unknown."""

    uri: ResultUri
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class ExecutionRecord:
    """One execution. Times are UTC."""

    workflow: int
    execution: int
    computing_unit: str | None
    warehouse: str | None
    """None in a deployment with a single warehouse."""
    submitter: str | None
    status: ExecutionStatus
    started_at: datetime
    updated_at: datetime
    """Last heartbeat."""
    finished_at: datetime | None = None
    replaced_at: datetime | None = None
    """When a later execution replaced it; its runtime statistics remain."""
    error: str | None = None
    tables: tuple[WrittenTable, ...] = ()

    def __str__(self) -> str:
        """Return the text form."""
        return f"execution {self.execution} of workflow {self.workflow}"


class Executions(Protocol):
    """A source of executions: the registry, or Texera's database."""

    def knows(self, workflow: int, execution: int) -> bool:
        """Return whether the execution is known."""
        ...

    def find_warehouse(self, workflow: int, execution: int) -> str | None:
        """Return the warehouse that an execution wrote to; None if it is not known."""
        ...

    def all(self) -> Iterator[ExecutionRecord]:
        """Return every execution, oldest first."""
        ...
