"""Names of stacks and projects: which are valid, and which an unknown name is most like."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from lakewright_engine.model.errors import ProjectError, StateError

_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9-_.]{1,100}")
_EXPECTED = "expected 1 to 100 letters, digits, hyphens, underscores and periods, and neither `.` nor `..`"


def is_valid_name(text: str) -> bool:
    """Return whether a name is valid for a stack or project."""
    return _NAME.fullmatch(text) is not None


def check_stack_name(stack: str) -> None:
    """Raise StateError if a stack name is invalid."""
    if not is_valid_name(stack):
        raise StateError(f"{stack!r} is not a stack name: {_EXPECTED}")


def check_project_name(project: str, file: object) -> None:
    """Raise ProjectError if a project name is invalid."""
    if not is_valid_name(project):
        raise ProjectError(f"{file}: 'name' is {project!r}, which is not a project name: {_EXPECTED}")


def suggest_name(word: str, names: Iterable[str]) -> str:
    """Return what joins "no such name" and what to do: a question with the names most like a word, or a semicolon.

    >>> suggest_name("acm", ["acme", "globex"])
    '; did you mean `acme`? '
    >>> suggest_name("other", ["acme"])
    '; '
    """
    matches = get_close_matches(word, [*names])
    return f"; did you mean {' or '.join(f'`{name}`' for name in matches)}? " if matches else "; "
