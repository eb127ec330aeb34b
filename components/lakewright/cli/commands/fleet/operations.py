"""`lakewright fleet preview`, `up`, `refresh` and `verify`: one command on many stacks."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lakewright.cli.commands.fleet.running import (
    DEFAULT_BY_ENVIRONMENT,
    DEFAULT_STEPS,
    ByEnvironment,
    ContinueOnError,
    Create,
    Details,
    FleetOptions,
    OnErrorOption,
    Plans,
    Resume,
    SavePlans,
    Waves,
    end,
    make_bounds,
    print_report,
    run_fleet,
)
from lakewright.cli.errors import UsageError
from lakewright.cli.operation_options import AsJson, Engine, ExpectNoChanges, Parallel, Refresh, ResendCredentials, Yes
from lakewright.cli.options import HERE, Concurrency, Directory, EngineName, Everything, Labels, Names, make_selection
from lakewright.fleet.schedule import OnError
from lakewright.terminal.text_lines import plural

if TYPE_CHECKING:
    from lakewright.fleet.results import FleetReport


def preview(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    engine: Engine = EngineName.AUTO,
    refresh: Refresh = False,
    resend_credentials: ResendCredentials = False,
    expect_no_changes: ExpectNoChanges = False,
    save_plans: SavePlans = None,
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
    if save_plans and expect_no_changes:
        raise UsageError("--save-plans and --expect-no-changes cannot be combined: a plan says itself what changes")
    options = FleetOptions(
        directory,
        make_selection(stack, label, everything=everything),
        make_bounds(parallel_stacks, parallel_per_environment),
        OnError.CONTINUE if continue_on_error else OnError.STOP,
        resume,
        as_json,
        details,
        save_plans=_absolute(save_plans),
    )
    arguments = ("preview", *_engine_words(engine, parallel), *("--resend-credentials",) * resend_credentials)
    arguments += ("--refresh",) * refresh + ("--expect-no-changes",) * expect_no_changes
    end(options, run_fleet(options, "preview", arguments))


def up(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    engine: Engine = EngineName.AUTO,
    refresh: Refresh = False,
    resend_credentials: ResendCredentials = False,
    plans: Plans = None,
    create: Create = False,
    waves: Waves = None,
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
    """Create or update the resources of each stack. Without --yes, show a summary and ask once.

    A spec whose stack does not exist is reported as not deployed; --create creates its stack.

    Example: lakewright fleet up --label cost-center=4711 --on-error continue
    """
    if plans and refresh:
        raise UsageError("--plans and --refresh cannot be combined: a plan holds the options of its preview")
    options = FleetOptions(
        directory,
        make_selection(stack, label, everything=everything),
        make_bounds(parallel_stacks, parallel_per_environment),
        on_error,
        resume,
        as_json,
        details,
        plans=_absolute(plans),
        create=create,
        waves=waves,
    )
    arguments = (*_engine_words(engine, parallel), *("--refresh",) * refresh)
    arguments += ("--resend-credentials",) * resend_credentials
    if not yes and not plans:
        _confirm(options, "up", "update", ("preview", *arguments))
    end(options, run_fleet(options, "up", ("up", "--yes", *arguments)))


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
    """Read every object of each stack, and update the states. Without --yes, show a summary and ask once.

    Example: lakewright fleet refresh --stack 'team-*' --yes --parallel-stacks 8
    """
    options = FleetOptions(
        directory,
        make_selection(stack, label, everything=everything),
        make_bounds(parallel_stacks, parallel_per_environment),
        on_error,
        resume,
        as_json,
        details,
    )
    arguments = _engine_words(engine, parallel)
    if not yes:
        _confirm(options, "refresh", "refresh", ("refresh", "--preview-only", *arguments))
    end(options, run_fleet(options, "refresh", ("refresh", "--yes", *arguments)))


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
        make_selection(stack, label, everything=everything),
        make_bounds(parallel_stacks, parallel_per_environment),
        OnError.CONTINUE if continue_on_error else OnError.STOP,
        resume,
        as_json,
    )
    end(options, run_fleet(options, "verify", ("verify",)))


def _confirm(options: FleetOptions, verb: str, noun: str, trial: tuple[str, ...]) -> None:
    """Show a summary of all changes, write each of them to a file, and ask once.

    Raises:
        UsageError: There is no user to ask.
    """
    if options.as_json or not sys.stdin.isatty():
        raise UsageError(f"fleet {verb} needs --yes without a terminal, or with --json")
    planned = run_fleet(replace(options, resume=False, waves=None), "preview", trial)
    print_report(options, planned)
    _print_changes(planned)
    if planned.is_interrupted or (planned.remaining and options.on_error is OnError.STOP):
        raise typer.Exit(planned.exit_code)
    count = plural(len(planned.results), "stack")
    typer.confirm(f"Do you want to perform this {noun} of {count}?", abort=True, err=True)


def _print_changes(planned: FleetReport) -> None:
    """Print the summary of a preview's changes, and write each change to a file in the folder of the run."""
    from lakewright.cli.commands.fleet.change_summary import summarize_changes  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.fleet.progress import format_details  # noqa: PLC0415

    logs = [result.log for result in planned.results if result.log]
    if not logs:
        return
    file = Path(logs[0]).parent / "changes.txt"
    file.write_text("\n".join(format_details(planned)) + "\n", encoding="utf-8")
    print("\n".join(["", *summarize_changes(planned, os.path.relpath(file))]))


def _absolute(path: Path | None) -> Path | None:
    """Return an absolute path: relative paths start at the working directory, not at the folder of -C."""
    return path.absolute() if path else None


def _engine_words(engine: EngineName, parallel: int) -> tuple[str, ...]:
    return ("--engine", engine.value, "--parallel", str(parallel))
