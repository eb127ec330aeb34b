"""Split drift into differences that `up --refresh` reverts and those that it must leave alone. Pure functions.

`up --refresh` reverts every difference of the resources that it updates. A resource with an ignored difference is
therefore excluded as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lakewright.drift.model import Difference, DifferenceKind, DriftReport, StackDrift

_HEALED = frozenset({DifferenceKind.CHANGED, DifferenceKind.GONE})
_REASONS = {
    DifferenceKind.CHECK: "a failed check is about data, which `up` does not change",
    DifferenceKind.UNREACHABLE: "it could not be checked",
    DifferenceKind.UNMANAGED: "it is in no stack: declare it, or delete it",
}


@dataclass(frozen=True)
class StackHealing:
    """The actions on one stack."""

    stack: str
    tenant: str
    reverted: tuple[Difference, ...]
    excluded: tuple[str, ...]
    """URNs of resources with an ignored difference."""
    kept: tuple[tuple[Difference, str], ...]
    """Differences that stay, and why. Ignored ones are among them."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `up` that exclude resources."""
        return tuple(word for urn in self.excluded for word in ("--exclude", urn))


def healing_of(stack: StackDrift) -> StackHealing:
    """Return what `up --refresh` reverts in a stack."""
    excluded = tuple(dict.fromkeys(found.urn for found in stack.differences if found.ignored and found.urn))
    reverted: list[Difference] = []
    kept: list[tuple[Difference, str]] = []
    for found in stack.differences:
        if found.ignored:
            kept.append((found, f"ignored until {found.ignored.until}: {found.ignored.reason}"))
        elif found.kind not in _HEALED:
            kept.append((found, _REASONS[found.kind]))
        elif found.urn in excluded:
            kept.append((found, "its resource also has an ignored difference"))
        else:
            reverted.append(found)
    return StackHealing(stack.stack, stack.tenant, tuple(reverted), excluded, tuple(kept))


def healings_of(report: DriftReport) -> list[StackHealing]:
    """Return the stacks in which there is something to revert."""
    return [healing for healing in map(healing_of, report.stacks) if healing.reverted]


def remaining(healing: StackHealing, after: Iterable[Difference]) -> list[Difference]:
    """Return the differences that were to be reverted, and are still there."""
    there = {(found.urn, found.property) for found in after}
    return [found for found in healing.reverted if (found.urn, found.property) in there]


def named(difference: Difference) -> str:
    """Return a difference for messages: `Warehouse acme-executions protected: true -> false`."""
    kind = difference.type.rpartition(":")[2]
    subject = " ".join(part for part in (kind, difference.resource, difference.property) if part)
    if difference.kind is DifferenceKind.GONE:
        return f"{subject}: is gone"
    return f"{subject}: declared {difference.declared!r}, found {difference.found!r}"


def kept_to_json(kept: Iterable[tuple[Difference, str]]) -> list[dict[str, Any]]:
    """Return differences that stay, as JSON."""
    return [{**difference.to_json(), "reason": reason} for difference, reason in kept]
