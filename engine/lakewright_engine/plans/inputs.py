"""Hashes of the inputs of a plan: settings, program sources and packages.

Settings are compared by content, so comments and the order of keys may change. The sources are all `*.py` files in
the program's folder and below it, except in hidden folders, virtual environments, `tests` folders and folders with
another Pulumi.yaml. The packages are Pulumi's SDKs and this project's packages, by version.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path

from lakewright_engine.plans.state_version import content_hash
from lakewright_engine.project.project import FILE_NAMES, PulumiProject, read_yaml

_NOT_SOURCES = ("tests", "node_modules", "__pycache__")
_PACKAGES = re.compile(r"(pulumi|lakewright)([-_].*)?", re.IGNORECASE)
_MAX_NAMES = 5


def plan_inputs(project: PulumiProject, stack: str) -> dict[str, str]:
    """Return a hash for each input of a stack's program, by the name that messages use."""
    stack_file = project.stack_file(stack)
    settings = {key: value for key, value in project.stack_config(stack).body.items() if key != "encryptionsalt"}
    return {
        project.file.name: content_hash(read_yaml(project.file)),
        _relative(stack_file, project.root): content_hash(settings),
        **_source_hashes(project.working_directory, project.root),
        **_package_versions(project.python),
    }


def list_changed_inputs(planned: Mapping[str, str], current: Mapping[str, str]) -> str:
    """Return the names of the inputs that differ as text; empty if there are none."""
    names = sorted(name for name in {*planned, *current} if planned.get(name) != current.get(name))
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def _source_hashes(folder: Path, root: Path) -> dict[str, str]:
    hashes: dict[str, str] = {}
    for parent, folders, names in os.walk(folder):
        current_folder = Path(parent)
        folders[:] = sorted(name for name in folders if _holds_sources(current_folder / name))
        sources = sorted(name for name in names if name.endswith(".py"))
        if sources:
            digest = hashlib.sha256()
            for name in sources:
                digest.update(f"{name}\0".encode() + hashlib.sha256((current_folder / name).read_bytes()).digest())
            hashes[f"{_relative(current_folder, root)}/*.py"] = digest.hexdigest()
    return hashes


def _holds_sources(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _NOT_SOURCES:
        return False
    return not any((folder / name).is_file() for name in ("pyvenv.cfg", *FILE_NAMES))


def _package_versions(python: Path | None) -> dict[str, str]:
    return {f"package {name}": version for name, version in sorted(_distributions(python)) if _PACKAGES.fullmatch(name)}


def _distributions(python: Path | None) -> Iterator[tuple[str, str]]:
    """Yield name and version of the installed packages, which may be in another virtual environment."""
    path = sys.path
    if python is not None:
        path = [str(folder) for folder in python.parent.parent.glob("lib/python*/site-packages")]
    for distribution in distributions(path=path):
        yield distribution.name, distribution.version


def _relative(path: Path, root: Path) -> str:
    """Return a path relative to the project, which is the same in every checkout."""
    return os.path.relpath(path, root)
