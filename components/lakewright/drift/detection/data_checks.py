"""A step of a drift run: evaluate the `checks` of the tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.data_checks.run import run_checks
from lakewright.data_checks.target_loading import check_targets
from lakewright.drift.model import Difference, DifferenceKind, DriftReport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakewright.data_checks.result import StackChecks
    from lakewright.drift.detection.steps import DriftRun


def evaluate_checks(report: DriftReport, run: DriftRun) -> None:
    """Add failed checks to the report. Tenants without checks cost nothing."""
    targets, unreadable = check_targets(run.session.project, run.stacks)
    if targets or unreadable:
        add_results(report, [*run_checks(targets, parallel=run.session.parallel), *unreadable])


def add_results(report: DriftReport, results: Iterable[StackChecks]) -> None:
    """Add failed checks as differences of kind `check`, and checks that were not evaluated as problems."""
    drifts = {stack.stack: stack for stack in report.stacks}
    for result in results:
        drift = drifts[result.stack]
        drift.differences += [
            Difference(
                tenant=drift.tenant,
                stack=drift.stack,
                urn="",
                type="check",
                resource=check.check,
                property=check.assertion,
                declared=check.expected,
                found=check.finding,
                kind=DifferenceKind.CHECK,
            )
            for check in result.failed
        ]
        drift.problems += [
            f"check {check.check}: {check.expected}: not evaluated: {check.finding}" for check in result.not_evaluated
        ]
        drift.problems += [f"checks: {problem}" for problem in result.problems]
