"""Documents of parts of a fleet, of failed commands and of several days: which results a report shows, and how old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lakewright.report.assembly import build_report
from lakewright.report.sources import ReportSource, SourceKind

NOW = datetime(2026, 12, 31, 12, tzinfo=UTC)
TERABYTE = 10**12
IN_ORDER: Mapping[str, Any] = {"condition": "update succeeded", "has_state": True, "has_file": True}


def make_source(kind: SourceKind, at: str, *entries: Mapping[str, Any], **more: Any) -> ReportSource:
    document = {"version": 1, "command": kind.value, "at": at, "stacks": list(entries)}
    return ReportSource(kind, f"{kind}-{at}.json", document, **more)


def list_names(at: str, *names: str, **more: Any) -> ReportSource:
    return make_source(SourceKind.LIST, at, *({"stack": name, **IN_ORDER} for name in names), **more)


def measure(at: str, **live_by_name: int) -> ReportSource:
    return make_source(SourceKind.USAGE, at, *(make_usage(name, live) for name, live in live_by_name.items()))


def make_usage(name: str, live: int, problem: str = "") -> dict[str, Any]:
    total = {"bytes_live": live, "bytes_reclaimable": live // 10}
    return {"stack": name, "problem": problem, "deployed": True, "usage": {"total": total}}


def find_tenant(model: Mapping[str, Any], name: str) -> dict[str, Any]:
    (tenant,) = [tenant for tenant in model["tenants"] if tenant["stack"] == name]
    return tenant


def find_source(sources: Sequence[ReportSource], kind: SourceKind) -> dict[str, Any]:
    (source,) = [source for source in build_report(sources, now=NOW)["sources"] if source["kind"] == kind]
    return source


def list_points(sources: Sequence[ReportSource]) -> list[tuple[str, float]]:
    points = build_report(sources, now=NOW)["history"]["usage"]
    return [(point["at"], point["live"] / TERABYTE) for point in points]


DRIFT = make_source(SourceKind.DRIFT, "2026-12-01T00:00:00Z", {"stack": "acme", "differences": [], "problems": []})
FAILED_DRIFT = ReportSource(SourceKind.DRIFT, "lakewright drift --all --json", error="Lakekeeper does not respond")


def test_failed_command_is_not_hidden_by_an_older_file() -> None:
    drift = find_source([DRIFT, FAILED_DRIFT], SourceKind.DRIFT)

    assert (drift["level"], drift["error"]) == ("bad", "Lakekeeper does not respond")
    assert drift["origin"] == "lakewright drift --all --json"
    assert drift["at"] == "2026-12-01T00:00:00Z"
    assert drift["stacks"] == 1


def test_result_before_a_failed_command_has_its_age() -> None:
    tenant = find_tenant(build_report([DRIFT, FAILED_DRIFT], now=NOW), "acme")

    assert (tenant["drift"]["text"], tenant["drift"]["as_of"]) == ("none", "2026-12-01T00:00:00Z")


def test_failed_document_counts_until_a_day_later() -> None:
    failed = make_source(SourceKind.DRIFT, "2026-12-01T05:00:00Z", error="no credential")
    next_week = make_source(SourceKind.DRIFT, "2026-12-08T05:00:00Z", {"stack": "acme"})

    assert find_source([DRIFT, failed], SourceKind.DRIFT)["error"] == "no credential"
    assert find_source([DRIFT, failed, next_week], SourceKind.DRIFT)["level"] == "ok"


def test_causes_come_from_the_latest_successful_document() -> None:
    document = {**DRIFT.document, "groups": [{"text": "changed by eve", "stacks": ["acme"]}]}
    drift = ReportSource(SourceKind.DRIFT, "drift.json", document)
    failed = make_source(SourceKind.DRIFT, "2026-12-02T00:00:00Z", error="no credential")

    assert [cause["text"] for cause in build_report([drift, failed], now=NOW)["causes"]] == ["changed by eve"]


def test_history_joins_documents_of_parts_of_a_fleet() -> None:
    sources = [
        measure("2026-12-30T01:00:00Z", acme=10 * TERABYTE),
        measure("2026-12-30T02:00:00Z", globex=TERABYTE),
        measure("2026-12-31T01:00:00Z", acme=10 * TERABYTE),
        measure("2026-12-31T02:00:00Z", globex=2 * TERABYTE),
    ]

    assert list_points(sources) == [("2026-12-30T02:00:00Z", 11), ("2026-12-31T02:00:00Z", 12)]


def test_history_carries_a_value_over_a_failed_night() -> None:
    """A server that is down leaves no measurement, or only a part of it."""
    sources = [
        measure("2026-12-28T01:00:00Z", acme=10 * TERABYTE, globex=TERABYTE),
        make_source(SourceKind.USAGE, "2026-12-29T01:00:00Z", {"stack": "acme", "problem": "down", "usage": None}),
        make_source(SourceKind.USAGE, "2026-12-30T01:00:00Z", make_usage("acme", 0, "down")),
        measure("2026-12-31T01:00:00Z", acme=12 * TERABYTE, globex=TERABYTE),
    ]

    assert [live for _, live in list_points(sources)] == [11, 11, 11, 13]


def test_history_takes_partial_values_without_a_complete_one() -> None:
    partial = make_source(SourceKind.USAGE, "2026-12-30T01:00:00Z", make_usage("acme", TERABYTE, "1 table unread"))
    larger = make_source(SourceKind.USAGE, "2026-12-31T01:00:00Z", make_usage("acme", 2 * TERABYTE, "1 table unread"))

    assert [live for _, live in list_points([partial, larger])] == [1, 2]


def test_history_ends_with_an_undeployed_stack() -> None:
    undeployed = {"stack": "acme", "problem": "", "deployed": False, "usage": None}
    sources = [
        measure("2026-12-30T01:00:00Z", acme=10 * TERABYTE, globex=TERABYTE),
        make_source(SourceKind.USAGE, "2026-12-31T01:00:00Z", undeployed, make_usage("globex", TERABYTE)),
    ]

    assert [live for _, live in list_points(sources)] == [11, 1]


JANUARY, DECEMBER = "2026-01-01T00:00:00Z", "2026-12-31T00:00:00Z"
WITH_REMOVED_STACK = [
    list_names(JANUARY, "acme", "gone"),
    measure(JANUARY, acme=TERABYTE, gone=9 * TERABYTE),
    measure(DECEMBER, acme=TERABYTE),
]


def test_stack_that_a_collected_list_lacks_is_left_out() -> None:
    model = build_report([*WITH_REMOVED_STACK, list_names(DECEMBER, "acme", is_collected=True)], now=NOW)

    assert [tenant["stack"] for tenant in model["tenants"]] == ["acme"]
    assert [point["live"] / TERABYTE for point in model["history"]["usage"]] == [10, 1]
    assert {source["kind"]: source["stacks"] for source in model["sources"] if source["stacks"]} == {
        "list": 1,
        "usage": 1,
    }


def test_failed_list_leaves_no_stack_out() -> None:
    failed = ReportSource(SourceKind.LIST, "lakewright fleet list --all", error="no backend", is_collected=True)
    model = build_report([list_names(JANUARY, "acme", "gone"), failed], now=NOW)

    assert [tenant["stack"] for tenant in model["tenants"]] == ["acme", "gone"]


def test_cause_lacks_the_stacks_that_are_left_out() -> None:
    groups = [{"text": "changed by eve", "stacks": ["acme", "gone"]}, {"text": "deleted", "stacks": ["gone"]}]
    drift = ReportSource(SourceKind.DRIFT, "drift.json", {**DRIFT.document, "groups": groups})
    model = build_report([drift, list_names(DECEMBER, "acme", is_collected=True)], now=NOW)

    assert model["causes"] == [{"text": "changed by eve", "stacks": ["acme"]}]


def test_stack_that_a_listing_file_lacks_is_marked() -> None:
    """A file does not say whether it has all stacks, so the stack remains, with its age and without its bytes."""
    model = build_report([*WITH_REMOVED_STACK, list_names(DECEMBER, "acme")], now=NOW)
    tenant = find_tenant(model, "gone")

    assert (tenant["missing_since"], tenant["level"]) == (JANUARY, "warn")
    assert tenant["state"]["text"] == "not in the latest list: update succeeded"
    assert tenant["state"]["as_of"] == tenant["usage"]["as_of"] == JANUARY
    assert find_tenant(model, "acme")["missing_since"] == ""
    assert [point["live"] / TERABYTE for point in model["history"]["usage"]] == [10, 1]


def test_lists_of_parts_of_a_fleet_mark_no_stack() -> None:
    """The jobs of one night list the fleet in parts."""
    sources = [list_names("2026-12-31T01:00:00Z", "acme"), list_names("2026-12-31T02:00:00Z", "globex")]
    model = build_report(sources, now=NOW)

    assert [tenant["missing_since"] for tenant in model["tenants"]] == ["", ""]
    assert [tenant["state"]["as_of"] for tenant in model["tenants"]] == ["", ""]
    assert [source["stacks"] for source in model["sources"] if source["kind"] == "list"] == [2]


def test_stack_in_another_recent_document_is_not_marked() -> None:
    """A list of one stack is later than the lists of the fleet, but last night's measurement has all stacks."""
    sources = [list_names(JANUARY, "acme", "globex"), measure(DECEMBER, acme=1, globex=1), list_names(DECEMBER, "acme")]
    tenant = find_tenant(build_report(sources, now=NOW), "globex")

    assert (tenant["missing_since"], tenant["level"]) == ("", "ok")
    assert tenant["state"]["as_of"] == JANUARY


def make_run(run_id: str, day: int, state: str = "SUCCEEDED") -> dict[str, Any]:
    at = f"2026-12-{day:02}T03:00:00Z"
    finished_at = at if state != "RUNNING" else None
    run = {"id": run_id, "job": "compaction", "state": state, "queued_at": at, "finished_at": finished_at}
    return {**run, "seconds": 60, "metrics": {}}


def list_runs(day: int, *runs: Mapping[str, Any]) -> ReportSource:
    return make_source(SourceKind.RUNS, f"2026-12-{day:02}T05:00:00Z", {"stack": "acme", "runs": list(runs)})


def test_runs_of_several_documents_are_joined() -> None:
    """Documents overlap: each has the runs of seven days. The second document has the end of an unfinished run."""
    sources = [
        list_runs(30, make_run("a", 29), make_run("b", 30, "RUNNING")),
        list_runs(31, make_run("b", 30), make_run("c", 31)),
    ]
    model = build_report(sources, now=NOW)

    assert [(day["day"], day["runs"]) for day in model["history"]["maintenance"]] == [
        ("2026-12-29", 1),
        ("2026-12-30", 1),
        ("2026-12-31", 1),
    ]
    assert find_tenant(model, "acme")["runs"]["count"] == 3
    assert {run["state"] for run in find_tenant(model, "acme")["runs"]["items"]} == {"SUCCEEDED"}


def test_failed_run_of_an_earlier_document_is_history() -> None:
    model = build_report([list_runs(1, make_run("a", 1, "FAILED")), list_runs(31, make_run("b", 31))], now=NOW)
    runs = find_tenant(model, "acme")["runs"]

    assert (runs["level"], runs["failed"], runs["count"]) == ("ok", 1, 2)
