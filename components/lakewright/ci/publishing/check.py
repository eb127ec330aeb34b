"""A check of the fleet: its report, or the reason why it gave no report."""

from __future__ import annotations

from dataclasses import dataclass

from lakewright.ci.documents import FleetDrift


@dataclass(frozen=True)
class DriftCheck:
    """The result of one check."""

    report: FleetDrift | None
    ended: float
    """Seconds since 1970, UTC."""
    seconds: float = 0.0
    """Duration. The report's own duration is preferred."""
    failure: str = ""
    """Why the check gave no report, on one line; empty with a report."""

    @property
    def duration(self) -> float:
        """Duration in seconds."""
        measured = self.report.seconds if self.report else None
        return self.seconds if measured is None else measured

    @property
    def is_complete(self) -> bool:
        """Whether everything could be checked."""
        return self.report is not None and not self.report.unchecked and not self.report.problems
