"""Keep a state that the backend could not save in a local file, so that it is never lost."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from lakewright_engine.model.errors import StackLockedError, StateConflictError
from lakewright_engine.model.resources import StackSnapshot
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.state.checkpoint import Codec
from lakewright_engine.storage import files

FOLDER = Path(".lakewright", "unsaved")
"""Folder of the project for states that could not be saved."""


def keep_unsaved(project: PulumiProject, stack: str, snapshot: StackSnapshot, cause: Exception) -> str:
    """Write a state to a file, with encrypted secrets. Return a sentence with the command that restores it.

    Args:
        project: The project. If its folder is not writable, the file is in the folder for temporary files.
        stack: The stack's name.
        snapshot: The state.
        cause: Why the backend could not save it.
    """
    deployment, version, features = Codec(stack).encode(snapshot, project.secrets(stack))
    head = f'"version":{version},' + (f'"features":{json.dumps(features)},' if features else "")
    content = f'{{{head}"deployment":{deployment}}}\n'.encode()
    name = f"{project.name}.{stack}.{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.json"
    reasons: list[str] = []
    for folder in (project.root / FOLDER, Path(tempfile.gettempdir())):
        try:
            files.write(folder / name, content)
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror or error}")
            continue
        return _restore(stack, folder / name, cause)
    return f"the state of this run could not be kept in a file either ({'; '.join(reasons)})"


def _restore(stack: str, file: Path, cause: Exception) -> str:
    command = f"lakewright stack import --stack {stack} --file {file}"
    if isinstance(cause, StackLockedError | StateConflictError):
        when = "If no other run changed the stack since, restore it with"
    else:
        when = "When the backend works again, restore it with"
    return f"the state of this run is kept in {file}. {when} `{command}`"


def is_unsaved(snapshot: StackSnapshot, base: StackSnapshot) -> bool:
    """Return whether a state has changes since the run started."""
    return snapshot.resources != base.resources or snapshot.pending_operations != base.pending_operations
