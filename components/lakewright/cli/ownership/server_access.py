"""How the search for owners reads the environments and secrets of a project's stacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.environment.environment import Environment


@dataclass(frozen=True)
class ServerAccess:
    """A project, and functions that read its environments and the secrets of its stacks on first use."""

    project: PulumiProject
    load_environment: Callable[[str], Environment]
    """Returns an environment by its name. Raises SpecError or UsageError."""
    open_resolver: Callable[[str], Callable[[str], str]]
    """Returns a function that resolves references to secrets, by the name of a stack."""
