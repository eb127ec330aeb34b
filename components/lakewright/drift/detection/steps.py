"""Searches that run in parallel with the scanners, and steps that run after them in order.

A search returns findings. A step takes the report and the run, and changes the report in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from lakewright.drift.model import ScanProblem, UnmanagedSearch

if TYPE_CHECKING:
    from lakewright.drift.model import DriftReport, Finding
    from lakewright.drift.session import ScanSession, StackResource
    from lakewright.fleet.selection import SelectedStack


@dataclass(frozen=True)
class DriftOptions:
    """Choices of the user."""

    search: UnmanagedSearch = UnmanagedSearch.NONE
    """The objects outside all stacks that are differences. A refresh finds none."""


@dataclass
class DriftRun:
    """The run that a report is about."""

    session: ScanSession
    stacks: list[SelectedStack]
    options: DriftOptions
    resources: list[StackResource] = field(default_factory=list["StackResource"])
    """The resources that were compared."""


Search = Callable[[DriftRun], Iterable["Finding"]]
Step = Callable[["DriftReport", DriftRun], None]

SEARCHES: tuple[str, ...] = (
    "lakewright.discovery.unmanaged.detection:find_unmanaged",
    "lakewright.discovery.unmanaged.role_policies:find_unmanaged_policies",
    "lakewright.discovery.unmanaged.cluster_objects:find_unmanaged_objects",
)
"""`module:function` of each search for unmanaged objects."""

STEPS: tuple[str, ...] = (
    "lakewright.drift.detection.actors:name_actors",
    "lakewright.drift.detection.data_checks:evaluate_checks",
    "lakewright.drift.detection.rule_steps:ignore_differences",
    "lakewright.drift.detection.rule_steps:group_differences",
    "lakewright.restrictions.drift_notes:note_restrictions",
)
"""`module:function` of each step."""


def run_search(run: DriftRun, function_path: str) -> list[Finding]:
    """Return the findings of a search. A search that fails is a problem of every stack."""
    module, _, name = function_path.partition(":")
    try:
        search: Search = getattr(import_module(module), name)
        return [*search(run)]
    except Exception as error:  # noqa: BLE001 - the findings of scanners and other searches must not be lost
        text = f"{name.replace('_', ' ')} failed: {type(error).__name__}: {error}"
        return [ScanProblem(stack.name, text) for stack in run.stacks]


def run_steps(report: DriftReport, run: DriftRun, steps: tuple[str, ...] = STEPS) -> None:
    """Run all steps. A step that fails is a problem of every stack."""
    for function_path in steps:
        module, _, name = function_path.partition(":")
        try:
            step: Step = getattr(import_module(module), name)
            step(report, run)
        except Exception as error:  # noqa: BLE001 - the findings of the scanners must not be lost
            for stack in report.stacks:
                stack.problems.append(f"{name.replace('_', ' ')} failed: {type(error).__name__}: {error}")
