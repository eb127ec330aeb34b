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
    from lakewright_engine.errors import ProjectError  # noqa: PLC0415 - `--help` needs no engine

    try:
        spec = _mapping(project.stack_config(stack).values.get(_SPEC_KEY))
    except ProjectError:
        return False
    name = spec.get("environment")
    if not isinstance(name, str):
        return False
    if os.environ.get(_SANDBOX_VARIABLE):
        return True
    return isinstance(_environment_file(project, name).get("sandbox"), str)


def _environment_file(project: Project, name: str) -> dict[str, Any]:
    from lakewright_engine.yaml_text import load_yaml  # noqa: PLC0415
    from yaml import YAMLError  # noqa: PLC0415

    try:
        return _mapping(load_yaml((project.root / "environments" / f"{name}.yaml").read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, YAMLError):
        return {}


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
