"""Stacks that have a file in the project, but do not exist in the backend: report them, or create them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lakewright_engine.model.errors import EngineError

from lakewright.fleet.results import StackResult, StackStatus
from lakewright.fleet.states import state_reader

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack


def find_absent_stacks(project: PulumiProject, stacks: Iterable[SelectedStack]) -> list[SelectedStack]:
    """Return the stacks that the project's backend does not have."""
    names = {*state_reader(project).names()}
    return [stack for stack in stacks if stack.name not in names]


def report_not_deployed(stacks: Iterable[SelectedStack]) -> list[StackResult]:
    """Return the results of stacks that the backend does not have."""
    return [StackResult(stack, StackStatus.NOT_DEPLOYED) for stack in stacks]


def create_stacks(project: PulumiProject, stacks: Sequence[SelectedStack]) -> list[StackResult]:
    """Create stacks. Return the results of stacks that could not be created."""
    failures: list[StackResult] = []
    for stack in stacks:
        try:
            create_stack(project, stack.name)
        except EngineError as error:
            problem = " ".join(f"the stack could not be created: {error}".split())
            failures.append(StackResult(stack, StackStatus.FAILED, error=problem))
    return failures


def create_stack(project: PulumiProject, stack: str) -> None:
    """Create an empty stack, and write the salt of its passphrase to its settings file.

    Raises:
        EngineError: The stack exists, its name is invalid, or its passphrase is absent or wrong.
    """
    backend = project.backend()
    backend.check_new(project.name, stack)
    secrets = project.secrets(stack)
    secrets.unlock()
    backend.create(project.name, stack, secrets)
