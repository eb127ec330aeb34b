"""Choose the resources of a stack whose drift is reverted, from two previews of it. Pure functions.

The preview without a refresh has the changes of the spec that were never deployed. The preview with a refresh has the
reverts, too. An update changes a resource as a whole, so a resource is reverted only if no property has both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright_engine.model.paths import parse_path

from lakewright.drift.healing.previewed_steps import PreviewedStep, list_changes
from lakewright.drift.model import Difference, DifferenceKind, StackDrift

Steps = Mapping[str, PreviewedStep]
"""Steps of a preview by URN."""

_REVERTIBLE = frozenset({DifferenceKind.CHANGED, DifferenceKind.GONE})
_REVERTING = ("create", "adopt", "update")
"""Operations that bring an object back."""
_REASONS = {
    DifferenceKind.CHECK: "a failed check is about data, which `up` does not change",
    DifferenceKind.UNREACHABLE: "it could not be checked",
    DifferenceKind.UNMANAGED: "it is in no stack: declare it, or delete it",
}
_ACCEPTED = "the spec already declares the found value; `lakewright up --refresh` reads it into the state"
_UNDEPLOYED = "the spec has changes of this resource that were never deployed; review them, and run `lakewright up`"
_NOT_DECLARED = (
    "the spec no longer declares it; review `lakewright preview --refresh`, and run `lakewright up --refresh`"
)


@dataclass(frozen=True)
class StackHealing:
    """The actions on one stack."""

    stack: str
    reverted: tuple[Difference, ...]
    targets: tuple[str, ...]
    """URNs of the resources that the plan is limited to."""
    excluded: tuple[str, ...]
    """URNs of resources with an ignored difference."""
    unreverted: tuple[tuple[Difference, str], ...]
    """Differences that are not reverted, and why. Ignored differences are among them."""
    excluded_steps: tuple[PreviewedStep, ...] = ()
    """Changes that an update without limits would make, too."""


def find_revertible(stack: StackDrift) -> list[Difference]:
    """Return the differences that an update may revert: no ignored difference, and none of a resource with one."""
    excluded = _list_ignored_urns(stack)
    return [
        difference
        for difference in stack.differences
        if difference.kind in _REVERTIBLE and not difference.ignored and difference.urn not in excluded
    ]


def choose_targets(stack: StackDrift, undeployed: Steps, refreshed: Steps) -> StackHealing:
    """Return the resources of a stack to revert, and everything that remains as it is.

    Args:
        stack: The drift of the stack.
        undeployed: Steps of a preview without a refresh.
        refreshed: Steps of a preview with a refresh.
    """
    excluded = _list_ignored_urns(stack)
    # An update of a resource without drift follows from a drifted resource, such as the new id of a deleted role.
    targets = {
        urn: step for urn, step in refreshed.items() if urn not in excluded and _is_revert(step, undeployed.get(urn))
    }
    reverted: list[Difference] = []
    unreverted: list[tuple[Difference, str]] = []
    revertible = find_revertible(stack)
    for difference in stack.differences:
        if difference not in revertible:
            unreverted.append((difference, _explain_unreverted(difference, excluded)))
        elif reason := _reason_to_keep(difference, undeployed, refreshed, targets):
            unreverted.append((difference, reason))
        else:
            reverted.append(difference)
    # The state takes accepted values, which changes no object.
    accepted = [
        difference.urn
        for difference, reason in unreverted
        if reason == _ACCEPTED and not _has_change(refreshed.get(difference.urn))
    ]
    return StackHealing(
        stack.stack,
        tuple(reverted),
        tuple(dict.fromkeys([*targets, *accepted])) if reverted else (),
        excluded,
        tuple(unreverted),
        tuple(step for step in list_changes(refreshed.values()) if step.urn not in targets),
    )


def keep_all(stack: StackDrift, reason: str) -> StackHealing:
    """Return the actions on a stack in which nothing is reverted."""
    excluded = _list_ignored_urns(stack)
    revertible = find_revertible(stack)
    unreverted = tuple(
        (difference, reason if difference in revertible else _explain_unreverted(difference, excluded))
        for difference in stack.differences
    )
    return StackHealing(stack.stack, (), (), excluded, unreverted)


def find_remaining(healing: StackHealing, after: Iterable[Difference]) -> list[Difference]:
    """Return the differences that were to be reverted, and still exist."""
    remaining_keys = {(difference.urn, difference.property) for difference in after}
    return [difference for difference in healing.reverted if (difference.urn, difference.property) in remaining_keys]


def format_difference(difference: Difference) -> str:
    """Return a difference for messages: `Warehouse acme-executions protected: declared True, found False`."""
    kind = difference.type.rpartition(":")[2]
    subject = " ".join(part for part in (kind, difference.resource, difference.property) if part)
    if difference.kind is DifferenceKind.GONE:
        return f"{subject}: no longer exists"
    return f"{subject}: declared {difference.declared!r}, found {difference.found!r}"


def to_unreverted_json(unreverted: Iterable[tuple[Difference, str]]) -> list[dict[str, Any]]:
    """Return differences that are not reverted, as JSON."""
    return [{**difference.to_json(), "reason": reason} for difference, reason in unreverted]


def _list_ignored_urns(stack: StackDrift) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(difference.urn for difference in stack.differences if difference.ignored and difference.urn)
    )


def _explain_unreverted(difference: Difference, excluded: Iterable[str]) -> str:
    """Return why no update may revert a difference."""
    if difference.ignored:
        return f"ignored until {difference.ignored.until}: {difference.ignored.reason}"
    if difference.urn and difference.urn in excluded and difference.kind in _REVERTIBLE:
        return "its resource also has an ignored difference"
    return _REASONS[difference.kind]


def _is_revert(step: PreviewedStep, undeployed: PreviewedStep | None) -> bool:
    """Return whether a step of a refreshed preview brings an object back to what was deployed, and no more."""
    if not step.is_change or undeployed is None:
        return False
    if step.op not in _REVERTING:
        return False
    if not undeployed.is_change:
        return True
    return (
        (step.op, undeployed.op) == ("update", "update")
        and bool(step.keys and undeployed.keys)
        and not step.keys & undeployed.keys
    )


def _reason_to_keep(difference: Difference, undeployed: Steps, refreshed: Steps, targets: Steps) -> str:
    """Return why a difference is not reverted; empty if it is."""
    urn = difference.urn
    before, step = undeployed.get(urn), refreshed.get(urn)
    if urn in targets:
        return _ACCEPTED if _is_accepted(difference, before, targets[urn]) else ""
    if before is None or before.op in ("delete", "retain"):
        return _NOT_DECLARED
    if not _has_change(step):
        return _ACCEPTED
    if step is not None and step.op not in _REVERTING:
        return f"`up --refresh` would {step.op} it; review `lakewright preview --refresh`"
    return _UNDEPLOYED


def _is_accepted(difference: Difference, before: PreviewedStep | None, step: PreviewedStep) -> bool:
    """Return whether the spec declares the found value of a property, while other properties are updated."""
    if difference.kind is DifferenceKind.GONE or not difference.property or before is None or not before.is_change:
        return False
    key = str(parse_path(difference.property)[0])
    return key in before.keys and key not in step.keys


def _has_change(step: PreviewedStep | None) -> bool:
    return step is not None and step.is_change
