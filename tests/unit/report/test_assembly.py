"""The model of a report: each result has a level, a text and its details; missing sources are missing, not good."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from lakewright.report.assembly import build_report
from lakewright.report.maintenance_runs import describe_gain, sum_by_day
from lakewright.report.sources import ReportSource, SourceKind, read_source
from lakewright.report.tenant_sections import (
    describe_checks,
    describe_drift,
    describe_restrictions,
    describe_shares,
    describe_state,
    describe_usage,
    describe_verification,
)

from tests.fleet_documents import NOW, make_sources


def find_tenant(sources: list[ReportSource], name: str) -> dict[str, Any]:
    (tenant,) = [tenant for tenant in build_report(sources, now=NOW)["tenants"] if tenant["stack"] == name]
    return tenant


def make_source(command: str, **entry: Any) -> ReportSource:
    document = {"version": 1, "command": command, "at": "2026-11-24T09:00:00Z", "stacks": [{"stack": "acme", **entry}]}
    return read_source(json.dumps(document), f"{command}.json")


def test_model_can_be_written_as_json() -> None:
    model = build_report(make_sources(12), now=NOW, title="acme")

    assert json.loads(json.dumps(model)) == model
    assert len(model["tenants"]) == 12
    assert [point["live"] for point in model["history"]["usage"]] == sorted(
        point["live"] for point in model["history"]["usage"]
    )


def test_tenant_has_what_each_source_says() -> None:
    tenant = find_tenant(make_sources(12), "assays")

    assert (tenant["owner"], tenant["environment"], tenant["level"]) == ("genomics@acme.example", "production", "bad")
    assert tenant["drift"]["text"] == "1 difference"
    assert tenant["drift"]["items"][0]["actor"] == "arn:aws:iam::111122223333:user/mallory"
    assert tenant["checks"]["text"] == "2 passed"
    assert tenant["verify"]["text"] == "1 of 1 failed"
    assert tenant["usage"]["growth"]["bytes"] == tenant["usage"]["live"] // 12
    assert tenant["runs"]["seconds"] > 0
    assert len(tenant["usage"]["history"]) == 4


def test_missing_sources_are_not_good_results() -> None:
    tenant = find_tenant([make_source("list", has_state=True, condition="update succeeded", has_file=True)], "acme")

    assert [tenant[name] for name in ("drift", "checks", "verify", "restrictions", "usage", "runs")] == [None] * 6
    assert tenant["level"] == "ok"


@pytest.mark.parametrize(
    ("entry", "level", "text"),
    [
        ({}, "ok", "none"),
        ({"archives": [{"warehouse": "raw", "announced_at": None}]}, "ok", "1 archived"),
        ({"archives": [{"warehouse": "raw", "announced_at": "2026-11-20T00:00:00Z"}]}, "warn", "1 archived"),
        ({"archives": [{"warehouse": "raw", "problem": "role `x` was changed"}]}, "warn", "1 archived"),
        ({"limited_parts": ["tenant", "warehouse raw"]}, "warn", "2 enforced limits"),
        ({"problems": ["timeout"]}, "warn", "not read"),
    ],
)
def test_levels_of_archives_and_limits(entry: dict[str, Any], level: str, text: str) -> None:
    restrictions = describe_restrictions(entry)

    assert restrictions is not None
    assert (restrictions["level"], restrictions["text"]) == (level, text)


def test_report_names_purge_and_suspended_grants() -> None:
    sources = make_sources(12)

    archive = find_tenant(sources, "cohorts")["restrictions"]["archives"][0]
    limited = find_tenant(sources, "ledger")["restrictions"]

    assert (archive["warehouse"], archive["purge_at"][:10]) == ("raw", "2026-11-28")
    assert archive["announced_at"][:10] == "2026-11-21"
    assert limited["limits"][0]["since"] == "2026-11-22T09:30:00Z"
    assert limited["suspended"] == [{"principal": "ledger-analysts", "privilege": "modify", "on": "warehouse curated"}]


def test_failed_source_keeps_its_error() -> None:
    failed = ReportSource(SourceKind.DRIFT, "lakewright drift --all --json", error="no Pulumi.yaml found")
    sources = {source["kind"]: source for source in build_report([failed], now=NOW)["sources"]}

    assert sources["drift"]["error"] == "no Pulumi.yaml found"
    assert sources["drift"]["level"] == "bad"
    assert sources["usage"]["level"] == "none"


@pytest.mark.parametrize(
    ("entry", "level"),
    [
        ({"has_state": True, "has_file": True, "last_result": "succeeded"}, "ok"),
        ({"has_state": True, "has_file": True, "last_result": "failed"}, "bad"),
        ({"has_state": True, "has_file": True, "pending": ["urn"]}, "bad"),
        ({"has_state": True, "has_file": True, "locked_by": ["host"]}, "warn"),
        ({"has_state": True, "has_file": False}, "warn"),
        ({"has_state": True, "has_file": True, "problem": "damaged"}, "bad"),
        ({"has_state": False, "has_file": True}, "none"),
    ],
)
def test_levels_of_states(entry: dict[str, Any], level: str) -> None:
    assert describe_state(entry)["level"] == level


@pytest.mark.parametrize(
    ("entry", "level", "text"),
    [
        ({"differences": [], "problems": []}, "ok", "none"),
        ({"differences": [{"kind": "changed"}], "problems": []}, "bad", "1 difference"),
        ({"differences": [{"kind": "changed", "ignored": {"reason": "planned"}}], "problems": []}, "ok", "none"),
        ({"differences": [{"kind": "unreachable"}], "problems": []}, "warn", "not fully checked"),
        ({"differences": [{"kind": "gone"}], "problems": ["timeout"]}, "bad", "1 difference, not fully checked"),
    ],
)
def test_levels_of_drift(entry: dict[str, Any], level: str, text: str) -> None:
    drift = describe_drift(entry)

    assert drift
    assert (drift["level"], drift["text"]) == (level, text)


@pytest.mark.parametrize(
    ("entry", "level", "text"),
    [
        ({"checks": [{"outcome": "passed"}], "problems": []}, "ok", "1 passed"),
        ({"checks": [{"outcome": "failed"}, {"outcome": "passed"}], "problems": []}, "bad", "1 of 2 failed"),
        ({"checks": [{"outcome": "not evaluated"}], "problems": []}, "warn", "1 of 1 not evaluated"),
        ({"checks": [], "problems": ["no state"]}, "warn", "not evaluated"),
    ],
)
def test_levels_of_checks(entry: dict[str, Any], level: str, text: str) -> None:
    checks = describe_checks(entry)

    assert checks
    assert (checks["level"], checks["text"]) == (level, text)


@pytest.mark.parametrize(
    ("entry", "level"),
    [
        ({"status": "passed", "holds": True, "checks": [{"holds": True}]}, "ok"),
        ({"status": "failed", "holds": False, "checks": [{"holds": False, "probe": "p"}]}, "bad"),
        ({"status": "failed", "error": "no credential", "checks": []}, "warn"),
    ],
)
def test_levels_of_verification(entry: dict[str, Any], level: str) -> None:
    verification = describe_verification(entry)

    assert verification
    assert verification["level"] == level


def test_stack_that_does_not_exist_has_no_results() -> None:
    assert describe_verification({"status": "not deployed"}) is None
    assert describe_usage({"deployed": False, "usage": None}, []) is None


@pytest.mark.parametrize(
    ("until", "level"),
    [
        ("", "none"),
        ((NOW + timedelta(days=90)).date().isoformat(), "ok"),
        ((NOW + timedelta(days=10)).date().isoformat(), "warn"),
        (NOW.date().isoformat(), "warn"),
        ((NOW - timedelta(days=1)).date().isoformat(), "bad"),
        ((NOW - timedelta(seconds=1)).isoformat(), "bad"),
    ],
)
def test_shares_expire(until: str, level: str) -> None:
    parts = {"warehouses": [{"name": "curated", "shares": [{"name": "audit", "principal": "arn", "until": until}]}]}

    assert describe_shares(parts, NOW)[0]["level"] == level


@pytest.mark.parametrize(
    ("until", "ends_at"),
    [
        ("2026-12-31", "2027-01-01T00:00:00Z"),
        ("2026-12-31T18:00:00+01:00", "2026-12-31T17:00:00Z"),
        ("someday", ""),
        ("", ""),
    ],
)
def test_share_is_valid_through_its_last_day(until: str, ends_at: str) -> None:
    parts = {"warehouses": [{"name": "curated", "shares": [{"name": "audit", "until": until}]}]}

    assert describe_shares(parts, NOW)[0]["ends_at"] == ends_at


@pytest.mark.parametrize(
    ("job", "metrics", "gain"),
    [
        ("compaction", {"rewritten": 40, "added": 2, "bytes": 12_000_000}, "40 files rewritten to 2, 12.0 MB read"),
        ("retention", {"files": 3, "rows": 9, "bytes": 5000}, "3 files, 5.0 kB deleted"),
        (
            "snapshot-expiration",
            {"snapshots": 2, "data_files": 1, "manifests": 3},
            "2 snapshots expired, 4 files deleted",
        ),
        ("staged-files", {"deleted": 7, "waiting": 2}, "7 files deleted, 2 waiting"),
        ("orphan-files", {"candidates": 9, "new": 4}, "4 orphan files staged for deletion"),
        ("compaction", {"rewritten": 40, "added": 2, "dry_run": True}, ""),
        ("statistics", {"rows": 5}, ""),
    ],
)
def test_gain_of_a_run(job: str, metrics: dict[str, Any], gain: str) -> None:
    assert describe_gain(job, metrics) == gain


def test_gains_name_jobs_and_metrics_that_exist() -> None:
    """A job or metric that is renamed would show no gain."""
    from dataclasses import fields

    from lakewright.report.maintenance_runs import _GAINS
    from lakewright_spark.maintenance.jobs import (
        compaction,
        orphan_files,
        retention,
        rewrite_manifests,
        snapshot_expiration,
        staged_files,
    )

    metrics = {
        "compaction": compaction.CompactionMetrics,
        "orphan-files": orphan_files.OrphanFilesMetrics,
        "retention": retention.RetentionMetrics,
        "rewrite-manifests": rewrite_manifests.RewriteManifestsMetrics,
        "snapshot-expiration": snapshot_expiration.SnapshotExpirationMetrics,
        "staged-files": staged_files.StagedFilesMetrics,
    }
    assert metrics.keys() == _GAINS.keys()
    for job, kind in metrics.items():
        counts = {field.name: 5 for field in fields(kind) if field.name not in ("reason", "dry_run")}
        assert describe_gain(job, counts), job


def test_days_sum_cost_and_gain() -> None:
    run = {"job": "compaction", "finished_at": "2026-11-23T02:00:00Z", "seconds": 60.0}
    days = sum_by_day([{**run, "metrics": {"rewritten": 10, "added": 1}}, {**run, "metrics": {}}])

    assert days == [{"day": "2026-11-23", "seconds": 120.0, "removed_files": 9, "runs": 2}]
