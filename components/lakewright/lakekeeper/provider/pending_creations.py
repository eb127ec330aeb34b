"""Creations that an interrupted run of this very stack left: its state's pending operations, as the engine gives them.

Only what this stack began to create is taken over without `adopt`. A provider's process does not know the state, so
`lakewright` writes the pending creations to a file and names it in the environment, on both engines.
"""

import json
import os
from pathlib import Path
from typing import Any, cast

import pulumi
from pydantic import ValidationError

from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.provider.inputs import ResourceInputs, tidied

FILE = "LAKEWRIGHT_PENDING_CREATIONS"
"""Environment variable: path of a JSON list of objects with `urn`, `type` and `inputs`."""
PROJECT = "PULUMI_PROJECT"
"""Environment variable that both engines set for the processes of providers."""


def refuse_other_stack() -> None:
    """Raise pulumi.RunError if the reported creations are another stack's. Called where a program declares resources.

    A provider's process does not learn which stack runs, and a program does. A run that starts inside another one
    inherits its environment.
    """
    for one in _creations():
        found, stack, project = _stack_of(one["urn"]), pulumi.get_stack(), pulumi.get_project()
        if found != (stack, project):
            raise pulumi.RunError(
                f"{FILE} names the interrupted creations of stack `{found[0]}` of project `{found[1]}`, and this is"
                f" stack `{stack}` of project `{project}`. Unset the variable: `lakewright` sets it for each run."
            )


def is_reported() -> bool:
    """Whether the engine reported pending creations to this process; plain `pulumi up` does not.

    The file is deleted when its run ends, so a variable that is left over names a missing one.
    """
    path = os.environ.get(FILE)
    return bool(path) and Path(path).is_file()


def was_begun(kind: str, declared: ResourceInputs, natural_key: tuple[str, ...]) -> bool:
    """Whether an interrupted run of this stack began to create the object with this natural key on this server.

    Args:
        kind: Name of the resource class.
        declared: The declaration that is to be created now.
        natural_key: Names of the properties that identify the object on its server.
    """
    wanted = declared.props()
    return bool(natural_key) and any(
        one["type"].rpartition(":")[2] == kind
        and all(tidied(one["inputs"]).get(name) == wanted.get(name) for name in natural_key)
        and _endpoint(one["inputs"]) == declared.server.endpoint
        for one in _reported()
    )


def _reported() -> list[dict[str, Any]]:
    """The reported creations of the running project; a program of another stack was refused before."""
    project = os.environ.get(PROJECT)
    return [one for one in _creations() if not project or _stack_of(one["urn"])[1] == project]


def _creations() -> list[dict[str, Any]]:
    try:
        return cast(list[dict[str, Any]], json.loads(Path(os.environ[FILE]).read_text(encoding="utf-8")))
    except (KeyError, OSError):
        return []


def _stack_of(urn: str) -> tuple[str, str]:
    """The stack and the project in `urn:pulumi:STACK::PROJECT::TYPE::NAME`."""
    head, _, rest = urn.partition("::")
    return head.removeprefix("urn:pulumi:"), rest.partition("::")[0]


def _endpoint(inputs: dict[str, Any]) -> str | None:
    try:
        return ServerRef.model_validate(tidied(inputs.get("server"))).endpoint
    except ValidationError:
        return None
