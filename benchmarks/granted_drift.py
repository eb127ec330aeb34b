"""Drift and `verify` of tenants with units, members and grants, and one stack's drift in a warm process.

All goals are ratios of times of this run, which other work on the machine changes alike. DELAY makes responses as slow
as responses of servers in a network.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import httpx
from lakewright.cli.commands.verify import open_session
from lakewright.drift.detection.run import find_drift
from lakewright.drift.detection.steps import DriftOptions
from lakewright.drift.model import DriftReport, UnmanagedSearch
from lakewright.fleet.selection import Selection, select
from lakewright.verify.run import VerifyReport, run_probes
from lakewright_engine.project.project import PulumiProject

from benchmarks.granted_tenants import NAMES, GrantedTenants, deploy_tenants
from benchmarks.ground import Ground
from benchmarks.measure import Row, measure_seconds
from benchmarks.recorded_calls import RecordedCalls
from demo.stage import BIN, STACK

TIMES = 5
PARALLEL = 32
DELAY = 0.1
"""Seconds that each response is delayed in the measurement of `verify`."""
CALLS_TARGET, VERIFY_SECONDS, WARM_SECONDS = 1.3, 8.0, 0.6


def measure(ground: Ground) -> list[Row]:
    """Measure each in turn with its reference, and take the least times: other work only adds to them."""
    with deploy_tenants(ground) as tenants:
        rows = [*_drift_rows(tenants), *_verify_rows(tenants)]
    return [*rows, *_warm_rows(ground)]


def _drift_rows(tenants: GrantedTenants) -> Iterator[Row]:
    with _as_commands(tenants) as project:
        reports: list[DriftReport] = []
        _drift(project)
        calls = RecordedCalls(lambda: reports.append(_drift(project)))
        assert reports[0].exit_code == 0, reports[0].to_json()
        drift, bare = [], []
        for _ in range(TIMES):
            drift.append(measure_seconds(lambda: _drift(project)))
            bare.append(measure_seconds(lambda: calls.repeat(PARALLEL)))
    resources = sum(stack.resources for stack in reports[0].stacks)
    size = f"{len(NAMES)} tenants, {resources} resources"
    note = f"{size}; reference: its {len(calls)} HTTP calls alone, {PARALLEL} at a time"
    yield Row("drift with units, members and grants", min(drift), min(bare), CALLS_TARGET, note=note)


def _verify_rows(tenants: GrantedTenants) -> Iterator[Row]:
    with _as_commands(tenants), _delay_responses():
        reports: list[VerifyReport] = []
        together = measure_seconds(lambda: reports.append(_verify(tenants, 16)))
        one_by_one = measure_seconds(lambda: reports.append(_verify(tenants, 1)))
    assert all(report.holds for report in reports)
    assert reports[0].checks == reports[1].checks
    size = f"{len(reports[0].checks)} checks, {DELAY * 1000:.0f} ms a response"
    yield Row("verify", together, VERIFY_SECONDS, 1.0, note=f"{size}; reference: the goal")
    yield Row("verify", together, one_by_one, None, note=f"{size}; reference: one probe at a time")


def _warm_rows(ground: Ground) -> Iterator[Row]:
    """Measure `drift` of the demo's stack."""
    arguments = ("drift", "--stack", STACK)
    warm_up = [str(BIN / "lakewright"), *arguments]
    environment = ground.warm_up("preview", "--stack", STACK)
    for _ in range(3):  # it learns what `drift` imports
        ground.run(warm_up, environment)
        time.sleep(1)
    warm, cold = [], []
    for _ in range(TIMES):
        warm.append(measure_seconds(lambda: ground.run(warm_up, environment)))
        cold.append(measure_seconds(lambda: ground.run(warm_up, {"LAKEWRIGHT_WARM": "0"})))
    yield Row("drift of the demo's stack, warm", min(warm), WARM_SECONDS, 1.0, note="reference: the goal")
    yield Row("the same beside a cold run", min(warm), min(cold), None, note="reference: without a warm process")


def _drift(project: PulumiProject) -> DriftReport:
    options = DriftOptions(search=UnmanagedSearch.OBJECTS)
    return find_drift(project, select(project, Selection(NAMES)), parallel=PARALLEL, options=options)


def _verify(tenants: GrantedTenants, parallel: int) -> VerifyReport:
    session, subjects = open_session(NAMES[0], tenants.folder)
    return run_probes(session, subjects, parallel=parallel)


@contextmanager
def _as_commands(tenants: GrantedTenants) -> Iterator[PulumiProject]:
    """Yield the project, with the environment of commands."""
    with patch.dict(os.environ, tenants.environment()):
        yield PulumiProject.load(tenants.folder)


@contextmanager
def _delay_responses() -> Iterator[None]:
    send = httpx.Client.send

    def send_delayed(client: httpx.Client, request: httpx.Request, **options: object) -> httpx.Response:
        time.sleep(DELAY)
        return send(client, request, **options)  # pyright: ignore[reportArgumentType]

    with patch.object(httpx.Client, "send", send_delayed):
        yield
