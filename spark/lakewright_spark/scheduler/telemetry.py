"""Metrics of runs: for OpenTelemetry, if the environment configures it, and as JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TextIO

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.sdk import metrics as sdk
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader

from lakewright_spark.errors import ConfigMissingError
from lakewright_spark.policies.model import JOBS
from lakewright_spark.pyiceberg_client.limit_checks import LimitUse
from lakewright_spark.scheduler.outcome import run_to_json
from lakewright_spark.scheduler.plan import WarehousePlan
from lakewright_spark.scheduler.run_log.daily_usage import DailyUsage
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Observer

EXPORTER = "OTEL_METRICS_EXPORTER"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_NAMES = {"otlp": "otlp_proto_http"}
"""Exporter names of OpenTelemetry's variables, and the entry points installed with this package."""


_USAGE_GAUGES = (
    ("warehouse_tables", "Tables of a warehouse", "tables"),
    ("warehouse_files", "Live files of a warehouse", "files"),
    ("warehouse_maintenance_minutes", "Minutes of maintenance jobs today", "maintenance_minutes"),
    ("warehouse_cu_hours", "Hours of computing units today", "cu_hours"),
)
"""Name, text and field of each gauge of a day's usage. Amounts that no source reports have no gauge."""
_LIMIT_GAUGES = (("limit", "The limit", "limit"), ("limit_used", "Amount that the limit counts", "used"))
"""Name, text and field of each gauge of the use of a limit."""


def _list_attributes(usage: DailyUsage) -> dict[str, str]:
    return {"warehouse": usage.warehouse, "owner": usage.owner or ""}


class TelemetryObserver:
    """Counts runs under OpenHouse's metric names and attributes."""

    def __init__(self, provider: MeterProvider) -> None:
        """Create the instruments."""
        meter = provider.get_meter("lakewright_spark")
        self._triggered = meter.create_counter("maintenance_job_triggered", "{run}", "Runs that began")
        self._completed = meter.create_counter("maintenance_job_completed", "{run}", "Runs that ended, by job_state")
        self._skipped = meter.create_counter("maintenance_job_skipped", "{run}", "Runs that had nothing to do")
        self._duration = meter.create_histogram("run_duration_job", "s", "How long runs took")
        self._queued = meter.create_histogram("queued_time", "s", "How long runs waited")
        self._running = meter.create_up_down_counter("running_job_count", "{run}", "Runs at work now")
        self._numbers = meter.create_counter("maintenance_job_effect", "1", "Files, rows and bytes that runs report")
        self._successes: dict[tuple[str, str], datetime | None] = {}
        """Last success by table and job: of each job that succeeded, is due or is held back."""
        meter.create_observable_gauge(
            "maintenance_days_since_success",
            [self._observe_days],
            "d",
            "Days since a job last succeeded on a table; -1: the table needs it and it never did",
        )

        self._usages: Sequence[DailyUsage] = ()
        sizes = "Bytes of a warehouse by kind: live, reclaimable, orphan, soft_deleted"
        meter.create_observable_gauge("warehouse_storage", [self._observe_bytes], "By", sizes)
        for name, text, field in _USAGE_GAUGES:
            meter.create_observable_gauge(name, [self._build_usage_callback(field)], "1", text)
        self._uses: Sequence[LimitUse] = ()
        for name, text, field in _LIMIT_GAUGES:
            meter.create_observable_gauge(name, [self._build_limit_callback(field)], "1", text)

    def observe_usage(self, usages: Sequence[DailyUsage], uses: Sequence[LimitUse]) -> None:
        """Handle the rows that a run wrote to `ops.daily_usage`, and the use of limits by these rows."""
        self._usages, self._uses = usages, uses

    def _observe_bytes(self, options: CallbackOptions) -> Iterator[Observation]:
        """Yield the bytes of each warehouse by kind, without unknown values."""
        del options
        for usage in self._usages:
            for kind in ("live", "reclaimable", "orphan", "soft_deleted"):
                if (size := getattr(usage, f"bytes_{kind}")) is not None:
                    yield Observation(size, {**_list_attributes(usage), "kind": kind})

    def _build_usage_callback(self, field: str) -> Callable[[CallbackOptions], Iterator[Observation]]:
        def observe(options: CallbackOptions) -> Iterator[Observation]:
            del options
            for usage in self._usages:
                if (amount := getattr(usage, field)) is not None:
                    yield Observation(amount, _list_attributes(usage))

        return observe

    def _build_limit_callback(self, field: str) -> Callable[[CallbackOptions], Iterator[Observation]]:
        def observe(options: CallbackOptions) -> Iterator[Observation]:
            del options
            for use in self._uses:
                part = {"warehouse": use.warehouse or "", "namespace": use.namespace or ""}
                yield Observation(getattr(use, field), {**part, "quantity": use.quantity})

        return observe

    def observe_plans(self, plans: Sequence[WarehousePlan]) -> None:
        """Handle the plans of a run, before it begins."""
        self._successes = {
            (str(table.facts.table), decision.job): decision.last_success
            for warehouse_plan in plans
            for table in warehouse_plan.tables
            for decision in table.decisions
            if decision.verdict != "not due" or decision.last_success is not None
        }

    def _observe_days(self, options: CallbackOptions) -> Iterator[Observation]:
        """Yield the days for each table and job."""
        del options
        now = datetime.now(UTC)
        for (table, job), last in list(self._successes.items()):
            attributes = {"entity_name": table, "entity_type": "TABLE", "job_type": job}
            yield Observation(-1 if last is None else (now - last) / timedelta(days=1), attributes)

    def __call__(self, run: RunRecord) -> None:
        """Handle a run whose state changed."""
        attributes = {"entity_name": str(run.table), "entity_type": "TABLE", "job_type": run.job}
        if run.state is RunState.RUNNING:
            self._triggered.add(1, attributes)
            self._running.add(1, {"job_type": run.job})
            assert run.started_at
            self._queued.record((run.started_at - run.queued_at).total_seconds(), {"job_type": run.job})
        elif run.state.has_ended:
            key = (str(run.table), run.job)
            if run.state is RunState.SUCCEEDED and run.job in JOBS:
                self._successes[key] = run.started_at
            with_state = {**attributes, "job_state": run.state.value}
            (self._skipped if run.state is RunState.SKIPPED else self._completed).add(1, with_state)
            if run.started_at is None:
                return
            self._running.add(-1, {"job_type": run.job})
            self._duration.record(run.seconds or 0.0, with_state)
            for name, value in run.metrics.items():
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    self._numbers.add(value, {**attributes, "effect": name})


class JsonLines:
    """Writes a JSON line for each run that has ended."""

    def __init__(self, file: TextIO) -> None:
        """Append to an open file."""
        self._file = file

    def __call__(self, run: RunRecord) -> None:
        """Handle a run whose state changed."""
        if run.state.has_ended:
            self._file.write(json.dumps(run_to_json(run), default=str) + "\n")
            self._file.flush()


@contextmanager
def open_observers(
    lines: Path | None, environ: Mapping[str, str] = os.environ
) -> Generator[list[Observer], None, None]:
    """Yield the observers for the block: telemetry and JSON lines, if configured.

    Raises:
        ConfigMissingError: The exporter is unknown, or the file cannot be opened.
    """
    exporter = _exporter(environ)
    try:
        file = lines.open("a", encoding="utf-8") if lines else None
    except OSError as error:
        raise ConfigMissingError(f"--metrics {lines}: expected a file to append to: {error.strerror}") from None
    provider = sdk.MeterProvider([PeriodicExportingMetricReader(exporter)]) if exporter else None
    observers: list[Observer] = []
    try:
        if provider:
            observers.append(TelemetryObserver(provider))
        if file:
            observers.append(JsonLines(file))
        yield observers
    finally:
        if provider:
            provider.shutdown()
        if file:
            file.close()


def _exporter(environ: Mapping[str, str]) -> MetricExporter | None:
    """Return the exporter that OpenTelemetry's variables configure; None without such variables."""
    name = environ.get(EXPORTER, "otlp" if any(environ.get(variable) for variable in _ENDPOINTS) else "none")
    if name == "none":
        return None
    exporters: dict[str, Any] = {entry.name: entry for entry in entry_points(group="opentelemetry_metrics_exporter")}
    entry_point = exporters.get(_NAMES.get(name, name))
    if entry_point is None:
        names = ", ".join(sorted({"none", "otlp", *exporters}))
        raise ConfigMissingError(f"{EXPORTER}: expected one of {names}, found {name!r}")
    return entry_point.load()()
