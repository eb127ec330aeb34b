"""Options that several commands share, and access to project and stack."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli import completions
from lakewright.cli.errors import UsageError

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject
    from lakewright_engine.state.backend import StateBackend

    from lakewright.fleet.selection import Selection


class EngineName(StrEnum):
    """Engines that run operations."""

    AUTO = "auto"
    EMBEDDED = "embedded"
    PULUMI = "pulumi"


StackName = Annotated[
    str,
    typer.Option(
        "--stack",
        "-s",
        help="Name of the stack; one stack is one tenant. Default: LAKEWRIGHT_STACK, or the selected stack.",
        autocompletion=completions.complete_stack,
    ),
]
Directory = Annotated[Path, typer.Option("-C", "--cwd", help="Folder of the project, or one below it.")]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--stack",
        "-s",
        help="Only stacks whose name matches this pattern, such as 'team-*'; repeatable.",
        autocompletion=completions.complete_stack,
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        help="Only stacks whose spec has this label, NAME=VALUE or NAME; repeatable.",
        autocompletion=completions.complete_label,
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="All stacks of the project.")]
Concurrency = Annotated[
    int | None,
    typer.Option("--parallel-stacks", min=1, help="Number of stacks at the same time. Default: by number of CPUs."),
]
HERE = Path()


def load_project(directory: Path) -> PulumiProject:
    """Return the project of a folder, and change into it, as the Pulumi CLI does with -C."""
    from lakewright_engine.model.errors import ProjectError  # noqa: PLC0415 - `--help` needs no engine
    from lakewright_engine.project.project import PulumiProject  # noqa: PLC0415

    try:
        os.chdir(directory)
    except OSError as error:
        raise ProjectError(f"-C {directory}: {error.strerror}") from error
    return PulumiProject.load()


def open_stack(directory: Path, stack: str) -> tuple[PulumiProject, StateBackend]:
    """Return the project and backend of a stack. Raises StackNotFoundError if the backend does not have it."""
    from lakewright_engine.state.backend import stack_not_found  # noqa: PLC0415

    project = load_project(directory)
    backend = project.backend()
    if not backend.exists(project.name, stack):
        raise stack_not_found(stack, backend.names(project.name))
    return project, backend


def make_selection(names: list[str] | None, labels: list[str] | None, *, everything: bool = False) -> Selection:
    """Return the filters of the options `--stack` and `--label`.

    Raises:
        SelectionError: A label is malformed.
        UsageError: `everything`, which is `--all`, is combined with a filter.
    """
    from lakewright.fleet.selection import Selection, parse_labels  # noqa: PLC0415 - `--help` needs no filters

    if everything and (names or labels):
        raise UsageError("--all cannot be combined with --stack or --label")
    return Selection(tuple(names or ()), parse_labels(labels or ()))
