"""Check the names in the repository's Python files: `python scripts/clear_names.py`, a part of `make check`.

It prints one line for each function that no verb names, for each variable that points instead of naming, and for each
class outside the tests whose name another class has. The names in scripts/allowed_names.txt are allowed, such as keys
of JSON documents; an entry whose name no longer exists is printed as well, so the list only becomes shorter. Exit
status 1 if it prints a line.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = (
    "benchmarks",
    "components/lakewright",
    "demo",
    "engine/lakewright_engine",
    "infra",
    "sandbox/lakewright_sandbox",
    "scripts",
    "spark/lakewright_spark",
)
TESTS = ("tests",)
ALLOWED_NAMES = Path(__file__).with_name("allowed_names.txt")

_PREPOSITIONS = frozenset(
    [
        "of",
        "in",
        "on",
        "at",
        "to",
        "for",
        "by",
        "from",
        "with",
        "under",
        "over",
        "until",
        "since",
        "before",
        "after",
        "once",
        "within",
        "beside",
        "between",
        "without",
        "as",
        "than",
        "against",
        "among",
        "behind",
        "per",
        "through",
    ]
)
_CONVERSIONS = frozenset({"to", "from", "as", "with"})
"""First words of `to_json`, `from_state`, `as_mapping` and `with_mark`."""
_LAST_PREPOSITIONS = frozenset({"of", "in", "to", "for", "by", "at", "from", "with"})
_PARTICIPLE = re.compile(
    r"[a-z]+(ed|en|ing)|given|made|held|kept|left|found|sent|said|known|meant|put|gone|built|bound"
)
_VERBS = frozenset(
    [
        "need",
        "seed",
        "feed",
        "embed",
        "string",
        "exceed",
        "proceed",
        "succeed",
        "shed",
        "speed",
        "open",
        "reopen",
        "listen",
        "happen",
        "tighten",
        "shorten",
        "lengthen",
        "flatten",
        "widen",
        "harden",
        "loosen",
        "ping",
        "bring",
    ]
)
"""Verbs that end as participles do."""
_POINTERS = frozenset(
    [
        "found",
        "made",
        "given",
        "listed",
        "there",
        "here",
        "each",
        "kept",
        "left",
        "wanted",
        "asked",
        "said",
        "place",
        "where",
        "what",
        "who",
        "known",
        "held",
        "own",
        "words",
        "others",
        "rest",
        "again",
        "gone",
        "seen",
        "named",
        "brought",
        "meant",
        "stays",
        "declared",
        "recorded",
        "chosen",
    ]
)
_EXEMPT_DECORATORS = frozenset({"property", "cached_property", "setter", "fixture", "override"})


@dataclass(frozen=True, order=True)
class UnclearName:
    """A name that says less than its reader needs."""

    line: int
    name: str
    reason: str


def is_unclear_function(name: str) -> bool:
    """Return whether the name of a function begins with no verb, or ends with a preposition."""
    parts = name.strip("_").split("_")
    if parts[0] in _CONVERSIONS and len(parts) > 1:
        return parts[-1] in _LAST_PREPOSITIONS
    is_participle = bool(_PARTICIPLE.fullmatch(parts[0])) and parts[0] not in _VERBS
    return parts[0] in _PREPOSITIONS or is_participle or (len(parts) > 1 and parts[-1] in _LAST_PREPOSITIONS)


def _read_decorator_name(decorator: ast.expr) -> str:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(function, "id", getattr(function, "attr", ""))


def find_unclear_names(source: str) -> Iterator[UnclearName]:
    """Yield the unclear names that a Python file defines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {_read_decorator_name(item) for item in node.decorator_list}
            is_exempt = node.name.startswith("__") or decorators & _EXEMPT_DECORATORS
            if not is_exempt and is_unclear_function(node.name):
                yield UnclearName(node.lineno, node.name, "name the function by its verb and object")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in _POINTERS:
            yield UnclearName(node.lineno, node.id, "name the thing")
        elif isinstance(node, ast.arg) and node.arg in _POINTERS:
            yield UnclearName(node.lineno, node.arg, "name the thing")


def check_sources(sources: Mapping[str, str], allowed: Counter[str]) -> Iterator[str]:
    """Yield a line for each unclear name, and for each allowed name that no file has.

    Args:
        sources: Python sources by path.
        allowed: Number of allowed definitions by `PATH NAME`.
    """
    remaining = Counter(allowed)
    for path, source in sources.items():
        for unclear in sorted(find_unclear_names(source)):
            if remaining[f"{path} {unclear.name}"] > 0:
                remaining[f"{path} {unclear.name}"] -= 1
            else:
                yield f"{path}:{unclear.line}: {unclear.name!r}: {unclear.reason}"
    for entry in (+remaining).elements():
        yield f"{ALLOWED_NAMES.name}: remove `{entry}`: there is no such name"


def find_repeated_classes(sources: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each class whose name an earlier class has, in the same or in another file.

    Args:
        sources: Python sources by path.
    """
    definitions: dict[str, str] = {}
    for path, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                position = f"{path}:{node.lineno}"
                if (first := definitions.setdefault(node.name, position)) != position:
                    yield f"{position}: class {node.name!r}: {first} has a class of this name; rename one of them"


def read_sources(root: Path, folders: Iterable[str]) -> dict[str, str]:
    """Return the Python sources below folders of `root` by path, without hidden folders such as `.venv`."""
    files = {file.relative_to(root): file for folder in folders for file in (root / folder).rglob("*.py")}
    return {
        path.as_posix(): file.read_text(encoding="utf-8")
        for path, file in sorted(files.items())
        if not any(part.startswith(".") for part in path.parts)
    }


def main() -> int:
    """Print the unclear names of programs and tests, and the repeated classes of programs."""
    programs = read_sources(ROOT, PROGRAMS)
    allowed = Counter(ALLOWED_NAMES.read_text(encoding="utf-8").splitlines())
    messages = [*check_sources(programs | read_sources(ROOT, TESTS), allowed), *find_repeated_classes(programs)]
    for message in messages:
        print(message)
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
