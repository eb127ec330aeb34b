"""Events of a check: one for each stack and reason, the same name for the same content, few when all fails."""

from __future__ import annotations

import json
from typing import Any

from lakewright.ci.documents import read_drift
from lakewright.ci.publishing.check import DriftCheck
from lakewright.ci.publishing.events import (
    LONGEST_NOTE,
    MOST_EVENTS,
    Occurrence,
    extend_series,
    list_drifted,
    list_occurrences,
    make_event,
)

CHANGED = {"type": "x:lakekeeper:Warehouse", "resource": "executions", "property": "name", "kind": "changed"}


def stack(name: str, *differences: dict[str, Any], problems: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"stack": name, "tenant": name, "differences": differences, "problems": problems}


def check(*stacks: dict[str, Any], **more: Any) -> DriftCheck:
    return DriftCheck(read_drift(json.dumps({"version": 1, "stacks": stacks, **more})), ended=0)


def reasons(occurrences: list[Occurrence]) -> list[tuple[str, str]]:
    return [(occurrence.tenant, occurrence.reason) for occurrence in occurrences]


def test_stack_has_one_event_of_each_reason() -> None:
    occurrences = list_occurrences(check(stack("acme", *[CHANGED] * 30, problems=("a", "b")), stack("calm")), [])

    assert reasons(occurrences) == [("acme", "CheckFailed"), ("acme", "DriftFound")]
    assert "could not be checked completely: a; b" in occurrences[0].note
    assert "drift (30 changed): Warehouse executions name (changed); " in occurrences[1].note


def test_drift_that_is_gone_is_reported_once() -> None:
    calm = check(stack("acme"))

    assert reasons(list_occurrences(calm, ["acme"])) == [("acme", "DriftGone")]
    assert list_occurrences(calm, list_drifted(calm, ["acme"])) == []


def test_unchecked_stack_is_not_called_gone() -> None:
    locked = check(stack("acme", problems=("locked",)))

    assert reasons(list_occurrences(locked, ["acme"])) == [("acme", "CheckFailed")]
    assert list_drifted(locked, ["acme"]) == ["acme"]


def test_what_was_not_reached_is_not_drift() -> None:
    down = check(stack("acme", CHANGED | {"kind": "unreachable", "property": ""}))

    (occurrence,) = list_occurrences(down, ["acme"])

    assert (occurrence.reason, list_drifted(down, ["acme"])) == ("CheckFailed", ["acme"])
    assert occurrence.note.endswith("1 resource not reached")


def test_ignored_drift_makes_no_event() -> None:
    ignored = check(stack("acme", CHANGED | {"ignored": {"reason": "a trial"}}))

    assert list_occurrences(ignored, []) == []
    assert list_drifted(ignored, []) == []


def test_many_stacks_with_one_reason_make_one_event() -> None:
    down = [stack(f"t{number:04}", problems=("the server does not respond",)) for number in range(MOST_EVENTS + 1)]

    occurrences = list_occurrences(check(*down, stack("other", CHANGED)), [])

    assert reasons(occurrences) == [("", "CheckFailed"), ("other", "DriftFound")]
    assert occurrences[0].note.startswith("51 tenants: t0000, t0001")


def test_failed_check_regards_the_whole_fleet() -> None:
    occurrences = list_occurrences(DriftCheck(None, 0, failure="killed"), ["acme"])

    assert reasons(occurrences) == [("", "CheckFailed")]
    assert list_drifted(DriftCheck(None, 0, failure="killed"), ["acme"]) == ["acme"]


def test_report_with_an_error_keeps_the_drifted_stacks() -> None:
    failed = check(error="no Pulumi.yaml found")

    assert [occurrence.note for occurrence in list_occurrences(failed, ["acme"])] == ["no Pulumi.yaml found"]
    assert list_drifted(failed, ["acme"]) == list_drifted(check(), ["acme"]) == ["acme"]


def test_same_content_has_the_same_name() -> None:
    first, second = (list_occurrences(check(stack("acme", CHANGED)), [])[0] for _ in range(2))
    (changed,) = list_occurrences(check(stack("acme", CHANGED | {"property": "protected"})), [])

    assert first.event_name == second.event_name
    assert first.event_name != changed.event_name


def test_notes_fit_in_whole_characters() -> None:
    (occurrence,) = list_occurrences(check(stack("acme", *[CHANGED | {"resource": "ä" * 300}] * 9)), [])

    assert len(occurrence.note.encode()) <= LONGEST_NOTE
    assert occurrence.note.endswith("…")


def test_repeated_event_extends_its_series() -> None:
    event = make_event(Occurrence("acme", "DriftFound", "note"), {"kind": "Namespace"}, "pod-1", "tenant-acme", 0.25)

    assert event["eventTime"] == "1970-01-01T00:00:00.250000Z"
    assert extend_series(event, 1)["series"] == {"count": 2, "lastObservedTime": "1970-01-01T00:00:01.000001Z"}
    assert extend_series(event | {"series": {"count": 7}}, 1)["series"]["count"] == 8
