"""Whether a stack's environment is a sandbox, read before a program runs.

The file is read as it is: loading it as `lakewright.environment` does takes imports that most commands have no use for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from lakewright_engine.project import Project

_SPEC_KEY = "lakewright:tenant"
_SANDBOX_VARIABLE = "LAKEWRIGHT_SANDBOX"


def is_in_sandbox(project: Project, stack: str) -> bool:
    """Return whether the stack is a tenant whose environment is a sandbox.

    What cannot be read is none: the program reports it, with the reason.
    """
    name = _environment_name(project, stack)
    return isinstance(_environment_file(project, name).get("sandbox"), str) if name else False


def ignored_sandbox(project: Project, stack: str) -> str:
    """Return a sentence where LAKEWRIGHT_SANDBOX is set and the stack's environment is no sandbox; empty elsewhere."""
    name = _environment_name(project, stack)
    if not os.environ.get(_SANDBOX_VARIABLE) or not name or is_in_sandbox(project, stack):
        return ""
    return f"{_SANDBOX_VARIABLE} is ignored: environments/{name}.yaml has no `sandbox`, so the stack runs against it."


def _environment_name(project: Project, stack: str) -> str:
    """Return the name of the stack's environment; empty where the stack is no tenant or its settings are damaged."""
    from lakewright_engine.errors import ProjectError  # noqa: PLC0415 - `--help` needs no engine

    try:
        spec = _mapping(project.stack_config(stack).values.get(_SPEC_KEY))
    except ProjectError:
        return ""
    name = spec.get("environment")
    return name if isinstance(name, str) else ""


def _environment_file(project: Project, name: str) -> dict[str, Any]:
    from lakewright_engine.yaml_text import load_yaml  # noqa: PLC0415
    from yaml import YAMLError  # noqa: PLC0415

    try:
        return _mapping(load_yaml((project.root / "environments" / f"{name}.yaml").read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, YAMLError):
        return {}


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
