"""Steps of a drift run: apply the rules of `drift.ignore`, and group differences with one cause."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.drift.detection.grouping import group_by_cause
from lakewright.drift.detection.ignore_rules import PlacedRule, apply_rules, read_stack_rules
from lakewright.project_files.stack_files import environment_file, raw_environment

if TYPE_CHECKING:
    from lakewright.drift.detection.steps import DriftRun
    from lakewright.drift.model import DriftReport


def ignore_differences(report: DriftReport, run: DriftRun) -> None:
    """Mark the differences that rules of specs and environments ignore. Invalid rules are problems of their stacks."""
    project = run.session.project
    drifts = {stack.stack: stack for stack in report.stacks}
    rules: dict[str, list[PlacedRule]] = {}
    for stack in run.stacks:
        rules[stack.name], problems = read_stack_rules(
            stack.spec,
            _to_relative_path(project.stack_file(stack.name), project.root),
            raw_environment(project.root, stack.environment) if stack.environment else {},
            _to_relative_path(environment_file(project.root, stack.environment), project.root),
        )
        drifts[stack.name].problems += problems
    report.notes += apply_rules(report, rules, run.session.clock().date()).list_notes()


def group_differences(report: DriftReport, _run: DriftRun) -> None:
    """Group differences that have one cause on several tenants."""
    report.groups = [drift_group.to_json() for drift_group in group_by_cause(report.differences())]


def _to_relative_path(file: Path, root: Path) -> str:
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
