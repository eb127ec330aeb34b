"""Check the wording of the repository: `python scripts/wording.py`, a part of `make check`.

It reads comments, docstrings, message strings and names of Python files, and the text of Markdown, YAML, TOML, shell
and Make files. It prints one line for each word that plain technical English replaces, and for each test name that is
too long. Exit status 1 when there is one.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = (
    "docs/schema/",
    "scripts/wording.py",
    "tests/engine/backend-sample/",
    "tests/engine/cases/",
    "tests/engine/recorded/",
    "tests/kubernetes/render/",
    "tests/unit/test_wording.py",
)
"""Recorded data, and the files that list the refused words."""
SUFFIXES = {".md", ".py", ".sh", ".toml", ".yaml", ".yml", ".j2"}
MAX_TEST_NAME = 60

WORDS = {
    r"told": "reported, printed, or the name of the value",
    r"whoever": "the user, any caller",
    r"somebody": "a user, another process",
    r"mend(?:s|ed|ing)?": "fix",
    r"behind (?:its|their|his|her|your) back": "outside the stack",
    r"of one['\N{RIGHT SINGLE QUOTATION MARK}]s own": "custom, own",
}
"""What to write instead, by the pattern of a word."""
OPENINGS = ("Of", "So often", "That there is")
NAME_PARTS = {
    "told": "describe, to_json, format_error, or what the value is",
    "shown": "output, rendered, or what the value is",
    "whoever": "user, caller",
    "somebody": "user, other",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "mending": "fixing",
}
"""What to call it instead, by the part of a name."""

_WORD = re.compile("|".join(rf"(?P<w{number}>\b{word}\b)" for number, word in enumerate(WORDS)), re.IGNORECASE)
_OPENING = re.compile(rf"(?:\A|[.!?:|]\s+|\n\s*\n|^)[\s*_>#|-]*(?:\d+\.\s+)?\b({'|'.join(OPENINGS)})\s", re.MULTILINE)
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True, order=True)
class Hit:
    """One word or name to replace."""

    line: int
    message: str


def check_words(text: str, line: int = 1) -> Iterator[Hit]:
    """Yield the refused words of a text that starts on a line."""
    flat = text.replace("\n", " ")
    for match in _WORD.finditer(flat):
        instead = list(WORDS.values())[int(str(match.lastgroup)[1:])]
        yield Hit(line + text.count("\n", 0, match.start()), f"{match[0]!r}: write {instead}")


def check_openings(text: str, line: int = 1) -> Iterator[Hit]:
    """Yield the sentences of a prose text that do not open with their subject."""
    for match in _OPENING.finditer(text):
        at = line + text.count("\n", 0, match.start(1))
        yield Hit(at, f"sentence opens with {match[1]!r}: open it with its subject")


def check_name(name: str, line: int) -> Iterator[Hit]:
    """Yield the refused parts of a name, in snake case or camel case."""
    for part in _NAME_PART.findall(name):
        if instead := NAME_PARTS.get(part.lower()):
            yield Hit(line, f"name {name!r}: call it {instead}")


def check_python(source: str, *, is_test: bool = False) -> list[Hit]:
    """Return what to replace in a Python file; the names of tests are measured where it is a test file."""
    hits: set[Hit] = set()
    names: dict[str, int] = {}
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            names.setdefault(token.string, token.start[0])
        elif token.type == tokenize.COMMENT:
            comments.append((token.start[0], token.string.lstrip("#:! ")))
    for name, line in names.items():
        hits.update(check_name(name, line))
    for line, text in _joined(comments):
        hits.update(check_words(text, line))
        hits.update(check_openings(text, line))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            hits.update(check_words(node.value, node.lineno))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            hits.update(check_openings(node.value.value, node.lineno))
        elif is_test and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = len(node.name)
            if node.name.startswith("test_") and length > MAX_TEST_NAME:
                hits.add(Hit(node.lineno, f"{node.name}: {length} characters, at most {MAX_TEST_NAME}"))
    return sorted(hits)


def check_text(text: str) -> list[Hit]:
    """Return what to replace in a file of prose, settings or commands."""
    return sorted({*check_words(text), *check_openings(text)})


def check_file(path: Path) -> list[Hit]:
    """Return what to replace in a file."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        return check_text(text)
    return check_python(text, is_test=path.name.startswith("test_"))


def list_files() -> list[Path]:
    """Return the files of the repository that git knows and that hold words of ours."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    return [
        ROOT / name
        for name in listed
        if (Path(name).suffix in SUFFIXES or Path(name).name == "Makefile")
        and not name.startswith(SKIPPED)
        and (ROOT / name).is_file()
    ]


def _joined(comments: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Join comments on consecutive lines, so that a sentence that continues on the next line is one text."""
    first, lines = 0, list[str]()
    for line, text in comments:
        if lines and line == first + len(lines):
            lines.append(text)
            continue
        if lines:
            yield first, "\n".join(lines)
        first, lines = line, [text]
    if lines:
        yield first, "\n".join(lines)


def main() -> int:
    """Print what to replace in the named files, or in the whole repository."""
    parser = argparse.ArgumentParser(description="Refuse words that plain technical English replaces.")
    parser.add_argument("files", nargs="*", type=Path, help="files to check; all files of the repository by default")
    files = [path.resolve() for path in parser.parse_args().files] or list_files()
    failed = False
    for path in files:
        for hit in check_file(path):
            failed = True
            print(f"{path.relative_to(ROOT)}:{hit.line}: {hit.message}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
