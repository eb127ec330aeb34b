"""Where the problems of a document are in its text: file, line and column."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import yaml

from lakewright.validation.problems import Problem, SpecError, TextPosition

_FIELD = re.compile(r"[\w-]+(\.|$)")
"""Begin of a path in the document. Other problems have a path in words, such as `environment prod: aws.region`."""


@contextmanager
def locate_problems(file: Path, *sections: str) -> Generator[None]:
    """Add positions in a YAML file to the problems of a SpecError that is raised in the block.

    Args:
        file: The file that was read.
        sections: Keys of the mapping that the paths of the problems are relative to.
    """
    try:
        yield
    except SpecError as error:
        raise SpecError(error.source, find_positions(error.problems, file, *sections)) from None


def find_positions(problems: Sequence[Problem], file: Path, *sections: str) -> list[Problem]:
    """Return problems with their positions in a file, in the order of its lines. A known position is kept.

    Args:
        problems: The problems.
        file: The file. Problems of a file that is not YAML have no positions.
        sections: Keys of the mapping that the paths of the problems are relative to.
    """
    try:
        root = _compose(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return [*problems]
    located_problems = [
        problem
        if problem.position or not (mark := _find_mark(root, sections, problem.path))
        else replace(problem, position=_make_position(file, mark))
        for problem in problems
    ]
    return sorted(located_problems, key=lambda problem: _make_sort_key(problem, file))


def make_syntax_problem(file: Path, error: yaml.YAMLError | UnicodeDecodeError) -> Problem:
    """Return the problem of a file that is not YAML, with its position if the parser names it."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Problem("", f"expected YAML: {' '.join(str(error).split())}")
    position = _make_position(file, error.problem_mark)
    context = error.context or ""
    if context and error.context_mark is not None:
        context += f" in {_make_position(file, error.context_mark)}"
    reason = ", ".join(part for part in (context, error.problem) if part)
    return Problem("", f"expected YAML: {reason}", position=position)


def _make_position(file: Path, mark: Any) -> TextPosition:
    return TextPosition(str(file), mark.line + 1, mark.column + 1)


def _make_sort_key(problem: Problem, file: Path) -> tuple[int, int]:
    """Return the position in a file; problems of other files, and without a position, come last."""
    position = problem.position
    return (position.line, position.column) if position and position.file == str(file) else (sys.maxsize, 0)


def _compose(text: str) -> Any:
    loader = cast(Any, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return cast(Any, yaml).compose(text, Loader=loader)


def _find_mark(root: Any, sections: Sequence[str], path: str) -> Any:
    """Return the mark of the deepest key or list entry on a path; None if the path is not of this document."""
    if path and not _FIELD.match(path):
        return None
    node, mark = root, root.start_mark if root else None
    for section in sections:
        node, mark, _ = _descend(node, section)
        if node is None:
            return None
    while path and node is not None:
        node, next_mark, path = _descend(node, path)
        mark = next_mark or mark
    return mark


def _descend(node: Any, path: str) -> tuple[Any, Any, str]:
    """Return the node of the first step of a path, the mark of its key, and the rest; None, None if it is missing."""
    steps: list[tuple[str, Any, Any]] = []
    if isinstance(node, yaml.MappingNode):
        # A key may contain periods.
        steps = [(str(key.value), value, key.start_mark) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        steps = [(str(index), entry, entry.start_mark) for index, entry in enumerate(node.value)]
    matches = [step for step in steps if f"{path}.".startswith(f"{step[0]}.")]
    if not matches:
        return None, None, ""
    name, child, mark = max(matches, key=lambda step: len(step[0]))
    return child, mark, path.removeprefix(name).removeprefix(".")
