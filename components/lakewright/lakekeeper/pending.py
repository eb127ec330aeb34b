"""Creations that an interrupted run of this very stack left: its state's pending operations, as the engine gives them.

Only what this stack began to create is taken over without `adopt`. A provider's process does not know the state, so
`lakewright` writes the pending creations to a file and names it in the environment, on both engines.
"""

import json
import os
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from lakewright.lakekeeper.api.server import ServerRef
from lakewright.lakekeeper.declared import OnServer, tidied

FILE = "LAKEWRIGHT_PENDING_CREATIONS"
"""Environment variable: path of a JSON list of objects with `urn`, `type` and `inputs`."""
PROJECT = "PULUMI_PROJECT"
"""Environment variable that both engines set for the processes of providers."""


def is_reported() -> bool:
    """Whether the engine reported pending creations to this process; plain `pulumi up` does not.

    The file is deleted when its run ends, so a variable that is left over names a missing one.
    """
    path = os.environ.get(FILE)
    return bool(path) and Path(path).is_file()


def was_begun(kind: str, declared: OnServer, natural_key: tuple[str, ...]) -> bool:
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
    """The reported creations of the running project. A dynamic provider does not learn which stack runs."""
    try:
        creations = cast(list[dict[str, Any]], json.loads(Path(os.environ[FILE]).read_text(encoding="utf-8")))
    except (KeyError, OSError):
        return []
    project = os.environ.get(PROJECT)
    return [one for one in creations if not project or _project_of(one["urn"]) == project]


def _project_of(urn: str) -> str:
    """The project in `urn:pulumi:STACK::PROJECT::TYPE::NAME`."""
    parts = urn.split("::")
    return parts[1] if len(parts) > 1 else ""


def _endpoint(inputs: dict[str, Any]) -> str | None:
    try:
        return ServerRef.model_validate(tidied(inputs.get("server"))).endpoint
    except ValidationError:
        return None
