"""Kubernetes Events of a check. Pure functions.

Each stack has at most one Event of each reason, however many differences there are. The name of an Event depends on its
content, so that the same finding extends the series of the Event that is there. If many stacks have the same reason, as
when a server is down, one Event about the CronJob counts them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakewright.ci.documents import StackDriftReport
from lakewright.ci.publishing.check import DriftCheck
from lakewright.fleet.text_table import plural
from lakewright.validation.documents import mapping_of

CONTROLLER = "lakewright/drift"
"""Reporting controller of the Events."""
FOUND, GONE, FAILED = "DriftFound", "DriftGone", "CheckFailed"
"""Reasons of Events."""
MOST_EVENTS = 50
"""Events of one reason in one check. More become one Event."""
LONGEST_NOTE = 1024
"""Bytes of a note that Kubernetes takes."""


@dataclass(frozen=True)
class Occurrence:
    """Something to report. An empty tenant means the whole fleet."""

    tenant: str
    reason: str
    note: str

    @property
    def type(self) -> str:
        """Type of the Event."""
        return "Normal" if self.reason == GONE else "Warning"

    @property
    def event_name(self) -> str:
        """Name of the Event, which is the same for the same content."""
        digest = hashlib.sha256("\0".join((self.tenant, self.reason, self.note)).encode()).hexdigest()
        return f"lakewright-drift.{digest[:16]}"


def occurrences_of(check: DriftCheck, drifted_before: Iterable[str]) -> list[Occurrence]:
    """Return what to report of a check.

    Args:
        check: The check.
        drifted_before: Stacks with drift at the check before.
    """
    if check.report is None:
        return [Occurrence("", FAILED, _note(f"The fleet could not be checked: {check.failure}"))]
    before, found = {*drifted_before}, list[Occurrence]()
    for stack in sorted(check.report.stacks, key=lambda each: each.stack):
        tenant = stack.tenant or stack.stack
        if stack.unchecked:
            found.append(Occurrence(tenant, FAILED, _problems(stack)))
        if stack.found:
            found.append(Occurrence(tenant, FOUND, _drift(stack)))
        elif stack.stack in before and not stack.unchecked:
            found.append(Occurrence(tenant, GONE, _note(f"Stack {stack.stack} has no drift any more.")))
    whole = [Occurrence("", FAILED, _note(problem)) for problem in check.report.problems[:MOST_EVENTS]]
    return [*whole, *_limited(found)]


def drifted_after(check: DriftCheck, drifted_before: Iterable[str]) -> list[str]:
    """Return the stacks with drift, for the next check. Those that could not be checked stay what they were."""
    before = {*drifted_before}
    if check.report is None:
        return sorted(before)
    return sorted(
        stack.stack for stack in check.report.stacks if stack.found or (stack.unchecked and stack.stack in before)
    )


def make_event(
    occurrence: Occurrence, regarding: dict[str, str], instance: str, namespace: str, time: float
) -> dict[str, Any]:
    """Return a new Event of events.k8s.io/v1.

    Args:
        occurrence: What to report.
        regarding: Reference to the object that it is about.
        instance: Name of the reporting pod.
        namespace: Namespace of the Event.
        time: Seconds since 1970, UTC.
    """
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": occurrence.event_name, "namespace": namespace},
        "eventTime": micro_time(time),
        "reportingController": CONTROLLER,
        "reportingInstance": instance[:128] or "lakewright",
        "action": "CheckDrift",
        "reason": occurrence.reason,
        "type": occurrence.type,
        "note": occurrence.note,
        "regarding": regarding,
    }


def extended_series(event: dict[str, Any], time: float) -> dict[str, Any]:
    """Return the change of an Event whose occurrence happened again. Nothing else of an Event may change."""
    count = int(mapping_of(event.get("series")).get("count") or 1) + 1
    return {"series": {"count": count, "lastObservedTime": micro_time(time)}}


def micro_time(time: float) -> str:
    """Return a time in the API's form MicroTime.

    It never has 0 microseconds: version 37 of the cluster's client writes such a time without them, and the API refuses
    it.
    """
    moment = datetime.fromtimestamp(time, UTC)
    return moment.replace(microsecond=max(1, moment.microsecond)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _limited(found: list[Occurrence]) -> list[Occurrence]:
    counts = Counter(each.reason for each in found)
    kept = [each for each in found if counts[each.reason] <= MOST_EVENTS]
    for reason in (FAILED, FOUND, GONE):
        if counts[reason] > MOST_EVENTS:
            tenants = [each.tenant for each in found if each.reason == reason]
            kept.insert(0, Occurrence("", reason, _note(f"{plural(len(tenants), 'tenant')}: {', '.join(tenants)}")))
    return kept


def _drift(stack: StackDriftReport) -> str:
    kinds = Counter(each.kind for each in stack.found)
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    listed = [
        " ".join(
            part for part in (each.type.rpartition(":")[2], each.resource, each.property, f"({each.kind})") if part
        )
        for each in stack.found
    ]
    return _note(f"Stack {stack.stack} has drift ({counted}): {'; '.join(listed)}")


def _problems(stack: StackDriftReport) -> str:
    return _note(f"Stack {stack.stack} could not be checked completely: {'; '.join(stack.unchecked)}")


def _note(text: str) -> str:
    line = " ".join(text.split())
    if len(line.encode()) <= LONGEST_NOTE:
        return line
    return line.encode()[: LONGEST_NOTE - 3].decode(errors="ignore") + "…"
