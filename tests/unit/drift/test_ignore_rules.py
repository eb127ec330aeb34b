"""Rules of `drift.ignore`: what they match, how long they hold, and what is reported about them."""

from __future__ import annotations

from datetime import date

import pytest
from lakewright.drift.detection.ignore_rules import PlacedRule, apply_rules, matches, read_rules
from lakewright.drift.model import Difference, DifferenceKind, DriftReport, StackDrift
from lakewright.spec.drift_rules import IgnoreRule

WAREHOUSE = "pulumi-python:dynamic/lakekeeper:Warehouse"
TODAY = date(2026, 11, 22)


def difference(name: str = "delete_profile", kind: DifferenceKind = DifferenceKind.CHANGED) -> Difference:
    urn = f"urn:pulumi:acme::lakewright::{WAREHOUSE}::acme-executions"
    return Difference("acme", "acme", urn, WAREHOUSE, "acme-executions", name, 7, 14, kind)


def rule(resource: str = "*", name: str = "*", until: date = TODAY) -> IgnoreRule:
    return IgnoreRule(resource=resource, property=name, until=until, reason="migration")


def report(*differences: Difference) -> DriftReport:
    return DriftReport([StackDrift("acme", "acme", differences=[*differences])])


@pytest.mark.parametrize(
    ("resource", "name", "path", "expected"),
    [
        ("acme-executions", "*", "delete_profile", True),
        ("Warehouse", "delete_profile", "delete_profile.type", True),
        ("Warehouse acme-*", "delete_*", "delete_profile", True),
        ("pulumi-python:dynamic/lakekeeper:*", "*", "", True),
        ("urn:pulumi:acme::*::acme-executions", "tags", "tags[0]", True),
        ("acme-[abc]*", "*", "delete_profile", False),
        ("Warehouse", "delete_profile", "", False),
        ("Warehouse", "delete", "delete_profile", False),
        ("Role", "*", "delete_profile", False),
    ],
)
def test_patterns(resource: str, name: str, path: str, *, expected: bool) -> None:
    assert matches(rule(resource, name), difference(path)) is expected


def test_ignored_difference_stays_with_reason_and_expiry() -> None:
    drift_report = report(difference(), difference("protected"))

    review = apply_rules(
        drift_report, {"acme": [PlacedRule(rule("Warehouse", "delete_profile"), "spec: drift.ignore.0")]}, TODAY
    )

    ignored = drift_report.stacks[0].differences[0].ignored
    assert ignored is not None
    assert (ignored.reason, ignored.until, ignored.place) == ("migration", "2026-11-22", "spec: drift.ignore.0")
    assert drift_report.stacks[0].differences[1].ignored is None
    assert (drift_report.exit_code, review.list_notes()) == (7, [])


def test_only_ignored_differences_exit_with_zero() -> None:
    drift_report = report(difference())

    apply_rules(drift_report, {"acme": [PlacedRule(rule(), "p")]}, TODAY)

    assert drift_report.exit_code == 0


def test_expired_and_unused_rules_are_reported() -> None:
    drift_report = report(difference())
    rules = [
        PlacedRule(rule(until=date(2026, 11, 21)), "a: drift.ignore.0"),
        PlacedRule(rule("Role"), "a: drift.ignore.1"),
    ]

    review = apply_rules(drift_report, {"acme": rules}, TODAY)

    assert drift_report.exit_code == 7
    assert review.list_notes() == [
        "a: drift.ignore.0 (*, *, until 2026-11-21) is expired; remove or renew it. It no longer ignores 1 difference",
        "a: drift.ignore.1 (Role, *, until 2026-11-22) matches nothing in this run",
    ]


def test_what_could_not_be_checked_is_never_ignored() -> None:
    drift_report = report(difference("", DifferenceKind.UNREACHABLE))

    apply_rules(drift_report, {"acme": [PlacedRule(rule(), "p")]}, TODAY)

    assert drift_report.stacks[0].differences[0].ignored is None


def test_mistakes_of_rules_name_file_and_path() -> None:
    rules, problems = read_rules(
        {"ignore": [{"resource": "*", "until": "soon", "reason": "x"}, {"resource": "*"}]}, "e.yaml"
    )

    assert rules == []
    assert problems == [
        "e.yaml: drift.ignore.0.until: expected a date such as `2027-01-31` (found 'soon')",
        "e.yaml: drift.ignore.1.until: required, but missing",
        "e.yaml: drift.ignore.1.reason: required, but missing",
    ]
