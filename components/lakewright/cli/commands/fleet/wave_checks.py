"""Check the stacks of a wave: what `lakewright drift` finds, with the checks of their specs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lakewright.drift.detection.run import find_drift
from lakewright.drift.detection.steps import DriftOptions
from lakewright.drift.model import StackDrift, UnmanagedSearch
from lakewright.terminal.escaping import escape_line
from lakewright.terminal.text_lines import plural

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack


def find_faults(project: PulumiProject, stacks: Sequence[SelectedStack]) -> list[str]:
    """Return a line for each stack that differs from its state, fails a check, or could not be checked.

    An unmanaged object is a difference, as in `lakewright drift`.
    """
    report = find_drift(project, stacks, options=DriftOptions(search=UnmanagedSearch.OBJECTS))
    return [fault for stack in report.stacks for fault in _describe(stack)]


def _describe(stack: StackDrift) -> Iterator[str]:
    if stack.drift:
        first = stack.drift[0]
        name = " ".join(filter(None, (first.resource, first.property)))
        yield escape_line(
            f"{stack.stack}: {plural(len(stack.drift), 'difference')}, the first: {name} {first.kind.value};"
            f" `lakewright drift --stack {stack.stack}` shows all"
        )
    for problem in stack.problems:
        yield escape_line(f"{stack.stack}: not checked: {problem}")
