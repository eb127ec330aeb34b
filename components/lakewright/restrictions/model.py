"""Archived warehouses and enforced limits of a stack, as JSON and as sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from lakewright.ownership.archive_mark import compute_purge_time
from lakewright.ownership.limit_mark import LimitMark
from lakewright.terminal.json_document import make_head
from lakewright.terminal.text_lines import plural
from lakewright.validation.moment import format_moment

_MOST_GRANTS = 5
"""Suspended grants that a sentence names."""


@dataclass(frozen=True)
class ArchivedWarehouse:
    """An archived warehouse, and the time of its purge."""

    warehouse: str
    warehouse_id: str
    archived_at: datetime
    due_at: datetime | None = None
    """End of `purge_after`; None if the warehouse is never purged."""
    announced_at: datetime | None = None
    """Time of the announcement of the purge; None if the purge is not announced."""
    is_reactivated: bool = False
    """Whether the spec declares the warehouse with `adopt`, so that the next `up` reactivates it. Until then, the purge
    is made when it is due."""
    has_begun: bool = False
    """Whether the purge has begun, so that data is lost."""
    problem: str | None = None
    """Why the record of the archive permits no purge; None if it does."""

    def compute_earliest_purge(self, now: datetime) -> datetime | None:
        """Return the earliest time of the purge; None if there is none. An announcement cannot be earlier than now."""
        if self.due_at is None or self.problem:
            return None
        return compute_purge_time(self.due_at, self.announced_at or now)

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "warehouse": self.warehouse,
            "warehouse_id": self.warehouse_id,
            "archived_at": format_moment(self.archived_at),
            "purge_at": _format_time(self.compute_earliest_purge(now)),
            "announced_at": _format_time(self.announced_at),
            "is_reactivated": self.is_reactivated,
            "has_begun": self.has_begun,
            "problem": self.problem,
        }

    def describe(self, now: datetime) -> str:
        """Return it as a sentence without a full stop."""
        title = f"warehouse `{self.warehouse}` is archived since {format_moment(self.archived_at)}"
        purge_at = self.compute_earliest_purge(now)
        if self.has_begun:
            stop = f", and does not continue: {self.problem}" if self.problem else ""
            return f"{title}; the deletion of its data has begun{stop}"
        if self.problem:
            return f"{title} and is not purged: {self.problem}"
        if purge_at is None:
            return f"{title}; the next `up` reactivates it" if self.is_reactivated else f"{title} and is never purged"
        announcement = "announced" if self.announced_at else "not announced yet"
        purge = f"its data is deleted from {format_moment(purge_at)} on"
        if self.is_reactivated:
            return f"{title}; {purge} ({announcement}) unless `up` runs before, which reactivates it"
        return f"{title}; {purge} ({announcement}). To keep it, declare the warehouse with `adopt: true`"


@dataclass
class StackRestrictions:
    """Archived warehouses and enforced limits of a stack."""

    stack: str
    tenant: str = ""
    environment: str = ""
    archives: list[ArchivedWarehouse] = field(default_factory=list[ArchivedWarehouse])
    limits: LimitMark | None = None
    """The record of the enforced limits; None if no limit is enforced."""
    problems: list[str] = field(default_factory=list[str])
    """Parts that could not be read, and the reasons."""

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return them as JSON."""
        limits = self.limits
        return {
            "stack": self.stack,
            "tenant": self.tenant,
            "environment": self.environment,
            "archives": [archive.to_json(now) for archive in self.archives],
            "limited_parts": list(limits.parts) if limits else [],
            "limits": [asdict(limit) for limit in limits.reached] if limits else [],
            "suspended_grants": [asdict(grant) for grant in limits.suspended] if limits else [],
            "problems": self.problems,
        }

    def describe(self, now: datetime) -> list[str]:
        """Return a sentence about each archive, and about each part whose limit is enforced."""
        return [*(archive.describe(now) for archive in self.archives), *_describe_limits(self.limits)]


def _describe_limits(mark: LimitMark | None) -> list[str]:
    if mark is None:
        return []
    sentences: list[str] = []
    for part in mark.parts:
        reached = [limit for limit in mark.reached if limit.part == part]
        amounts = " and ".join(f"{limit.limit} {limit.quantity} since {limit.since}" for limit in reached)
        sentences.append(f"a limit of {part} is enforced{f': {amounts}' if amounts else ''}")
    if mark.suspended:
        grants = [f"`{grant.privilege}` of {grant.principal} on {grant.on}" for grant in mark.suspended]
        more = f" and {len(grants) - _MOST_GRANTS} more" if len(grants) > _MOST_GRANTS else ""
        count = plural(len(grants), "grant")
        sentences.append(f"limits suspend {count}: {', '.join(grants[:_MOST_GRANTS])}{more}")
    return sentences


def list_lines(restrictions: Sequence[StackRestrictions], now: datetime) -> list[str]:
    """Return the lines that `lakewright fleet status` prints; none if no stack could be read."""
    lines = [f"{entry.stack}: {text}" for entry in restrictions for text in entry.describe(now)]
    unread = sum(bool(entry.problems) for entry in restrictions)
    if lines or (restrictions and unread == len(restrictions)):
        return lines
    scope = f" in the {plural(len(restrictions) - unread, 'stack')} that could be read" if unread else ""
    return [f"No warehouse is archived, and no limit is enforced{scope}."]


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else format_moment(moment)


def compute_exit_code(restrictions: Iterable[StackRestrictions]) -> int:
    """Return 1 if anything could not be read, else 0."""
    return 1 if any(entry.problems for entry in restrictions) else 0


def to_json(restrictions: Sequence[StackRestrictions], now: datetime) -> dict[str, Any]:
    """Return the document that `lakewright fleet status --json` prints."""
    stacks = [entry.to_json(now) for entry in restrictions]
    return {**make_head("status"), "exit": compute_exit_code(restrictions), "stacks": stacks}
