"""Texts of drift: causes, who and when, what is ignored, and what could not be checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.ci.documents import read_drift
from lakewright.ci.drift_summary import SummaryFormat, format_headline, needs_attention, render_summary

WAREHOUSE = "pulumi-python:dynamic/lakekeeper:Warehouse"
ALICE = {"name": "alice@example.com", "at": "2026-11-22T10:02:00Z", "source": "audit log"}


def difference(resource: str = "executions", **more: Any) -> dict[str, Any]:
    common = {"type": WAREHOUSE, "resource": resource, "property": "delete_profile", "kind": "changed"}
    return {**common, "declared": {"type": "soft"}, "found": {"type": "hard"}, "actor": ALICE, "ignored": None, **more}


def drift_document(name: str, *differences: dict[str, Any], problems: list[str] | None = None) -> dict[str, Any]:
    whole = {"stack": name, "tenant": name, "environment": "production", "resources": 9}
    return {**whole, "differences": [*differences], "problems": problems or []}


def render(form: str, *stacks: dict[str, Any], limit: int | None = None, **more: Any) -> str:
    drift = read_drift(json.dumps({"version": 1, "stacks": stacks, **more}))
    return render_summary(drift, SummaryFormat(form), limit)


def test_summary_names_property_actor_and_time() -> None:
    text = render("text", drift_document("acme", difference()), drift_document("calm"))

    assert text.splitlines()[0] == "Drift in 1 of 2 tenants (1 difference)"
    assert (
        "  - Warehouse executions delete_profile: declared {"
        + '"type": "soft"}, found {"type": "hard"}, by alice@example.com at 2026-11-22 10:02:00 UTC'
    ) in text


def test_one_cause_on_many_tenants_is_one_line() -> None:
    text = render("text", *(drift_document(f"t{number}", difference()) for number in range(12)))

    assert text.count("Causes on several tenants") == 1
    assert "Warehouse.delete_profile changed by alice@example.com: 12 tenants (t0, t1, t10" in text


def test_groups_of_the_report_are_preferred() -> None:
    group = {"kind": "changed", "type": WAREHOUSE, "property": "x", "stacks": ["a", "b"], "count": 2, "text": "a cause"}

    text = render("text", drift_document("a", difference()), drift_document("b", difference()), groups=[group])

    assert "a cause: 2 tenants (a, b)" in text
    assert "Warehouse.delete_profile changed by" not in text


def test_ignored_differences_are_listed_with_their_reason() -> None:
    rule = {"reason": "a trial of the storage team", "until": "2026-12-31", "place": "tenants/Pulumi.a.yaml"}

    text = render("text", drift_document("a", difference(ignored=rule)))

    assert text.startswith("No drift in 1 tenant, 1 ignored")
    assert "a: Warehouse executions delete_profile until 2026-12-31: a trial of the storage team, by alice" in text


def test_unchecked_tenants_come_before_differences() -> None:
    text = render(
        "text", drift_document("a", difference()), drift_document("b", problems=["the state is locked by bob"])
    )

    assert "1 tenant not fully checked" in text.splitlines()[0]
    assert text.index("b: the state is locked by bob") < text.index("a in production: 1 changed")


def test_problem_of_many_tenants_is_one_line() -> None:
    down = [drift_document(f"t{number:02}", problems=["the server does not respond"]) for number in range(12)]

    text = render("text", *down)

    assert text.count("the server does not respond") == 1
    assert "t00, t01, t02, t03, t04, t05, t06, t07, t08, t09 and 2 more: the server does not respond" in text


def test_expired_rules_are_noted() -> None:
    assert "Notes:\n\n  - a rule expired" in render("text", drift_document("a"), notes=["a rule expired"])


def test_running_update_is_named() -> None:
    locked = drift_document("a", difference()) | {"locked": ["bob on build-7 since 10:02 UTC"]}

    assert "a in production: 1 changed, while an update runs: bob on build-7" in render("text", locked)


def test_what_was_not_reached_is_not_drift() -> None:
    text = render("text", drift_document("a", difference(kind="unreachable", property="")), drift_document("b"))

    assert text.startswith("No drift in 2 tenants, 1 tenant not fully checked")
    assert "a: 1 resource not reached" in text
    assert "Causes" not in text


@pytest.mark.parametrize(
    ("document", "problem"), [({"error": "no Pulumi.yaml"}, "no Pulumi.yaml"), ({}, "no tenant was checked")]
)
def test_nothing_checked_is_not_no_drift(document: dict[str, str], problem: str) -> None:
    drift = read_drift(json.dumps({"version": 1, "stacks": [], **document}))

    assert needs_attention(drift)
    assert problem in render_summary(drift, SummaryFormat.TEXT)


@pytest.mark.parametrize(("kind", "expected"), [("gone", ": gone"), ("unmanaged", ': unmanaged "mine"')])
def test_kinds_without_declared_value(kind: str, expected: str) -> None:
    value = None if kind == "gone" else '"mine"'

    text = render("text", drift_document("a", difference(kind=kind, property="", found=value, actor=None)))

    assert f"Warehouse executions{expected}" in text
    assert "declared" not in text


def test_markdown_has_no_markup_of_its_input() -> None:
    nasty = "</code><script>@team `x` [a](b) | $y$"

    text = render("markdown", drift_document(nasty, difference(nasty, found=nasty, actor={"name": nasty})))

    for mark in ("<script", "@team", "`", "](", "$y", " | "):
        assert mark not in text
    assert text.startswith("### Drift in 1 of 1 tenant")


def test_slack_text_notifies_no_channel() -> None:
    text = render("slack", drift_document("<!channel>", difference("a`b & <@U1>")))

    assert "<!channel>" not in text
    assert "<@U1>" not in text
    assert "`&lt;!channel&gt;`" in text
    assert text.startswith("*Drift in 1 of 1 tenant (1 difference)*")


@pytest.mark.parametrize("form", ["markdown", "slack", "text"])
def test_long_summary_is_cut_at_a_line(form: str) -> None:
    stacks = [
        drift_document(f"tenant-{number}", *(difference(f"w{warehouse_number}") for warehouse_number in range(40)))
        for number in range(200)
    ]

    text = render(form, *stacks, limit=20_000)

    assert len(text.encode()) <= 20_000
    assert text.rstrip().endswith("left out, as the text has at most 20,000 characters.")
    assert text.count("<code>") == text.count("</code>")


def test_nothing_to_report_needs_no_attention() -> None:
    calm = read_drift(json.dumps({"version": 1, "stacks": [drift_document("a")]}))
    unchecked = read_drift(json.dumps({"version": 1, "stacks": [drift_document("a", problems=["locked"])]}))

    assert format_headline(calm) == "No drift in 1 tenant"
    assert not needs_attention(calm)
    assert needs_attention(unchecked)


@pytest.mark.parametrize("form", ["markdown", "slack"])
def test_a_long_problem_leaves_place_for_differences(form: str) -> None:
    text = render(form, drift_document("broken", problems=["x" * 80_000]), drift_document("acme", difference()))

    assert "x" * 500 in text
    assert "Warehouse executions" in text
