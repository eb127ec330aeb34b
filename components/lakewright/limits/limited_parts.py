"""The limited parts of a tenant, and which of them are full by measured usage. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakewright.ownership.limit_mark import COMPUTE_PART, ReachedLimit, format_limited_part
from lakewright.validation.documents import as_list, as_mapping, as_text
from lakewright.validation.moment import format_moment

RELEASE_SHARE = 0.95
"""Part of a limit below which its enforcement ends. Usage that only swings around the limit changes no grants."""
ENFORCED_QUANTITIES = frozenset({"bytes", "files", "tables", "compute"})


@dataclass(frozen=True)
class MeasuredLimit:
    """A limit of a part of a tenant, and its measured usage."""

    part: str
    """Name of the part, such as `warehouse executions`."""
    quantity: str
    limit: int
    used: int

    @property
    def is_reached(self) -> bool:
        """Whether usage has reached the limit."""
        return self.used >= self.limit

    @property
    def is_left(self) -> bool:
        """Whether usage is so far below the limit that its enforcement ends."""
        return self.used < RELEASE_SHARE * self.limit

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"part": self.part, "quantity": self.quantity, "limit": self.limit, "used": self.used}


def read_measured_limits(report: Mapping[str, Any]) -> list[MeasuredLimit]:
    """Return the limits that can be enforced, from the JSON of `lakewright-spark usage` on a tenant.

    A limit of compute of a warehouse cannot: the quota of the tenant's namespace cannot tell its units apart.
    """
    entries = map(as_mapping, as_list(report.get("limits")))
    return [
        MeasuredLimit(
            COMPUTE_PART
            if entry.get("quantity") == "compute"
            else format_limited_part(as_text(entry.get("warehouse")), as_text(entry.get("namespace"))),
            str(entry.get("quantity")),
            int(entry["limit"]),
            int(entry["used"]),
        )
        for entry in entries
        if entry.get("quantity") in ENFORCED_QUANTITIES
        and not (entry.get("quantity") == "compute" and entry.get("warehouse"))
    ]


def find_full_parts(
    limits: Iterable[MeasuredLimit], enforceable: Collection[str], full_before: Collection[str], *, is_complete: bool
) -> tuple[str, ...]:
    """Return the parts whose limits are to be enforced now, sorted.

    Args:
        limits: The measured limits.
        enforceable: Parts whose limits the stack enforces.
        full_before: Parts whose limits are enforced at present.
        is_complete: Whether all data was measured. An incomplete measurement begins enforcement, and ends none. Hours
            of computing units do not depend on it: they are in the measured limits only if all of them were read, or
            if they reach the limit.
    """
    by_part: dict[str, list[MeasuredLimit]] = {}
    for limit in limits:
        by_part.setdefault(limit.part, []).append(limit)
    full = {part for part, measured in by_part.items() if any(limit.is_reached for limit in measured)}
    for part in full_before:
        measured = by_part.get(part, [])
        is_known = is_complete or part == COMPUTE_PART
        is_left = is_known and bool(measured) and all(limit.is_left for limit in measured)
        if not is_left:
            full.add(part)
    return tuple(sorted(full & set(enforceable)))


def list_reached_limits(
    limits: Iterable[MeasuredLimit], full: Collection[str], before: Iterable[ReachedLimit], now: datetime
) -> tuple[ReachedLimit, ...]:
    """Return the limits that fill parts, sorted. A limit keeps the time at which it was first measured as reached.

    Args:
        limits: The measured limits.
        full: Parts whose limits are to be enforced now.
        before: Limits that the record has.
        now: Time of the measurement.
    """
    reached = {(entry.part, entry.quantity): entry for entry in before if entry.part in full}
    for limit in limits:
        key = (limit.part, limit.quantity)
        if limit.part in full and (limit.is_reached or key in reached):
            since = reached[key].since if key in reached else format_moment(now)
            reached[key] = ReachedLimit(limit.part, limit.quantity, limit.limit, since)
    return tuple(sorted(reached.values()))
