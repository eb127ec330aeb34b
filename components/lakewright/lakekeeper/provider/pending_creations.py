"""Pending creations of an interrupted run of this stack, from the pending operations of its state.

Only an object that this stack started to create is adopted without `adopt`. A provider's process does not know the
state. `lakewright` therefore writes the pending creations to a file and sets an environment variable to its path, with
both engines.
"""

import json
import os
from pathlib import Path
from typing import Any, cast

import pulumi
from pydantic import ValidationError

from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.provider.inputs import ResourceInputs, tidy

FILE = "LAKEWRIGHT_PENDING_CREATIONS"
"""Environment variable: path of a JSON list of objects with `urn`, `type` and `inputs`."""
PROJECT = "PULUMI_PROJECT"
"""Environment variable that both engines set for the processes of providers."""


def refuse_other_stack() -> None:
    """Raise pulumi.RunError if the pending creations belong to another stack. Called when a program declares resources.

    A program knows its stack, a provider's process does not. A nested run inherits the environment of the outer run.
    """
    for creation in _creations():
        owner, stack, project = _parse_stack(creation["urn"]), pulumi.get_stack(), pulumi.get_project()
        if owner != (stack, project):
            raise pulumi.RunError(
                f"{FILE} names the interrupted creations of stack `{owner[0]}` of project `{owner[1]}`, and this is"
                f" stack `{stack}` of project `{project}`. Unset the variable: `lakewright` sets it for each run."
            )


def is_reported() -> bool:
    """Return whether pending creations were reported to this process; plain `pulumi up` reports none.

    The file is deleted when its run ends, so a leftover variable names a missing file.
    """
    path = os.environ.get(FILE)
    return bool(path) and Path(path).is_file()


def was_begun(kind: str, args: ResourceInputs, natural_key: tuple[str, ...]) -> bool:
    """Return whether an interrupted run of this stack started to create this object on this server.

    Args:
        kind: Name of the resource class.
        args: The declaration to create now.
        natural_key: Names of the properties that identify the object on its server.
    """
    inputs = args.props()
    return bool(natural_key) and any(
        creation["type"].rpartition(":")[2] == kind
        and all(tidy(creation["inputs"]).get(name) == inputs.get(name) for name in natural_key)
        and _endpoint(creation["inputs"]) == args.server.endpoint
        for creation in _list_pending()
    )


def _list_pending() -> list[dict[str, Any]]:
    """Return the pending creations of the running project. A program of another stack was refused before."""
    project = os.environ.get(PROJECT)
    return [creation for creation in _creations() if not project or _parse_stack(creation["urn"])[1] == project]


def _creations() -> list[dict[str, Any]]:
    try:
        return cast(list[dict[str, Any]], json.loads(Path(os.environ[FILE]).read_text(encoding="utf-8")))
    except (KeyError, OSError):
        return []


def _parse_stack(urn: str) -> tuple[str, str]:
    """Return the stack and the project of `urn:pulumi:STACK::PROJECT::TYPE::NAME`."""
    head, _, remainder = urn.partition("::")
    return head.removeprefix("urn:pulumi:"), remainder.partition("::")[0]


def _endpoint(inputs: dict[str, Any]) -> str | None:
    try:
        return ServerRef.model_validate(tidy(inputs.get("server"))).endpoint
    except ValidationError:
        return None
