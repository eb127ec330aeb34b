"""Drift of many tenants: against the bare HTTP calls that it makes, and against `preview --refresh` of each stack.

LAKEWRIGHT_BENCH_TENANTS is the largest number of tenants (200 by default; 1,000 takes most of an hour). With more than
200, the plot in docs/guides/drift-growth.svg is drawn again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from lakewright.drift.detection.run import find_drift
from lakewright.drift.model import DriftReport
from lakewright.fleet.selection import Selection, select
from lakewright_engine.project.project import PulumiProject

from benchmarks.fleet_tenants import FleetTenants
from benchmarks.ground import Ground
from benchmarks.growth_plot import plot
from benchmarks.measure import Row, measure_seconds
from benchmarks.recorded_calls import RecordedCalls
from demo.stage import BIN, REPOSITORY

LARGEST = int(os.environ.get("LAKEWRIGHT_BENCH_TENANTS", "200"))
PATTERNS = {50: "t000[0-4]?", 100: "t000??", 200: "t00[01]??", 400: "t00[0-3]??", 1000: "t00???"}
"""Patterns that select the first tenants, by their number."""
SIZES = [size for size in PATTERNS if size <= LARGEST]
USUAL = 200
"""Tenants of the claims. Larger numbers are measured once."""
SAMPLES = 10
"""Stacks that are previewed in sequence. The time of all stacks is scaled from them."""
PARALLEL = 32
CALLS_TARGET, PREVIEW_TARGET, MEMORY_TARGET = 2.0, 1 / 30, 400
GROWTH_TARGET = 1.25
PLOT = REPOSITORY / "docs" / "guides" / "drift-growth.svg"


@dataclass(frozen=True)
class Measured:
    """One number of tenants."""

    tenants: int
    resources: int
    seconds: float
    """Time of drift in a running process."""
    bare: float
    """Time of the same HTTP calls alone."""
    calls: int
    command: float
    """Time of the whole command, with its start."""
    mebibytes: float
    """Peak memory of the command."""


def measure(ground: Ground) -> list[Row]:
    """Make all tenants, measure growing numbers of them, and then previews of samples."""
    with tempfile.TemporaryDirectory(prefix="fleet-", dir=ground.stage.folder) as folder:
        tenants = FleetTenants(ground, Path(folder) / "project")
        tenants.grow(SIZES[-1])
        print(f"fleet_drift: made {len(tenants.names)} tenants", file=sys.stderr, flush=True)
        measurements: list[Measured] = []
        for size in SIZES:
            measurements.append(_measure_size(ground, tenants, size))
            print(f"fleet_drift: {measurements[-1]}", file=sys.stderr, flush=True)
        cold, warm = (_time_previews(tenants, is_warm) for is_warm in ("0", "1"))
    if SIZES[-1] > USUAL:
        PLOT.write_text(_plot(measurements))
    return _rows(measurements, cold, warm)


def _rows(measurements: list[Measured], cold: float, warm: float) -> list[Row]:
    at = next((measured for measured in measurements if measured.tenants == USUAL), measurements[-1])
    first, last = measurements[0], measurements[-1]
    size = f"{at.tenants} tenants, {at.resources:,} resources"
    scaled = f"reference: {SAMPLES} stacks in sequence, scaled to {at.tenants}"
    return [
        Row(
            "fleet drift",
            at.seconds,
            at.bare,
            CALLS_TARGET,
            note=f"{size}; reference: its {at.calls:,} HTTP calls alone, {PARALLEL} at a time",
        ),
        Row("fleet drift, the whole command", at.command, cold * at.tenants, PREVIEW_TARGET, note=f"{size}; {scaled}"),
        Row(
            "fleet drift, the whole command",
            at.command,
            warm * at.tenants,
            None,
            note=f"{size}; {scaled}, each by a warm process",
        ),
        Row(
            "fleet drift, peak memory",
            at.mebibytes,
            MEMORY_TARGET,
            1.0,
            unit="MiB",
            note=f"{at.tenants} of {last.tenants} tenants",
        ),
        Row(
            "fleet drift, time a tenant",
            last.seconds / last.tenants * 1000,
            first.seconds / first.tenants * 1000,
            GROWTH_TARGET,
            unit="ms",
            note=f"{last.tenants} tenants; reference: {first.tenants} tenants",
        ),
    ]


def _measure_size(ground: Ground, tenants: FleetTenants, size: int) -> Measured:
    pattern = PATTERNS[size]
    with _as_commands(ground, tenants) as project:
        reports: list[DriftReport] = []
        calls = RecordedCalls(lambda: reports.append(_drift(project, pattern)))
        _require_no_drift(reports[0], size)
        seconds, bare = [], []
        for _ in range(3 if size <= USUAL else 1):  # in turn, as other work on the machine changes
            seconds.append(measure_seconds(lambda: _drift(project, pattern)))
            bare.append(measure_seconds(lambda: calls.repeat(PARALLEL)))
    command, mebibytes = _command(ground, tenants, pattern)
    resources = sum(stack.resources for stack in reports[0].stacks)
    return Measured(size, resources, min(seconds), min(bare), len(calls), command, mebibytes)


def _drift(project: PulumiProject, pattern: str) -> DriftReport:
    return find_drift(project, select(project, Selection((pattern,))), parallel=PARALLEL)


def _require_no_drift(report: DriftReport, count: int) -> None:
    """Raise if a copied tenant is not as an `up` would have left it."""
    assert len(report.stacks) == count
    assert report.exit_code == 0, json.dumps(report.to_json())[:4000]


@contextmanager
def _as_commands(ground: Ground, tenants: FleetTenants) -> Iterator[PulumiProject]:
    """Yield the project, with the environment of commands, and a wrong passphrase: no secret is decrypted."""
    environment = ground.stage.settings() | tenants.environment() | {"PULUMI_CONFIG_PASSPHRASE": "wrong"}
    with patch.dict(os.environ, environment):
        yield PulumiProject.load(tenants.folder)


def _command(ground: Ground, tenants: FleetTenants, pattern: str) -> tuple[float, float]:
    """Return seconds and peak MiB of `lakewright drift`."""
    environment = os.environ | ground.stage.settings() | tenants.environment()
    command = [str(BIN / "lakewright"), "drift", "--stack", pattern, "--json", "-C", str(tenants.folder)]
    began = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    assert process.returncode == 0
    return seconds, usage.ru_maxrss / 1024


def _time_previews(tenants: FleetTenants, is_warm: str) -> float:
    """Return the seconds of a `preview --refresh`, the mean of samples, each of which finds no change."""
    step = max(1, len(tenants.names) // SAMPLES)
    samples = tenants.names[::step][:SAMPLES]
    command = ("preview", "--refresh", "--expect-no-changes", "--engine", "embedded")
    tenants.run(*command, "--stack", samples[0], LAKEWRIGHT_WARM=is_warm)
    total = sum(
        measure_seconds(lambda name=name: tenants.run(*command, "--stack", name, LAKEWRIGHT_WARM=is_warm))
        for name in samples
    )
    return total / len(samples)


def _plot(measurements: list[Measured]) -> str:
    return plot(
        "lakewright drift --all",
        "tenants",
        "seconds",
        {
            "drift": [(measured.tenants, measured.seconds) for measured in measurements],
            "its HTTP calls alone": [(measured.tenants, measured.bare) for measured in measurements],
        },
    )
