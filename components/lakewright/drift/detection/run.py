"""Find the drift of many stacks: read the states, scan the servers, and apply the rules."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from lakewright_engine.model.errors import EngineError
from lakewright_engine.model.urns import is_default_provider

from lakewright.drift.detection.steps import SEARCHES, DriftOptions, DriftRun, run_search, run_steps
from lakewright.drift.model import Difference, DriftReport, Finding, ScanProblem, StackDrift, UnmanagedSearch
from lakewright.drift.scanners.registry import find_scanner, load_scanner
from lakewright.drift.session import DEFAULT_PARALLEL, ScanSession, StackResource
from lakewright.fleet.states import StackState, StateReader, state_reader
from lakewright.terminal.text_lines import plural
from lakewright.validation.moment import Clock, read_clock

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack

Progress = Callable[[str], object]


def _ignore_progress(_text: str) -> None:
    return None


@dataclass
class _Fleet:
    """The stacks of a run, and their resources by scanner."""

    drifts: dict[str, StackDrift] = field(default_factory=dict[str, StackDrift])
    by_scanner: dict[str, list[StackResource]] = field(default_factory=dict[str, list[StackResource]])

    def add(self, stack: SelectedStack, state: StackState | EngineError) -> None:
        drift = StackDrift(stack.name, stack.tenant or stack.name, stack.environment)
        self.drifts[stack.name] = drift
        if isinstance(state, EngineError):
            drift.problems.append(str(state))
            return
        drift.locked = state.locked
        drift.total_resources = sum(not is_default_provider(resource.urn) for resource in state.resources)
        providers = {f"{resource.urn}::{resource.id}": resource for resource in state.resources}
        parents = {resource.urn: resource for resource in state.resources}
        unknown: dict[str, int] = defaultdict(int)
        for resource in state.resources:
            if not _is_compared(resource):
                continue
            scanner = find_scanner(resource.type)
            if scanner is None:
                unknown[resource.type] += 1
                continue
            drift.resources += 1
            self.by_scanner.setdefault(scanner, []).append(
                StackResource(
                    stack.name,
                    drift.tenant,
                    drift.environment,
                    resource,
                    providers.get(resource.provider),
                    state.updated,
                    parents.get(resource.parent),
                )
            )
        if unknown:
            types = ", ".join(f"{count} of {kind}" for kind, count in sorted(unknown.items()))
            drift.problems.append(f"resources cannot be checked (use `lakewright preview --refresh`): {types}")

    def take(self, finding: Finding) -> None:
        """Add a finding to its stack. A problem of several resources is added once."""
        drift = self.drifts[finding.stack]
        if isinstance(finding, Difference):
            drift.differences.append(finding)
        elif finding.message not in drift.problems:
            drift.problems.append(finding.message)


def find_drift(
    project: PulumiProject,
    selected: Sequence[SelectedStack],
    *,
    parallel: int = DEFAULT_PARALLEL,
    progress: Progress = _ignore_progress,
    reader: StateReader | None = None,
    options: DriftOptions | None = None,
    clock: Clock = read_clock,
) -> DriftReport:
    """Return the differences between the states of stacks and the servers. Nothing is changed.

    Args:
        project: The project of the stacks.
        selected: The stacks.
        parallel: Number of concurrent requests.
        progress: Called with a line about each part of the work.
        reader: Reads the states; the reader of the project's backend if omitted.
        options: Choices of the user; the defaults if omitted.
        clock: Time with which ends of shares and rules are compared.
    """
    began = time.monotonic()
    session = ScanSession(project, parallel, clock)
    fleet = _Fleet()
    states = reader or state_reader(project)
    progress(f"reading the states of {plural(len(selected), 'stack')}")
    for stack, state in zip(
        selected, session.map(lambda stack: _read_state(states, stack.name), selected), strict=True
    ):
        fleet.add(stack, state)
    count = sum(drift.resources for drift in fleet.drifts.values())
    progress(f"comparing {plural(count, 'resource')} of {plural(len(selected), 'stack')}")
    resources = [resource for stack_resources in fleet.by_scanner.values() for resource in stack_resources]
    run = DriftRun(session, list(selected), options or DriftOptions(), resources)
    if resources:
        scans: list[Callable[[], list[Finding]]] = [
            partial(_scan, session, scanner, stack_resources) for scanner, stack_resources in fleet.by_scanner.items()
        ]
        if run.options.search is not UnmanagedSearch.NONE:
            scans += [partial(run_search, run, function_path) for function_path in SEARCHES]
        _import_modules([*fleet.by_scanner, *SEARCHES])
        with ThreadPoolExecutor(max_workers=len(scans), thread_name_prefix="scanner") as pool:
            for future in [pool.submit(scan) for scan in scans]:
                for finding in future.result():
                    fleet.take(finding)
    report = DriftReport(list(fleet.drifts.values()))
    run_steps(report, run)
    session.close()
    report.seconds = time.monotonic() - began
    return report


def _import_modules(paths: Iterable[str]) -> None:
    """Import the modules of scanners and searches in sequence.

    Threads that import modules with circular imports at the same time, such as Pulumi's, may get unfinished modules.
    """
    for path in paths:
        with suppress(Exception):  # the scan or search reports it
            import_module(path.partition(":")[0])


def _is_compared(resource: ResourceState) -> bool:
    """Return whether a refresh reads the object of a resource."""
    is_own = resource.custom and not resource.type.startswith("pulumi:")
    return is_own and not resource.delete and not resource.pending_replacement


def _read_state(states: StateReader, stack: str) -> StackState | EngineError:
    try:
        return states.read(stack)
    except EngineError as error:
        return error


def _scan(session: ScanSession, scanner: str, resources: list[StackResource]) -> list[Finding]:
    """Return the findings of a scanner. If it fails as a whole, its stacks could not be checked."""
    findings: list[Finding] = []
    try:
        findings.extend(load_scanner(scanner).scan(resources, session))
    except Exception as error:  # noqa: BLE001 - the other scanners' findings must not be lost
        return [*findings, *_report_failure(resources, error)]
    return findings


def _report_failure(resources: Iterable[StackResource], error: Exception) -> list[Finding]:
    text = f"the scan failed: {type(error).__name__}: {error}"
    return [ScanProblem(stack, text) for stack in dict.fromkeys(resource.stack for resource in resources)]
