"""Kubernetes Events of a check. Pure functions.

Each stack has at most one Event of each reason, however many differences there are. The name of an Event depends on its
content, so that a repeated finding extends the series of the existing Event. If many stacks have an equal reason, as
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
from lakewright.terminal.text_lines import plural
from lakewright.validation.documents import as_mapping

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
        """Name of the Event, which depends on its content only."""
        digest = hashlib.sha256("\0".join((self.tenant, self.reason, self.note)).encode()).hexdigest()
        return f"lakewright-drift.{digest[:16]}"


def list_occurrences(check: DriftCheck, drifted_before: Iterable[str]) -> list[Occurrence]:
    """Return the occurrences of a check that are reported.

    Args:
        check: The check.
        drifted_before: Stacks with drift at the check before.
    """
    if check.report is None:
        return [Occurrence("", FAILED, _fit_note(f"The fleet could not be checked: {check.failure}"))]
    before, occurrences = {*drifted_before}, list[Occurrence]()
    for stack in sorted(check.stacks, key=lambda report: report.stack):
        tenant = stack.tenant or stack.stack
        if stack.unchecked:
            occurrences.append(Occurrence(tenant, FAILED, _describe_problems(stack)))
        if stack.active_differences:
            occurrences.append(Occurrence(tenant, FOUND, _describe_drift(stack)))
        elif stack.stack in before and not stack.unchecked:
            occurrences.append(Occurrence(tenant, GONE, _fit_note(f"Stack {stack.stack} no longer has drift.")))
    whole = [Occurrence("", FAILED, _fit_note(problem)) for problem in check.report.problems[:MOST_EVENTS]]
    return [*whole, *_limit(occurrences)]


def list_drifted(check: DriftCheck, drifted_before: Iterable[str]) -> list[str]:
    """Return the stacks with drift, for the next check.

    Unchecked stacks keep their previous result. All stacks do if the check failed as a whole.
    """
    before = {*drifted_before}
    if not check.stacks:
        return sorted(before)
    return sorted(
        stack.stack for stack in check.stacks if stack.active_differences or (stack.unchecked and stack.stack in before)
    )


def make_event(
    occurrence: Occurrence, regarding: dict[str, str], instance: str, namespace: str, time: float
) -> dict[str, Any]:
    """Return a new Event of events.k8s.io/v1.

    Args:
        occurrence: The occurrence to report.
        regarding: Reference to the object that it is about.
        instance: Name of the reporting pod.
        namespace: Namespace of the Event.
        time: Seconds since 1970, UTC.
    """
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": occurrence.event_name, "namespace": namespace},
        "eventTime": format_micro_time(time),
        "reportingController": CONTROLLER,
        "reportingInstance": instance[:128] or "lakewright",
        "action": "CheckDrift",
        "reason": occurrence.reason,
        "type": occurrence.type,
        "note": occurrence.note,
        "regarding": regarding,
    }


def extend_series(event: dict[str, Any], time: float) -> dict[str, Any]:
    """Return the change of an Event whose occurrence happened again. Nothing else of an Event may change."""
    count = int(as_mapping(event.get("series")).get("count") or 1) + 1
    return {"series": {"count": count, "lastObservedTime": format_micro_time(time)}}


def format_micro_time(time: float) -> str:
    """Return a time in the API's form MicroTime.

    It never has 0 microseconds: version 37 of the cluster's client writes such a time without them, and the API refuses
    it.
    """
    moment = datetime.fromtimestamp(time, UTC)
    return moment.replace(microsecond=max(1, moment.microsecond)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _limit(occurrences: list[Occurrence]) -> list[Occurrence]:
    counts = Counter(occurrence.reason for occurrence in occurrences)
    limited = [occurrence for occurrence in occurrences if counts[occurrence.reason] <= MOST_EVENTS]
    for reason in (FAILED, FOUND, GONE):
        if counts[reason] > MOST_EVENTS:
            tenants = [occurrence.tenant for occurrence in occurrences if occurrence.reason == reason]
            limited.insert(
                0, Occurrence("", reason, _fit_note(f"{plural(len(tenants), 'tenant')}: {', '.join(tenants)}"))
            )
    return limited


def _describe_drift(stack: StackDriftReport) -> str:
    kinds = Counter(difference.kind for difference in stack.active_differences)
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    differences = [
        " ".join(
            part
            for part in (
                difference.type.rpartition(":")[2],
                difference.resource,
                difference.property,
                f"({difference.kind})",
            )
            if part
        )
        for difference in stack.active_differences
    ]
    return _fit_note(f"Stack {stack.stack} has drift ({counted}): {'; '.join(differences)}")


def _describe_problems(stack: StackDriftReport) -> str:
    return _fit_note(f"Stack {stack.stack} could not be checked completely: {'; '.join(stack.unchecked)}")


def _fit_note(text: str) -> str:
    line = " ".join(text.split())
    if len(line.encode()) <= LONGEST_NOTE:
        return line
    return line.encode()[: LONGEST_NOTE - 3].decode(errors="ignore") + "…"
