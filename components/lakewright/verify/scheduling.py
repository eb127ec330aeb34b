"""Run independent probes concurrently. Their results keep the order of a run without concurrency."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from lakewright.client_access.check import Attempt, Note
from lakewright.verify.registry import Probe, Results, TenantProbe, Turn

PARALLEL = 16
"""Probes that run concurrently. Each sends one request at a time."""


@dataclass
class ProbeRun:
    """One run of a probe, with one identity and warehouse."""

    probe: Probe
    start: Callable[[], Results]
    expected_errors: tuple[type[Exception], ...]
    """Errors that keep a probe from running. Other errors are defects of this program."""
    results: list[Attempt | Note] = field(default_factory=list[Attempt | Note])
    error: Exception | None = None
    """Why it ended before its last result."""

    def execute(self) -> None:
        """Run the probe and keep its results."""
        try:
            self.results.extend(self.start())
        except self.expected_errors as error:
            self.error = error


def execute_all(runs: Sequence[ProbeRun], parallel: int = PARALLEL) -> None:
    """Execute runs of probes, as many at a time as `parallel`. An error that is not expected ends all of them."""
    first_runs = [run for run in runs if run.probe.turn is Turn.FIRST]
    later_runs = [run for run in runs if run.probe.turn is not Turn.FIRST]
    with ThreadPoolExecutor(parallel, thread_name_prefix="verify") as pool:
        try:
            started = [pool.submit(_execute, [run]) for run in first_runs]
            without_identity = [pool.submit(_execute, lane) for lane in _group_lanes(later_runs, of_tenant=True)]
            _wait(started)
            _wait(
                [
                    *without_identity,
                    *(pool.submit(_execute, lane) for lane in _group_lanes(later_runs, of_tenant=False)),
                ]
            )
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _group_lanes(runs: Iterable[ProbeRun], *, of_tenant: bool) -> list[list[ProbeRun]]:
    """Return runs in groups, each to be executed in sequence. The longest groups come first."""
    lanes: dict[object, list[ProbeRun]] = {}
    for run in runs:
        if isinstance(run.probe, TenantProbe) is of_tenant:
            key = run.probe.name if run.probe.turn is Turn.ONE_BY_ONE else id(run)
            lanes.setdefault(key, []).append(run)
    return sorted(lanes.values(), key=len, reverse=True)


def _execute(lane: Iterable[ProbeRun]) -> None:
    for run in lane:
        run.execute()


def _wait(futures: Iterable[Future[None]]) -> None:
    for future in futures:
        future.result()
