"""Problems of a spec or environment, each with path, expectation and found value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lakewright.errors import LakewrightError

Path = tuple[str | int, ...]
SpecMistake = tuple[Path, str]
"""Path of a mistake in a spec, and what is wrong."""

_MAX_QUOTED = 60


@dataclass(frozen=True)
class Problem:
    """A problem: its path (`warehouses.0.name`), what was expected, and the value found unless it may be secret."""

    path: str
    expected: str
    found: str = ""

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
        super().__init__("\n".join([f"{source}: {count}", *(f"  - {problem}" for problem in problems)]))


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
            return Problem(f"{path}.backend", details["msg"], _quote_key(details["input"], "backend"))
        case "cross_check" | "unknown_key":
            return Problem(path, details["msg"])
        case _:
            return Problem(path, _lower_first(details["msg"]), _quote(details["input"]))


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


def _quote_key(value: Any, key: str) -> str:
    return _quote(cast(Mapping[str, Any], value)[key]) if isinstance(value, Mapping) and key in value else ""


def _lower_first(text: str) -> str:
    text = text.replace("Input should be", "expected")
    return text[:1].lower() + text[1:]


def _quote(value: object) -> str:
    if isinstance(value, bool | int | float) or value is None:
        return repr(value)
    if isinstance(value, str) and len(value) <= _MAX_QUOTED:
        return repr(value)
    return f"a {type(value).__name__}"
