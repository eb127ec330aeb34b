"""The stacks with a state that the options of a command choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.cli.errors import UsageError
from lakewright.cli.options import Directory, load_project, make_selection

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack
    from lakewright.fleet.states import StateReader


def open_deployed_stacks(
    stack: list[str] | None, label: list[str] | None, directory: Directory, *, everything: bool
) -> tuple[PulumiProject, list[SelectedStack], StateReader]:
    """Return the project, the chosen stacks that have a state, and the reader of their states.

    Raises:
        UsageError: The options choose no stacks.
    """
    if not everything and not stack and not label:
        raise UsageError("name the stacks with --stack PATTERN or --label NAME=VALUE, or choose --all")
    from lakewright.fleet.selection import select  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.fleet.states import state_reader  # noqa: PLC0415

    project = load_project(directory)
    states = state_reader(project)
    names = states.names()
    selection = make_selection(stack, label, everything=everything)
    selected = [candidate for candidate in select(project, selection, names) if candidate.name in names]
    return project, selected, states
