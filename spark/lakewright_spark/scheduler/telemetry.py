"""Metrics of runs: to OpenTelemetry, where the environment says so, and as JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TextIO

from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk import metrics as sdk
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader

from lakewright_spark.errors import ConfigMissingError
from lakewright_spark.scheduler.outcome import told
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Observer

EXPORTER = "OTEL_METRICS_EXPORTER"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_NAMES = {"otlp": "otlp_proto_http"}
"""OpenTelemetry's word for its protocol, and the exporter that is installed with this package."""


class Metrics:
    """An observer that counts, with OpenHouse's names and attributes."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter("lakewright_spark")
        self._triggered = meter.create_counter("maintenance_job_triggered", "{run}", "Runs that began")
        self._completed = meter.create_counter("maintenance_job_completed", "{run}", "Runs that ended, by job_state")
        self._skipped = meter.create_counter("maintenance_job_skipped", "{run}", "Runs that had nothing to do")
        self._duration = meter.create_histogram("run_duration_job", "s", "How long runs took")
        self._queued = meter.create_histogram("queued_time", "s", "How long runs waited")
        self._running = meter.create_up_down_counter("running_job_count", "{run}", "Runs at work now")
        self._numbers = meter.create_counter("maintenance_job_effect", "1", "What runs told of files, rows and bytes")

    def __call__(self, run: RunRecord) -> None:
        of = {"entity_name": str(run.table), "entity_type": "TABLE", "job_type": run.job}
        if run.state is RunState.RUNNING:
            self._triggered.add(1, of)
            self._running.add(1, {"job_type": run.job})
            assert run.started_at
            self._queued.record((run.started_at - run.queued_at).total_seconds(), {"job_type": run.job})
        elif run.state.ended:
            with_state = {**of, "job_state": run.state.value}
            (self._skipped if run.state is RunState.SKIPPED else self._completed).add(1, with_state)
            if run.started_at is None:
                return
            self._running.add(-1, {"job_type": run.job})
            self._duration.record(run.seconds or 0.0, with_state)
            for name, value in run.metrics.items():
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    self._numbers.add(value, {**of, "effect": name})


class JsonLines:
    """An observer that writes a line for each run that has ended."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __call__(self, run: RunRecord) -> None:
        if run.state.ended:
            self._file.write(json.dumps(told(run), default=str) + "\n")
            self._file.flush()


@contextmanager
def observers(lines: Path | None, environ: Mapping[str, str] = os.environ) -> Iterator[list[Observer]]:
    """What the block's runs are to be told to. Raises ConfigMissingError before the block."""
    exporter = _exporter(environ)
    try:
        file = lines.open("a", encoding="utf-8") if lines else None
    except OSError as error:
        raise ConfigMissingError(f"--metrics {lines}: expected a file to append to: {error.strerror}") from None
    provider = sdk.MeterProvider([PeriodicExportingMetricReader(exporter)]) if exporter else None
    found: list[Observer] = []
    try:
        if provider:
            found.append(Metrics(provider))
        if file:
            found.append(JsonLines(file))
        yield found
    finally:
        if provider:
            provider.shutdown()
        if file:
            file.close()


def _exporter(environ: Mapping[str, str]) -> MetricExporter | None:
    """The exporter that OpenTelemetry's own variables ask for; none if they say nothing."""
    name = environ.get(EXPORTER, "otlp" if any(environ.get(one) for one in _ENDPOINTS) else "none")
    if name == "none":
        return None
    known: dict[str, Any] = {one.name: one for one in entry_points(group="opentelemetry_metrics_exporter")}
    wanted = known.get(_NAMES.get(name, name))
    if wanted is None:
        names = ", ".join(sorted({"none", "otlp", *known}))
        raise ConfigMissingError(f"{EXPORTER}: expected one of {names}, found {name!r}")
    return wanted.load()()
