"""Actions of `lakewright drift`: `--accept` writes drift into specs, `--heal` reverts it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from lakewright.cli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakewright_engine.project.project import PulumiProject
    from lakewright_engine.project.stack_config import StackConfig

    from lakewright.drift.acceptance.accept import Acceptance
    from lakewright.drift.model import DriftReport
    from lakewright.drift.rules.healing import StackHealing
    from lakewright.fleet.results import FleetReport
    from lakewright.fleet.selection import SelectedStack


CONCURRENT_STACKS = 8
"""Stacks of one environment that are healed at the same time."""


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
    from lakewright.drift.rules.healing import named  # noqa: PLC0415

    planned: list[tuple[str, StackConfig, Acceptance]] = []
    for stack in report.stacks:
        if stack.differences:
            settings = project.stack_config(stack.stack)
            source = os.path.relpath(project.stack_file(stack.stack))
            planned.append((stack.stack, settings, accept(stack.differences, settings.text, source)))
    for stack, _, acceptance in planned:
        for difference, reason in acceptance.refused:
            _say(f"{stack}: not accepted: {named(difference)}: {reason}")
        if acceptance.accepted:
            _say(acceptance.diff().rstrip("\n"))
    changed = [entry for entry in planned if entry[2].text != entry[2].before]
    if changed and not yes:
        typer.confirm(f"Write {len(changed)} stack file(s)?", abort=True, err=True)
    for stack, settings, acceptance in changed:
        _write(project, stack, settings, acceptance)
    if changed:
        names = ", ".join(stack for stack, _, _ in changed)
        _say(
            f"written: {names}. The states still have the earlier values: `lakewright up --refresh` reads the accepted"
            " ones into them, and changes no object for them."
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
    return Outcome(document, 1 if has_problems else 7 if has_refused else 0)


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
    """Run `up --refresh` for the stacks with differences, after a confirmation, and look again.

    Args:
        project: The project.
        report: What was found.
        selected: The stacks of the report.
        find: Finds the drift of stacks again.
        yes: Whether to go ahead without asking.
    """
    from lakewright.drift.rules.healing import healings_of, kept_to_json, named, remaining  # noqa: PLC0415

    healings = healings_of(report)
    for healing in healings:
        for difference in healing.reverted:
            _say(f"{healing.stack}: will be reverted: {named(difference)}")
    kept = [(stack.stack, entry) for stack, entry in _kept(report)]
    for stack, (difference, reason) in kept:
        _say(f"{stack}: stays: {named(difference)}: {reason}")
    has_problems = any(stack.problems for stack in report.stacks)
    if not healings:
        _say("nothing to heal")
        return Outcome({"healed": []}, report.exit_code)
    if not yes:
        typer.confirm(f"Run `up --refresh` for {len(healings)} stack(s)?", abort=True, err=True)
    chosen = [stack for stack in selected if any(healing.stack == stack.name for healing in healings)]
    ran = _run(project, chosen, healings)
    after = {stack.stack: stack for stack in find(chosen).stacks}
    has_failed = any(result.exit != 0 for result in ran.results)
    for result in ran.results:
        if result.error:
            _say(f"{result.stack.name}: not healed: {result.error} (whole output: {result.log})")
    documents: list[dict[str, Any]] = []
    left = 0
    for healing in healings:
        now = after[healing.stack]
        still = remaining(healing, now.differences)
        left += len(still)
        has_problems = has_problems or bool(now.problems)
        count = len(healing.reverted) - len(still)
        _say(f"{healing.stack}: {count} of {len(healing.reverted)} differences healed")
        documents.append(
            {
                "stack": healing.stack,
                "healed": [found.to_json() for found in healing.reverted if found not in still],
                "remaining": [found.to_json() for found in still],
                "kept": kept_to_json(healing.kept),
                "excluded": list(healing.excluded),
            }
        )
    is_left = left or any(not difference.ignored for _, (difference, _) in kept)
    code = 1 if has_failed or ran.is_interrupted or has_problems else 7 if is_left else 0
    return Outcome({"healed": documents}, code)


def _kept(report: DriftReport) -> list[tuple[Any, Any]]:
    from lakewright.drift.rules.healing import healing_of  # noqa: PLC0415

    return [(stack, entry) for stack in report.stacks for entry in healing_of(stack).kept]


def _run(project: PulumiProject, stacks: Sequence[SelectedStack], healings: Sequence[StackHealing]) -> FleetReport:
    """Run `up --refresh` for each stack in parallel, without the resources that have ignored differences."""
    from lakewright.fleet.progress import choose_progress  # noqa: PLC0415
    from lakewright.fleet.run_folder import RunFolder  # noqa: PLC0415
    from lakewright.fleet.runner import FleetCommand, FleetRunner  # noqa: PLC0415
    from lakewright.fleet.schedule import Bounds, OnError, default_parallel_stacks  # noqa: PLC0415
    from lakewright.fleet.shared_process import shared_environment  # noqa: PLC0415

    words = ("up", "--refresh", "--yes")
    options = {healing.stack: healing.options for healing in healings}
    command = FleetCommand("heal", words, lambda stack: options[stack])
    folder = RunFolder.create(project.root, "heal", words, [stack.name for stack in stacks])
    bounds = Bounds(default_parallel_stacks(), CONCURRENT_STACKS)
    with shared_environment(len(stacks)) as environ, choose_progress("drift --heal", len(stacks)) as progress:
        runner = FleetRunner(
            project, command, folder, progress, bounds=bounds, on_error=OnError.CONTINUE, environ=environ
        )
        try:
            return runner.run(stacks)
        finally:
            folder.close()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
