"""Completion of stack names and labels in shells. It reads the project's files only, and never fails."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_FILES = 200
"""Number of stack files that are read for their labels: a shell waits for them."""


def complete_stack(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the stacks with a file whose names begin with a text."""
    return [name for name in _stack_files(ctx) if name.startswith(incomplete)]


def complete_label(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the labels `NAME=VALUE` of specs that begin with a text."""
    from lakewright.project_files.stack_files import raw_spec  # noqa: PLC0415 - a command does not complete
    from lakewright.validation.documents import as_mapping  # noqa: PLC0415

    labels_found: set[str] = set()
    for file in [*_stack_files(ctx).values()][:_MOST_FILES]:
        labels = as_mapping(raw_spec(file).get("labels"))
        labels_found |= {f"{name}={value}" for name, value in labels.items()}
    return sorted(label for label in labels_found if label.startswith(incomplete))


def _stack_files(ctx: typer.Context) -> dict[str, Path]:
    """Return the stack files of the project by stack; none outside a project."""
    with suppress(Exception):  # a shell shows no error of a completion
        return dict(_read_stack_files(ctx))
    return {}


def _read_stack_files(ctx: typer.Context) -> Iterator[tuple[str, Path]]:
    from lakewright_engine.project.project import PulumiProject  # noqa: PLC0415

    from lakewright.fleet.selection import stack_files  # noqa: PLC0415

    directory = ctx.params.get("directory") or os.curdir
    yield from stack_files(PulumiProject.load(directory)).items()
