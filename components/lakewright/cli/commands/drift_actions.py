"""Actions of `lakewright drift`: `--accept` writes drift into specs, `--heal` reverts it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from lakewright.cli.errors import UsageError
from lakewright.drift.model import EXIT_DRIFT, EXIT_PROBLEM
from lakewright.terminal.escaping import escape_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakewright_engine.project.project import PulumiProject
    from lakewright_engine.project.stack_config import StackConfig

    from lakewright.drift.acceptance.accept import Acceptance
    from lakewright.drift.healing.healing_run import HealingPlans
    from lakewright.drift.healing.stack_healing import StackHealing
    from lakewright.drift.model import Difference, DriftReport, StackDrift
    from lakewright.fleet.selection import SelectedStack


@dataclass(frozen=True)
class Outcome:
    """The actions that were done, and the exit code."""

    document: dict[str, Any]
    """Additional keys of the JSON document."""
    exit_code: int


def require_confirmation(option: str, *, yes: bool, as_json: bool) -> None:
    """Refuse an action that no user can confirm.

    Raises:
        UsageError: There is no `--yes` and no terminal.
    """
    if not yes and (as_json or not sys.stdin.isatty()):
        raise UsageError(f"drift {option} needs --yes without a terminal, or with --json")


def accept_drift(project: PulumiProject, report: DriftReport, *, yes: bool) -> Outcome:
    """Write what was found into the stack files, after a confirmation."""
    from lakewright.drift.acceptance.accept import accept  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.drift.healing.stack_healing import format_difference  # noqa: PLC0415
    from lakewright.project_files.shared_values import FOLDER  # noqa: PLC0415

    defaults = project.root / FOLDER
    planned: list[tuple[str, StackConfig, Acceptance]] = []
    for stack in report.stacks:
        if stack.differences:
            settings = project.stack_config(stack.stack)
            source = os.path.relpath(project.stack_file(stack.stack))
            planned.append((stack.stack, settings, accept(stack.differences, settings.text, source, defaults)))
    for stack, _, acceptance in planned:
        for difference, reason in acceptance.refused:
            _say(f"{stack}: not accepted: {format_difference(difference)}: {reason}")
        if acceptance.accepted:
            print(acceptance.diff().rstrip("\n"), file=sys.stderr, flush=True)
    changed = [entry for entry in planned if entry[2].text != entry[2].before]
    if changed and not yes:
        typer.confirm(f"Write {len(changed)} stack file(s)?", abort=True, err=True)
    for stack, settings, acceptance in changed:
        _write(project, stack, settings, acceptance)
    if changed:
        names = ", ".join(stack for stack, _, _ in changed)
        _say(
            f"written: {names}. The states still have the earlier values: `lakewright up --refresh` reads the"
            " accepted values into them, and changes no object for them."
        )
    elif not any(acceptance.accepted for _, _, acceptance in planned):
        _say("nothing to accept")
    document = {
        "accepted": [
            {
                "stack": stack,
                "file": acceptance.source,
                "diff": acceptance.diff(),
                "accepted": [difference.to_json() for difference in acceptance.accepted],
                "refused": [{**difference.to_json(), "reason": reason} for difference, reason in acceptance.refused],
            }
            for stack, _, acceptance in planned
        ]
    }
    has_refused = any(acceptance.refused for _, _, acceptance in planned)
    has_problems = any(stack.problems for stack in report.stacks)
    return Outcome(document, EXIT_PROBLEM if has_problems else EXIT_DRIFT if has_refused else 0)


def _write(project: PulumiProject, stack: str, settings: StackConfig, acceptance: Acceptance) -> None:
    """Replace a stack file, unless it was changed since it was read."""
    from lakewright_engine.model.errors import ProjectError  # noqa: PLC0415

    if project.stack_config(stack).text != acceptance.before:
        raise ProjectError(f"{acceptance.source} was changed meanwhile and is not written; run the command again")
    settings.text = acceptance.text
    settings.save()


def heal_drift(
    project: PulumiProject,
    report: DriftReport,
    selected: Sequence[SelectedStack],
    find: Callable[[Sequence[SelectedStack]], DriftReport],
    *,
    yes: bool,
) -> Outcome:
    """Revert drift by plans that are limited to the drifted resources, after a confirmation, and look again.

    Args:
        project: The project.
        report: The findings.
        selected: The stacks of the report.
        find: Finds the drift of stacks again.
        yes: Whether to go ahead without asking.
    """
    from lakewright.drift.healing.healing_run import HealingRun  # noqa: PLC0415

    run = HealingRun(project, selected)
    plans = run.plan(report)
    _say_plans(plans)
    if not plans.steps:
        _say("nothing to heal")
        documents = [_heal_document(healing, []) for healing in plans.healings]
        is_incomplete = bool(plans.failed) or plans.is_interrupted
        return Outcome({"healed": documents}, EXIT_PROBLEM if is_incomplete else report.exit_code)
    if not yes:
        count = sum(len(steps) for steps in plans.steps.values())
        typer.confirm(f"Make {count} change(s) in {len(plans.steps)} stack(s)?", abort=True, err=True)
    ran = run.apply(plans)
    for result in ran.remaining:
        _say(f"{result.stack.name}: its update failed: {result.error} (whole output: {result.log})")
    after = {stack.stack: stack for stack in find([stack for stack in selected if stack.name in plans.steps]).stacks}
    documents = [_heal_result(healing, after.get(healing.stack)) for healing in plans.healings]
    # Stacks that were not healed are as the first look found them.
    stacks = [after.get(stack.stack, stack) for stack in report.stacks]
    has_failed = bool(plans.failed or ran.remaining) or plans.is_interrupted or ran.is_interrupted
    if has_failed or any(stack.problems for stack in stacks):
        return Outcome({"healed": documents}, EXIT_PROBLEM)
    return Outcome({"healed": documents}, EXIT_DRIFT if any(stack.drift for stack in stacks) else 0)


def _say_plans(plans: HealingPlans) -> None:
    """Print what will be reverted, and everything that remains."""
    from lakewright.drift.healing.stack_healing import format_difference  # noqa: PLC0415

    for result in plans.failed:
        _say(f"{result.stack.name}: no plan: {result.error} (whole output: {result.log})")
    for healing in plans.healings:
        drifted = {difference.urn for difference in healing.reverted}
        for difference in healing.reverted:
            _say(f"{healing.stack}: will be reverted: {format_difference(difference)}")
        for step in plans.steps.get(healing.stack, ()):
            if step.urn not in drifted:
                _say(f"{healing.stack}: follows from it: {step.describe()}")
        for difference, reason in healing.unreverted:
            _say(f"{healing.stack}: not reverted: {format_difference(difference)}: {reason}")
        for step in healing.excluded_steps:
            _say(f"{healing.stack}: not part of this: {step.describe()}; `lakewright up` makes this change")


def _heal_result(healing: StackHealing, after: StackDrift | None) -> dict[str, Any]:
    """Print how many differences of a stack are reverted, and why differences could not be checked; return JSON."""
    from lakewright.drift.healing.stack_healing import find_remaining  # noqa: PLC0415

    if after is None:
        return _heal_document(healing, [])
    remaining = find_remaining(healing, after.differences)
    remaining_text = f"; {len(after.drift)} left" if after.drift else ""
    total = len(healing.reverted)
    _say(f"{healing.stack}: {total - len(remaining)} of {total} differences healed{remaining_text}")
    for problem in after.problems:
        _say(f"{healing.stack}: not checked: {problem}")
    return _heal_document(healing, remaining)


def _heal_document(healing: StackHealing, remaining: list[Difference]) -> dict[str, Any]:
    from lakewright.drift.healing.stack_healing import to_unreverted_json  # noqa: PLC0415

    return {
        "stack": healing.stack,
        "healed": [difference.to_json() for difference in healing.reverted if difference not in remaining],
        "remaining": [difference.to_json() for difference in remaining],
        "kept": to_unreverted_json(healing.unreverted),
        "excluded": list(healing.excluded),
        "left_changes": [step.to_json() for step in healing.excluded_steps],
    }


def _say(text: str) -> None:
    """Print one line, whatever the names in it contain."""
    print(escape_line(text), file=sys.stderr, flush=True)
