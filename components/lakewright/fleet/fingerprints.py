"""Fingerprints of a stack's inputs and state: whether either changed since an earlier run."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.project_files.stack_files import environment_file, raw_spec

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack


def compute_inputs_fingerprint(project: PulumiProject, stack: SelectedStack) -> str:
    """Return a digest of the files that a stack's declaration depends on.

    These are its spec with the values that it extends, its environment and the program.
    """
    program = project.program if project.program.is_file() else project.program / "__main__.py"
    environment = [environment_file(project.root, stack.environment)] if stack.environment else []
    digest = hashlib.sha256(version("lakewright").encode())
    for file in (project.stack_file(stack.name), *environment, project.file, program):
        digest.update(_compute_digest(file, _read_modification_time(file)))
    # Read again, as the files are: an extended file may have changed since the stack was selected.
    digest.update(repr(raw_spec(project.stack_file(stack.name))).encode())
    return digest.hexdigest()


def compute_state_fingerprint(project: PulumiProject, stack: str) -> str:
    """Return a digest of a stack's state; empty if this process cannot read the state."""
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415 - `--help` needs no engine

    try:
        checkpoint = project.backend().checkpoint(project.name, stack)
    except (EngineError, OSError):
        return ""
    text = json.dumps(checkpoint, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest() if checkpoint is not None else ""


@cache
def _compute_digest(file: Path, modified: float) -> bytes:
    """Return the digest of a file's content; of empty content if it cannot be read."""
    _ = modified
    try:
        return hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return hashlib.sha256().digest()


def _read_modification_time(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0
