"""Run a command on the selected stacks, and print its report: what all commands of `lakewright fleet` share."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.options import load_project
from lakewright.fleet.schedule import Bounds, OnError, default_parallel_stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.progress import LineProgress
    from lakewright.fleet.results import FleetReport
    from lakewright.fleet.run_folder import RunFolder
    from lakewright.fleet.runner import FleetRunner
    from lakewright.fleet.selection import SelectedStack, Selection
    from lakewright.fleet.waves import Wave

Details = Annotated[bool, typer.Option("--details", help="Also print the changed resources of each stack.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the last run: stacks that are done and have not changed are not run.")
]
ByEnvironment = Annotated[
    int,
    typer.Option(
        "--parallel-per-environment", min=1, help="Number of stacks of one environment, which share its servers."
    ),
]
OnErrorOption = Annotated[
    OnError, typer.Option("--on-error", help="After an error, start no other stack, or continue with other stacks.")
]
ContinueOnError = Annotated[
    bool,
    typer.Option(
        "--continue-on-error/--stop-on-error", help="After an error, continue with other stacks, or start none."
    ),
]
SavePlans = Annotated[
    Path | None,
    typer.Option("--save-plans", metavar="FOLDER", help="Keep the plan of each stack as FOLDER/STACK.plan.json."),
]
Plans = Annotated[
    Path | None,
    typer.Option(
        "--plans",
        metavar="FOLDER",
        help="Do exactly the steps of the kept plans FOLDER/STACK.plan.json, without asking.",
    ),
]
Create = Annotated[
    bool, typer.Option("--create", help="Create the stacks that have a file in the project, but do not exist yet.")
]
Waves = Annotated[
    str | None,
    typer.Option(
        "--waves",
        metavar="WAVE,...",
        help="Update one wave after another, such as `canary,10%,rest`: stacks with a label, numbers or percentages. "
        "Before the next wave, `lakewright drift` must find nothing.",
    ),
]
DEFAULT_STEPS = 8
"""Concurrent steps of one stack: several stacks run at the same time."""
DEFAULT_BY_ENVIRONMENT = 8
PLAN_SUFFIX = ".plan.json"


@dataclass(frozen=True)
class FleetOptions:
    """The options that all commands on many stacks share."""

    directory: Path
    selection: Selection
    bounds: Bounds
    on_error: OnError
    resume: bool
    as_json: bool
    details: bool = False
    save_plans: Path | None = None
    """Absolute path of the folder for new plans."""
    plans: Path | None = None
    """Absolute path of the folder with the plans to follow."""
    create: bool = False
    """Whether stacks are created that the backend does not have."""
    waves: str | None = None
    """The waves of `--waves`; None updates all stacks together."""


def make_bounds(stacks: int | None, by_environment: int) -> Bounds:
    """Return the bounds of the options `--parallel-stacks` and `--parallel-per-environment`."""
    return Bounds(stacks or default_parallel_stacks(), by_environment)


def run_fleet(options: FleetOptions, name: str, arguments: tuple[str, ...]) -> FleetReport:
    """Run a command on the selected stacks.

    Args:
        options: The options.
        name: Name of the fleet's command.
        arguments: The command of each stack.
    """
    from lakewright.fleet.absent_stacks import (  # noqa: PLC0415 - `--help` needs none of it
        create_stacks,
        find_absent_stacks,
        report_not_deployed,
    )
    from lakewright.fleet.progress import choose_progress  # noqa: PLC0415
    from lakewright.fleet.results import FleetReport  # noqa: PLC0415
    from lakewright.fleet.runner import FleetCommand, FleetRunner  # noqa: PLC0415
    from lakewright.fleet.shared_process import share_process  # noqa: PLC0415
    from lakewright.fleet.waves import split_into_waves  # noqa: PLC0415

    project = load_project(options.directory)
    selected = _stacks(project, options)
    absent = () if options.create else find_absent_stacks(project, selected)
    not_deployed = report_not_deployed(absent)
    stacks = [stack for stack in selected if stack not in absent]
    if not stacks:
        return FleetReport(name, not_deployed, 0.0)
    waves = split_into_waves(options.waves, stacks) if options.waves else None
    folder = _folder(project, options, name, arguments, selected)
    stacks = [stack for stack in stacks if stack.name in folder.entries]
    command = FleetCommand(name, arguments, lambda stack: _plan_words(options, stack))
    with share_process(len(stacks)) as environ, choose_progress(f"fleet {name}", len(stacks)) as progress:
        runner = FleetRunner(
            project, command, folder, progress, bounds=options.bounds, on_error=options.on_error, environ=environ
        )
        try:
            if options.create:
                runner.note_failures(create_stacks(project, find_absent_stacks(project, stacks)))
            report = runner.run(stacks) if waves is None else _run_waves(project, runner, progress, waves, stacks)
        finally:
            folder.close()
    return replace(report, results=sorted([*report.results, *not_deployed], key=lambda result: result.stack.name))


def _run_waves(
    project: PulumiProject,
    runner: FleetRunner,
    progress: LineProgress,
    waves: Sequence[Wave],
    stacks: Sequence[SelectedStack],
) -> FleetReport:
    """Run the waves. A resumed run may have fewer stacks than its waves."""
    from lakewright.cli.commands.fleet.wave_checks import find_faults  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.fleet.waves import Wave, run_in_waves  # noqa: PLC0415

    names = {stack.name for stack in stacks}
    present_waves = [Wave(wave.name, tuple(stack for stack in wave.stacks if stack.name in names)) for wave in waves]
    return run_in_waves(
        runner,
        [wave for wave in present_waves if wave.stacks],
        lambda wave_stacks: find_faults(project, wave_stacks),
        progress.show_note,
    )


def print_report(options: FleetOptions, report: FleetReport) -> None:
    """Print the report."""
    from lakewright.fleet.progress import format_details, format_summary  # noqa: PLC0415

    if options.as_json:
        print(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
        return
    logs = [result.log for result in report.results if result.log]
    folder = os.path.relpath(Path(logs[0]).parent) if logs else "none"
    _print_failed_checks(report)
    print("\n".join([*(format_details(report) if options.details else []), *format_summary(report, folder)]))


def _print_failed_checks(report: FleetReport) -> None:
    """Print the checks of `verify` that do not hold, by stack."""
    from lakewright.client_access.check import read_failed_checks, to_check_line  # noqa: PLC0415
    from lakewright.terminal.console import open_console  # noqa: PLC0415
    from lakewright.terminal.text_lines import print_check_lines  # noqa: PLC0415

    console = open_console(highlight=False, markup=False)
    for result in report.results:
        if lines := [to_check_line(check) for check in read_failed_checks(result.document)]:
            console.print(f"{result.stack.name}:")
            print_check_lines(console, lines)
            console.print()


def end(options: FleetOptions, report: FleetReport) -> None:
    """Print the report, and end with its exit code."""
    print_report(options, report)
    raise typer.Exit(report.exit_code)


def _folder(
    project: PulumiProject,
    options: FleetOptions,
    name: str,
    arguments: tuple[str, ...],
    stacks: Sequence[SelectedStack],
) -> RunFolder:
    """Return the folder of a new run, or of the run to resume."""
    from lakewright.fleet.run_folder import JournalEntry, RunFolder  # noqa: PLC0415
    from lakewright.fleet.selection import ResumeError  # noqa: PLC0415

    plans = {"--save-plans": options.save_plans, "--plans": options.plans, "--waves": options.waves}
    arguments += tuple(word for option, path in plans.items() if path for word in (option, str(path)))
    if not options.resume:
        return RunFolder.create(project.root, name, arguments, [stack.name for stack in stacks])
    folder = RunFolder.resume(project.root, name, arguments)
    foreign = [stack.name for stack in stacks if stack.name not in folder.entries]
    if len(foreign) == len(stacks):
        folder.close()
        raise ResumeError(
            f"--resume: the run in {folder.path} has none of the selected stacks, only {', '.join(folder.entries)};"
            " start a new run without --resume"
        )
    if foreign:
        print(f"warning: left out, as the resumed run has none of them: {', '.join(foreign)}", file=sys.stderr)
    for stack in folder.entries:
        if options.save_plans and not _plan_file(options.save_plans, stack).is_file():
            folder.entries[stack] = JournalEntry()
    return folder


def _stacks(project: PulumiProject, options: FleetOptions) -> Sequence[SelectedStack]:
    """Return the selected stacks. With plans and without a filter, these are the stacks that have a plan."""
    from lakewright.fleet.selection import SelectionError, select  # noqa: PLC0415

    if options.save_plans:
        options.save_plans.mkdir(parents=True, exist_ok=True)
    if options.plans is None:
        return select(project, options.selection)
    planned = [file.name.removesuffix(PLAN_SUFFIX) for file in sorted(options.plans.glob(f"*{PLAN_SUFFIX}"))]
    if not planned:
        raise SelectionError(
            f"--plans: {options.plans} has no STACK{PLAN_SUFFIX}; `lakewright fleet preview --save-plans FOLDER`"
            " writes them"
        )
    selection = options.selection
    stacks = select(project, selection if selection.is_filter else replace(selection, patterns=tuple(planned)))
    if absent := [stack.name for stack in stacks if stack.name not in planned]:
        raise SelectionError(f"--plans: {options.plans} has no plan of {', '.join(absent)}")
    return stacks


def _plan_words(options: FleetOptions, stack: str) -> tuple[str, ...]:
    if options.save_plans:
        return "--save-plan", str(_plan_file(options.save_plans, stack))
    return ("--plan", str(_plan_file(options.plans, stack))) if options.plans else ()


def _plan_file(folder: Path, stack: str) -> Path:
    return folder / f"{stack}{PLAN_SUFFIX}"
