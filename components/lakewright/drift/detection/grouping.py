"""Group differences of many tenants that have one cause: the same property of the same kind, by the same actor."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lakewright_spark.times import format_json_time_as_text

from lakewright.drift.model import Difference, DifferenceKind

_VERBS = {
    DifferenceKind.CHANGED: "changed",
    DifferenceKind.GONE: "deleted",
    DifferenceKind.UNMANAGED: "made outside of all stacks",
    DifferenceKind.UNREACHABLE: "unreachable",
    DifferenceKind.CHECK: "check failed",
}


@dataclass(frozen=True)
class DriftGroup:
    """Differences of at least two tenants with one cause."""

    kind: DifferenceKind
    type: str
    property: str
    actor: str | None
    """Name of the actor; None if it is not known. Then all differences have the same found value."""
    is_allowed_only: bool
    """Whether a record of the group says only that the change was allowed for the actor."""
    found_value: Any
    """Found value, if it is the same everywhere; else None."""
    first: str | None
    """Time of the first change, RFC 3339, UTC."""
    last: str | None
    tenants: tuple[str, ...]
    stacks: tuple[str, ...]
    count: int
    """Number of differences."""

    def describe(self) -> str:
        """Return one line: `Warehouse.delete_profile changed by alice between ... and ... on 43 tenants`."""
        kind = self.type.rpartition(":")[2]
        subject = f"{kind}.{self.property}" if self.property else kind
        parts = [subject, _VERBS[self.kind]]
        if self.actor:
            parts.append(f"allowed for {self.actor}" if self.is_allowed_only else f"by {self.actor}")
        if self.first and self.last:
            parts.append(_format_span(self.first, self.last))
        if self.found_value is not None and self.kind is DifferenceKind.CHANGED:
            parts.append(f"to {_shorten(self.found_value)}")
        return " ".join([*parts, f"on {len(self.tenants)} tenants"])

    def to_json(self) -> dict[str, Any]:
        """Return the group as JSON."""
        return {
            "kind": self.kind.value,
            "type": self.type,
            "property": self.property,
            "actor": self.actor,
            "is_allowed_only": self.is_allowed_only,
            "found": self.found_value,
            "from": self.first,
            "until": self.last,
            "tenants": list(self.tenants),
            "stacks": list(self.stacks),
            "count": self.count,
            "text": self.describe(),
        }


def group_by_cause(differences: Iterable[Difference]) -> list[DriftGroup]:
    """Return the groups of two or more tenants, the largest first. Ignored differences are left out."""
    by_cause: dict[tuple[str, ...], list[Difference]] = {}
    for difference in differences:
        if difference.ignored is None:
            by_cause.setdefault(_get_cause(difference), []).append(difference)
    groups = [_create_group(members) for members in by_cause.values() if len({member.tenant for member in members}) > 1]
    return sorted(
        groups,
        key=lambda drift_group: (
            -len(drift_group.tenants),
            drift_group.type,
            drift_group.property,
            drift_group.actor or "",
        ),
    )


def _get_cause(difference: Difference) -> tuple[str, ...]:
    # Without an actor, only the same value suggests one cause.
    by = f"actor {difference.actor.name}" if difference.actor else f"found {_to_canonical_json(difference.found)}"
    if difference.kind is not DifferenceKind.CHANGED and difference.actor is None:
        by = ""
    return difference.kind.value, difference.type, difference.property, by


def _create_group(members: list[Difference]) -> DriftGroup:
    example = members[0]
    times = sorted(member.actor.at for member in members if member.actor and member.actor.at)
    same = len({_to_canonical_json(member.found) for member in members}) == 1
    return DriftGroup(
        kind=example.kind,
        type=example.type,
        property=example.property,
        actor=example.actor.name if example.actor else None,
        is_allowed_only=any(member.actor.is_allowed_only for member in members if member.actor),
        found_value=example.found if same else None,
        first=times[0] if times else None,
        last=times[-1] if times else None,
        tenants=tuple(sorted({member.tenant for member in members})),
        stacks=tuple(sorted({member.stack for member in members})),
        count=len(members),
    )


def _format_span(first: str, last: str) -> str:
    """Return `between TIME and TIME`, or `at TIME` within one second."""
    start, end = format_json_time_as_text(first), format_json_time_as_text(last)
    return f"at {start}" if start == end else f"between {start} and {end}"


def _shorten(value: Any) -> str:
    text = value if isinstance(value, str) else _to_canonical_json(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _to_canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
