"""The stack of a command that names none: `LAKEWRIGHT_STACK`, or the selected stack of the project."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.cli.errors import UsageError

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

STACK_VARIABLE = "LAKEWRIGHT_STACK"
SELECTED_STACK = Path(".lakewright", "selected-stack")
"""File of the project with the name of the stack that `lakewright stack select` selected."""


def find_default_stack(command: str, directory: str | Path) -> str:
    """Return the stack of a command that names none, and show which it is.

    Args:
        command: The command, such as `lakewright up`.
        directory: A folder of the project.

    Raises:
        UsageError: There is no default stack.
    """
    project = find_project(directory)
    name, source = os.environ.get(STACK_VARIABLE, ""), STACK_VARIABLE
    if not name and project is not None:
        name, source = read_selected_stack(project), "selected with `lakewright stack select`"
    if not name:
        raise UsageError(
            f"name the stack: `{command} STACK`, or --stack STACK. `lakewright stack select STACK` or"
            f" {STACK_VARIABLE} sets a default"
        )
    print(f"Stack: {name} ({source})", file=sys.stderr)
    return name


def read_selected_stack(project: PulumiProject) -> str:
    """Return the stack that was selected in a project; empty if there is none."""
    file = project.root / SELECTED_STACK
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def write_selected_stack(project: PulumiProject, stack: str) -> None:
    """Select a stack of a project; an empty name selects none."""
    file = project.root / SELECTED_STACK
    if not stack:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{stack}\n", encoding="utf-8")


def find_project(directory: str | Path) -> PulumiProject | None:
    """Return the project of a folder; None outside a project, which the command itself reports."""
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415 - `--help` needs no engine
    from lakewright_engine.project.project import PulumiProject  # noqa: PLC0415

    try:
        return PulumiProject.load(directory)
    except EngineError:
        return None
