"""Reports of runs: OpenTelemetry metrics with OpenHouse's names, JSON lines, and progress on a terminal."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lakewright_spark.errors import ConfigMissingError
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.pyiceberg_client.limit_checks import LimitUse
from lakewright_spark.scheduler import progress, supervisor, telemetry
from lakewright_spark.scheduler.outcome import run_to_json
from lakewright_spark.scheduler.plan import JobDecision, TablePlan, WarehousePlan
from lakewright_spark.scheduler.run_log.daily_usage import DailyUsage
from lakewright_spark.scheduler.run_log.records import BASIS, RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from rich.console import Console

NOW = datetime(2026, 1, 10, tzinfo=UTC)
QUEUED = RunRecord(
    runner="host/1/aa", table=TableIdentifier("w", ("a",), "t"), table_uuid="u", job="compaction", queued_at=NOW
)
RUNNING = dataclasses.replace(QUEUED, state=RunState.RUNNING, started_at=NOW + timedelta(seconds=5))
ENDED = dataclasses.replace(
    RUNNING,
    state=RunState.SUCCEEDED,
    finished_at=NOW + timedelta(seconds=7),
    metrics={"rewritten": 6, "added": 1, "failed": 0, "dry_run": False},
)
FAILED = dataclasses.replace(ENDED, state=RunState.FAILED, reason="the storage is down", metrics={})
RUN = (QUEUED, RUNNING, ENDED)


def test_opentelemetry_counts_and_times_runs() -> None:
    reader = InMemoryMetricReader()
    metrics = telemetry.TelemetryObserver(MeterProvider([reader]))
    for run in RUN:
        metrics(run)
    data = reader.get_metrics_data()
    assert data is not None
    points: dict[str, list[Any]] = {
        metric.name: list(metric.data.data_points) for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }
    (completed,) = points["maintenance_job_completed"]
    assert (completed.value, dict(completed.attributes)) == (
        1,
        {"entity_name": "w.a.t", "entity_type": "TABLE", "job_type": "compaction", "job_state": "SUCCEEDED"},
    )
    assert points["running_job_count"][0].value == 0
    assert points["run_duration_job"][0].sum == 2
    assert points["queued_time"][0].sum == 5
    effects = {point.attributes["effect"]: point.value for point in points["maintenance_job_effect"]}
    assert effects == {"rewritten": 6, "added": 1}


def test_opentelemetry_reports_days_since_the_last_success() -> None:
    """A job has days whether it is due or not; a job that the table needs and that never succeeded has -1."""
    reader = InMemoryMetricReader()
    metrics = telemetry.TelemetryObserver(MeterProvider([reader]))
    table = TableIdentifier("w", ("a",), "t")
    decisions = (
        JobDecision("compaction", "due", "", last_success=datetime.now(UTC) - timedelta(days=3)),
        JobDecision("retention", "held", "failed once"),
        JobDecision("statistics", "not due", "", last_success=datetime.now(UTC) - timedelta(days=1)),
        JobDecision("refs", "not due", "no declared branches and tags"),
    )
    facts = TableFacts(table=table, uuid="u", properties={}, touched_at=NOW)
    metrics.observe_plans([WarehousePlan("w", (TablePlan(facts, TablePolicies(), decisions),), {})])

    def read() -> dict[str, float]:
        data = reader.get_metrics_data()
        assert data is not None
        metric_data = {metric.name: metric.data for metric in data.resource_metrics[0].scope_metrics[0].metrics}
        points = metric_data["maintenance_days_since_success"].data_points
        return {point.attributes["job_type"]: round(point.value, 2) for point in points}

    assert read() == {"compaction": 3.0, "retention": -1, "statistics": 1.0}
    now = datetime.now(UTC)
    metrics(dataclasses.replace(ENDED, started_at=now, finished_at=now))
    assert read() == {"compaction": 0.0, "retention": -1, "statistics": 1.0}


def test_opentelemetry_reports_the_usage_of_the_day() -> None:
    reader = InMemoryMetricReader()
    metrics = telemetry.TelemetryObserver(MeterProvider([reader]))
    usage = DailyUsage(
        day="2026-11-27",
        warehouse="results",
        owner="user:oidc~ann",
        tables=2,
        files=9,
        bytes_live=700,
        bytes_reclaimable=50,
        bytes_orphan=None,
        maintenance_minutes=1.5,
        cu_hours=2.5,
        measured_at=NOW,
    )
    without_hours = dataclasses.replace(usage, warehouse="raw", cu_hours=None)
    uses = [
        LimitUse("tenant acme", None, None, "compute", 100, 2),
        LimitUse("namespace results.sales", "results", "sales", "bytes", 1000, 750),
    ]
    metrics.observe_usage([usage, without_hours], uses)
    data = reader.get_metrics_data()
    assert data is not None
    points = {
        (metric.name, point.attributes.get("kind")): (point.value, point.attributes["owner"])
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
        if metric.name.startswith("warehouse_") and point.attributes["warehouse"] == "results"
    }
    limits = {
        (metric.name, *(point.attributes[name] for name in ("warehouse", "namespace", "quantity"))): point.value
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
        if metric.name.startswith("limit")
    }
    hours = [
        point.attributes["warehouse"]
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
        if metric.name == "warehouse_cu_hours"
    ]
    assert hours == ["results"], "an amount that no source reports has no gauge"
    assert limits == {
        ("limit", "", "", "compute"): 100,
        ("limit_used", "", "", "compute"): 2,
        ("limit", "results", "sales", "bytes"): 1000,
        ("limit_used", "results", "sales", "bytes"): 750,
    }
    assert points == {
        ("warehouse_storage", "live"): (700, "user:oidc~ann"),
        ("warehouse_storage", "reclaimable"): (50, "user:oidc~ann"),
        ("warehouse_storage", "soft_deleted"): (0, "user:oidc~ann"),
        ("warehouse_tables", None): (2, "user:oidc~ann"),
        ("warehouse_files", None): (9, "user:oidc~ann"),
        ("warehouse_maintenance_minutes", None): (1.5, "user:oidc~ann"),
        ("warehouse_cu_hours", None): (2.5, "user:oidc~ann"),
    }


def test_json_line_per_ended_run(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    for run in (ENDED, FAILED):
        with telemetry.open_observers(file, {}) as observers:
            for observer in observers:
                observer(RUNNING)
                observer(run)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["state"], line["table"], line["seconds"]) for line in lines] == [
        ("SUCCEEDED", "w.a.t", 2),
        ("FAILED", "w.a.t", 2),
    ]


def test_environment_selects_the_exporter() -> None:
    with telemetry.open_observers(None, {}) as observers:
        assert observers == []
    with telemetry.open_observers(None, {"OTEL_METRICS_EXPORTER": "console"}) as observers:
        assert [type(observer) for observer in observers] == [telemetry.TelemetryObserver]
    with pytest.raises(ConfigMissingError, match=r"expected one of console, none, otlp.*found 'abacus'"):
        telemetry.open_observers(None, {"OTEL_METRICS_EXPORTER": "abacus"}).__enter__()
    with pytest.raises(ConfigMissingError, match=r"--metrics .*: expected a file"):
        telemetry.open_observers(Path("/nowhere/at/all"), {}).__enter__()


def test_progress_lines_or_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    plain = io.StringIO()
    with progress.show_progress(Console(file=plain, force_terminal=False)) as observer:
        for run in (*RUN, FAILED):
            observer(run)
    assert plain.getvalue().splitlines() == [
        "w.a.t: compaction succeeded in 2.0 s (rewritten 6, added 1)",
        "w.a.t: compaction failed in 2.0 s (the storage is down)",
    ]
    drawn = io.StringIO()
    with progress.show_progress(Console(file=drawn, force_terminal=True, width=100)) as observer:
        for run in RUN:
            observer(run)
    assert "1/1" in drawn.getvalue()
    assert "succeeded" not in drawn.getvalue()


def test_line_has_no_metrics_for_the_next_plan() -> None:
    run = dataclasses.replace(RUN[-1], metrics={**RUN[-1].metrics, BASIS: {"policy": "00ff"}})
    assert progress.format_line(run.table, [run]) == "w.a.t: compaction succeeded in 2.0 s (rewritten 6, added 1)"
    assert BASIS not in run_to_json(run)["metrics"]


def test_signal_requests_a_stop() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with supervisor.handle_signals() as control:
        assert not control.ended.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert control.ended.wait(5)
    assert signal.getsignal(signal.SIGTERM) is before
