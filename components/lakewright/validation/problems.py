"""Problems of a spec or environment, each with position, path, expectation and found value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from lakewright_spark.suggestions import suggest_name
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lakewright.errors import LakewrightError
from lakewright.validation.documents import as_mapping

Path = tuple[str | int, ...]
SpecMistake = tuple[Path, str]
"""Path of a mistake in a spec, and what is wrong."""

_MAX_QUOTED = 60
_QUOTED = re.compile(r"['`]([^'`]+)['`]")


@dataclass(frozen=True)
class TextPosition:
    """A position in a file: line and column, both from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """Return it as compilers print it, which editors and terminals make a link."""
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Problem:
    """A problem: its path (`warehouses.0.name`), what was expected, and the value found unless it may be secret."""

    path: str
    expected: str
    found: str = ""
    position: TextPosition | None = None
    """Where it is in the file; None if there is no file, or if it is not known."""

    def __str__(self) -> str:
        """Return the problem as one line."""
        prefix = f"{self.path}: " if self.path else ""
        return f"{prefix}{self.expected}" + (f" (found {self.found})" if self.found else "")


class SpecError(LakewrightError):
    """A spec or environment is invalid. The message lists all problems."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        """List the problems of a source, such as the path of a file."""
        self.source = source
        self.problems = problems
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        super().__init__(
            "\n".join([f"{source}: {count}", *(f"  - {_format_with_position(problem)}" for problem in problems)])
        )


def _format_with_position(problem: Problem) -> str:
    position = problem.position
    if position is None:
        return str(problem)
    return f"{position}: {problem.expected if problem.path == position.file else problem}"


def format_path(path: Path) -> str:
    """Return a path as users write it: `warehouses.0.name`."""
    return ".".join(str(step) for step in path)


def list_problems(error: ValidationError, document: object) -> list[Problem]:
    """Convert the errors of pydantic on a document."""
    return [_problem(details, document) for details in error.errors(include_url=False)]


def _problem(details: ErrorDetails, document: object) -> Problem:
    path = format_path(_drop_union_members(details["loc"], document))
    match details["type"]:
        case "extra_forbidden":
            return Problem(path, "unknown key")
        case "missing":
            return Problem(path, "required, but missing")
        case "value_error":
            message = details["msg"].removeprefix("Value error, ")
            # Where a reference is expected, the found value may be the secret itself.
            return Problem(path, message, "" if "not the secret itself" in message else _quote(details["input"]))
        case "unknown_backend":
            backend = as_mapping(details["input"]).get("backend")
            expected = details["msg"] + _suggest(backend, details["msg"])
            return Problem(f"{path}.backend", expected, "" if backend is None else _quote(backend))
        case "cross_check" | "unknown_key":
            return Problem(path, details["msg"])
        case kind:
            # The message of a choice quotes its values.
            suggestion = _suggest(details["input"], details["msg"]) if kind in {"literal_error", "enum"} else ""
            return Problem(path, _lower_first(details["msg"]) + suggestion, _quote(details["input"]))


def _drop_union_members(location: Path, document: object) -> Path:
    """Return pydantic's path without names of union members, which are not part of the document."""
    path: list[str | int] = []
    for index, step in enumerate(location):
        if isinstance(step, str) and step.startswith("tag:"):
            continue
        if isinstance(document, Mapping):
            entries = cast(Mapping[Any, Any], document)
            if step in entries or index == len(location) - 1:
                path.append(step)
                document = entries.get(step)
        elif isinstance(document, list) and isinstance(step, int):
            path.append(step)
            document = cast(list[Any], document)[step]
    return tuple(path)


def _suggest(word: object, message: str) -> str:
    """Return a suggestion from the values that a message quotes."""
    return suggest_name(word, _QUOTED.findall(message)) if isinstance(word, str) else ""


def _lower_first(text: str) -> str:
    text = text.replace("Input should be", "expected")
    return text[:1].lower() + text[1:]


def _quote(value: object) -> str:
    if isinstance(value, bool | int | float) or value is None:
        return repr(value)
    if isinstance(value, str) and len(value) <= _MAX_QUOTED:
        return repr(value)
    return f"a {type(value).__name__}"
