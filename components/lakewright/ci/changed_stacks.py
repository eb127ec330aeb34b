"""Find the stacks that a pull request changes: stacks of changed stack files, or all if another file was changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

_STACK_FILE = re.compile(r"Pulumi\.([A-Za-z0-9_.-]{1,100})\.yaml")
_WITHOUT_EFFECT = ("docs/", "examples/", "tests/", "benchmarks/", "demo/", ".github/")
"""Folders that no stack's program reads."""


@dataclass(frozen=True)
class ChangedStacks:
    """The stacks to preview: the named stacks, or all stacks if there is a reason."""

    names: tuple[str, ...]
    """Stacks whose file was added or changed."""
    removed: tuple[str, ...]
    """Stacks whose file was removed. Their resources remain until `lakewright destroy`."""
    cause_for_all: str = ""
    """First changed file that all stacks depend on."""

    @property
    def options(self) -> list[str]:
        """The options that select them. Empty if no stack is changed."""
        if self.cause_for_all:
            return ["--stack", "*"]
        return [word for name in self.names for word in ("--stack", name)]


def find_changed_stacks(changed: Iterable[str], removed: Iterable[str], stack_folder: str) -> ChangedStacks:
    """Return the stacks that depend on changed files.

    Args:
        changed: Added and changed files, relative to the project's folder.
        removed: Removed files, relative to the project's folder.
        stack_folder: Folder of the stack files, relative to the project's folder.
    """
    names, removed_stacks = set[str](), set[str]()
    cause = ""
    for group, files in ((names, changed), (removed_stacks, removed)):
        for file in sorted(files):
            if name := _parse_stack_name(file, stack_folder):
                group.add(name)
            elif not cause and not _is_without_effect(file):
                cause = file
    return ChangedStacks(tuple(sorted(names)), tuple(sorted(removed_stacks - names)), cause)


def _parse_stack_name(file: str, stack_folder: str) -> str:
    path = PurePosixPath(file)
    match = _STACK_FILE.fullmatch(path.name)
    return match[1] if match and path.parent == PurePosixPath(stack_folder) else ""


def _is_without_effect(file: str) -> bool:
    return file.startswith(_WITHOUT_EFFECT) or ("/" not in file and file.endswith(".md")) or file.startswith("../")
