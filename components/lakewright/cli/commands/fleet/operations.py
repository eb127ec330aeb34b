"""`lakewright fleet preview`, `up`, `refresh` and `verify`: one command on many stacks."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.errors import UsageError
from lakewright.cli.options import (
    HERE,
    Concurrency,
    Directory,
    EngineName,
    Everything,
    Labels,
    Names,
    load_project,
    selection_of,
)
from lakewright.fleet.schedule import Bounds, OnError, default_parallel_stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.results import FleetReport
    from lakewright.fleet.selection import SelectedStack, Selection

Engine = Annotated[EngineName, typer.Option("--engine", help="Engine that runs the operations.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Details = Annotated[bool, typer.Option("--details", help="Also print the changed resources of each stack.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the last run: stacks that are done and have not changed are not run.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Refresh = Annotated[bool, typer.Option("--refresh", "-r", help="Read every object first.")]
Parallel = Annotated[int, typer.Option("--parallel", "-p", min=1, help="Number of concurrent steps of each stack.")]
ByEnvironment = Annotated[
    int,
    typer.Option(
        "--parallel-per-environment", min=1, help="Number of stacks of one environment, which share its servers."
    ),
]
ExpectNoChanges = Annotated[bool, typer.Option("--expect-no-changes", help="Exit with 7 if anything would change.")]
OnErrorOption = Annotated[
    OnError, typer.Option("--on-error", help="After an error, start no other stack, or go on with them.")
]
ContinueOnError = Annotated[
    bool,
    typer.Option("--continue-on-error/--stop-on-error", help="After an error, go on with other stacks, or start none."),
]

DEFAULT_STEPS = 8
DEFAULT_BY_ENVIRONMENT = 8


@dataclass(frozen=True)
class FleetOptions:
    """The options that all commands on many stacks share."""

    directory: Path
    selection: Selection
    bounds: Bounds
    on_error: OnError
    resume: bool
    as_json: bool
    details: bool


def preview(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    engine: Engine = EngineName.AUTO,
    refresh: Refresh = False,
    expect_no_changes: ExpectNoChanges = False,
    parallel_stacks: Concurrency = None,
    parallel_per_environment: ByEnvironment = DEFAULT_BY_ENVIRONMENT,
    parallel: Parallel = DEFAULT_STEPS,
    continue_on_error: ContinueOnError = True,
    resume: Resume = False,
    details: Details = False,
    as_json: AsJson = False,
    directory: Directory = HERE,
) -> None:
    """Show what an update of each stack would change.

    Example: lakewright fleet preview --stack 'team-*' --details
    """
    options = FleetOptions(
        directory,
        selection_of(stack, label, everything=everything),
        _bounds(parallel_stacks, parallel_per_environment),
        OnError.CONTINUE if continue_on_error else OnError.STOP,
        resume,
        as_json,
        details,
    )
    words = ("preview", *_engine_words(engine, parallel))
    words += ("--refresh",) * refresh + ("--expect-no-changes",) * expect_no_changes
    _report(options, _run(options, "preview", words))


def up(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    engine: Engine = EngineName.AUTO,
    refresh: Refresh = False,
    yes: Yes = False,
    parallel_stacks: Concurrency = None,
    parallel_per_environment: ByEnvironment = DEFAULT_BY_ENVIRONMENT,
    parallel: Parallel = DEFAULT_STEPS,
    on_error: OnErrorOption = OnError.STOP,
    resume: Resume = False,
    details: Details = False,
    as_json: AsJson = False,
    directory: Directory = HERE,
) -> None:
    """Create or update the resources of each stack. Without --yes, show all changes and ask once.

    Example: lakewright fleet up --label cost-center=4711 --on-error continue
    """
    options = FleetOptions(
        directory,
        selection_of(stack, label, everything=everything),
        _bounds(parallel_stacks, parallel_per_environment),
        on_error,
        resume,
        as_json,
        details,
    )
    words = (*_engine_words(engine, parallel), *("--refresh",) * refresh)
    _change(options, "up", "update", words, ("preview", *words), yes=yes)


def refresh(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    engine: Engine = EngineName.AUTO,
    yes: Yes = False,
    parallel_stacks: Concurrency = None,
    parallel_per_environment: ByEnvironment = DEFAULT_BY_ENVIRONMENT,
    parallel: Parallel = DEFAULT_STEPS,
    on_error: OnErrorOption = OnError.STOP,
    resume: Resume = False,
    details: Details = False,
    as_json: AsJson = False,
    directory: Directory = HERE,
) -> None:
    """Read every object of each stack, and update the states. Without --yes, show all changes and ask once.

    Example: lakewright fleet refresh --stack 'team-*' --yes --parallel-stacks 8
    """
    options = FleetOptions(
        directory,
        selection_of(stack, label, everything=everything),
        _bounds(parallel_stacks, parallel_per_environment),
        on_error,
        resume,
        as_json,
        details,
    )
    words = _engine_words(engine, parallel)
    _change(options, "refresh", "refresh", words, ("refresh", "--preview-only", *words), yes=yes)


def verify(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    parallel_stacks: Concurrency = None,
    parallel_per_environment: ByEnvironment = DEFAULT_BY_ENVIRONMENT,
    continue_on_error: ContinueOnError = True,
    resume: Resume = False,
    as_json: AsJson = False,
    directory: Directory = HERE,
) -> None:
    """Prove the isolation of each tenant with the identity of its computing units; see `lakewright verify`.

    Example: lakewright fleet verify --label tier=gold --json
    """
    options = FleetOptions(
        directory,
        selection_of(stack, label, everything=everything),
        _bounds(parallel_stacks, parallel_per_environment),
        OnError.CONTINUE if continue_on_error else OnError.STOP,
        resume,
        as_json,
        details=False,
    )
    _report(options, _run(options, "verify", ("verify",)))


def _change(
    options: FleetOptions, verb: str, noun: str, words: tuple[str, ...], trial: tuple[str, ...], *, yes: bool
) -> None:
    """Run an operation that changes objects or states, after a confirmation of all changes."""
    if not yes:
        if options.as_json or not sys.stdin.isatty():
            raise UsageError(f"fleet {verb} needs --yes without a terminal, or with --json")
        planned = _run(replace(options, resume=False), "preview", trial)
        print("\n".join(_lines(options, planned)))
        if planned.is_interrupted or (planned.remaining and options.on_error is OnError.STOP):
            raise typer.Exit(planned.exit_code)
        typer.confirm(f"Do you want to perform this {noun} of {len(planned.results)} stacks?", abort=True, err=True)
    _report(options, _run(options, verb, (verb, "--yes", *words)))


def _run(options: FleetOptions, name: str, words: tuple[str, ...]) -> FleetReport:
    """Run a command on the selected stacks."""
    from lakewright.fleet.progress import choose_progress  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.fleet.run_folder import RunFolder  # noqa: PLC0415
    from lakewright.fleet.runner import FleetCommand, FleetRunner  # noqa: PLC0415
    from lakewright.fleet.shared_process import shared_environment  # noqa: PLC0415

    project = load_project(options.directory)
    stacks = _stacks(project, options)
    if options.resume:
        folder = RunFolder.resume(project.root, name, words)
        known = folder.entries
        stacks = [stack for stack in stacks if stack.name in known]
    else:
        folder = RunFolder.create(project.root, name, words, [stack.name for stack in stacks])
    command = FleetCommand(name, words)
    with shared_environment(len(stacks)) as environ, choose_progress(f"fleet {name}", len(stacks)) as progress:
        runner = FleetRunner(
            project, command, folder, progress, bounds=options.bounds, on_error=options.on_error, environ=environ
        )
        try:
            return runner.run(stacks)
        finally:
            folder.close()


def _stacks(project: PulumiProject, options: FleetOptions) -> Sequence[SelectedStack]:
    from lakewright.fleet.selection import select  # noqa: PLC0415

    return select(project, options.selection)


def _report(options: FleetOptions, report: FleetReport) -> None:
    """Print the report, and end with its exit code."""
    if options.as_json:
        print(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        print("\n".join(_lines(options, report)))
    raise typer.Exit(report.exit_code)


def _lines(options: FleetOptions, report: FleetReport) -> list[str]:
    from lakewright.fleet.progress import detail_lines, summary_lines  # noqa: PLC0415

    logs = [result.log for result in report.results if result.log]
    folder = os.path.relpath(Path(logs[0]).parent) if logs else "none"
    return [*(detail_lines(report) if options.details else []), *summary_lines(report, folder)]


def _bounds(stacks: int | None, by_environment: int) -> Bounds:
    return Bounds(stacks or default_parallel_stacks(), by_environment)


def _engine_words(engine: EngineName, parallel: int) -> tuple[str, ...]:
    return ("--engine", engine.value, "--parallel", str(parallel))
