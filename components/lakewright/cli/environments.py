"""Facts about environments for the CLI, without loading models: whether an environment is a sandbox, and its servers.

The files are read as YAML. `Environment.load` would import much that most commands do not need.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from lakewright.project_files import stack_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakewright_engine.project.project import PulumiProject

    from lakewright.project_files.servers import Servers

_SANDBOX_VARIABLE = "LAKEWRIGHT_SANDBOX"


def is_in_sandbox(project: PulumiProject, stack: str) -> bool:
    """Return whether the stack is a tenant whose environment is a sandbox.

    A file that cannot be read counts as none; the program reports it with the reason.
    """
    name = _environment_name(project, stack)
    return isinstance(stack_files.raw_environment(project.root, name).get("sandbox"), str) if name else False


def warn_of_ignored_sandbox(project: PulumiProject, stack: str) -> str:
    """Return a warning if LAKEWRIGHT_SANDBOX is set and the stack's environment is not a sandbox; else ""."""
    if not os.environ.get(_SANDBOX_VARIABLE):
        return ""
    name = _environment_name(project, stack)
    if not name or is_in_sandbox(project, stack):
        return ""
    return f"{_SANDBOX_VARIABLE} is ignored: environments/{name}.yaml has no `sandbox`, so the stack uses its servers."


def _environment_name(project: PulumiProject, stack: str) -> str:
    """Return the name of the stack's environment; empty if the stack is not a tenant or its settings cannot be read."""
    spec = stack_files.raw_spec(project.stack_file(stack))
    name = spec.get("environment")
    return name if isinstance(name, str) else ""


def servers_by_environment(root: Path) -> Callable[[str], Servers]:
    """Return a function from the name of an environment to its servers. It reads each file once."""
    from lakewright.project_files.servers import derive_servers  # noqa: PLC0415 - slow to load

    @cache
    def servers(name: str) -> Servers:
        folder = stack_files.environment_file(root, name).parent
        return derive_servers(name, stack_files.raw_environment(root, name), folder)

    return servers
