"""Check the wording of the repository: `python scripts/wording.py`, a part of `make check`.

It reads comments, docstrings, message strings and names of Python files, and the text of Markdown, YAML, TOML, shell
and Make files. It prints a line for each word that plain technical English replaces, and for each test name that is
too long. It also counts phrases that stand for a noun ("the one that", "those of") or replace a plain verb ("stays").
`scripts/allowed_wording.json` has the number of phrases that a file may have. A file with more phrases is an error, and
so is a file with fewer: `python scripts/wording.py --lower` then writes the new number. Exit status 1 if a line is
printed.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALLOWED_WORDING = Path(__file__).with_name("allowed_wording.json")
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
_ADJECTIVES = (
    "current|different|earlier|existing|first|following|former|last|later|latter|missing|new|next|old|only|original|"
    "other|previous|real|right|same|second|third|valid|wrong"
)
PHRASES = {
    rf"(?:another|(?<!so )(?:this|each)|an? \w+|(?:the|its|their) (?:{_ADJECTIVES})) one(?!-| or\b)": "repeat the noun",
    r"(?:the|that) one(?=[.,;:)]| (?:that|which|who|whose|of|in|on|for|from|with|is|was|has)\b)": "repeat the noun",
    r"one (?:that|which|who|whose)": "repeat the noun",
    r"ones": "repeat the noun",
    r"those(?=[.,;:)]| (?:that|which|who|whose|of|in|on|for|from|with|without|by|to)\b)": "repeat the noun",
    r"the others": "repeat the noun",
    r"so (?:many|much)": "at most `limit` rows, or the number's name",
    r"any ?more(?=[.,;:)]|$)": "no longer",
    r"anew": "again",
    r"stay(?:s|ed|ing)?": "remain, is kept",
    r"goes|gone|went|go(?:ing)? on": "is deleted, no longer exists, continues",
    r"(?:is|are|was|were) there(?=[.,;:)]| (?:already|now|still|yet)\b)": "exist",
    r"(?:un)?answer(?:s|ed|ing)?": "response, respond",
    r"\w*(?:behaviour|colour|favour|normalis|serialis|authoris|recognis|artefact)\w*": "the American spelling",
    r"look-ups?": "lookup",
}
"""The replacement of a phrase, by its pattern. The allow-list has the number of phrases of a file."""
CLAUSE_OPENINGS = ("What", "Who", "Those", "Ones", "One that", "One which", "One whose")
"""Openings of a statement that has a clause or a pronoun as its subject. Questions may open with them."""
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
_PHRASE = re.compile(
    "|".join(rf"(?P<p{number}>\b(?:{phrase})\b)" for number, phrase in enumerate(PHRASES)), re.IGNORECASE
)
_CLAUSE_OPENING = re.compile(
    rf"(?:\A|[.!?:|]\s+|\n\s*\n|^#+ |^\s*(?:[-*]|\d+\.)\s)[\s*_>#|-]*(?P<opening>{'|'.join(CLAUSE_OPENINGS)})\s"
    r"(?:(?!\n\s*\n)[^.:;?|])*(?P<end>\?)?",
    re.MULTILINE,
)
_CODE_BLOCK = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"`[^`\n]+`")
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True, order=True)
class Hit:
    """One word or name to replace."""

    line: int
    message: str


@dataclass(frozen=True)
class PythonFile:
    """The parts of a Python source that are checked."""

    names: Mapping[str, int]
    """Line of the first use of each name."""
    comments: list[tuple[int, str]]
    """Line and text of each comment; comments on consecutive lines are one text."""
    nodes: list[ast.AST]


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


def check_phrases(text: str, line: int = 1) -> Iterator[Hit]:
    """Yield the phrases of a text that stand for a noun or replace a plain verb."""
    flat = _CODE_SPAN.sub(lambda span: "`" * len(span[0]), text).replace("\n", " ")
    for match in _PHRASE.finditer(flat):
        instead = list(PHRASES.values())[int(str(match.lastgroup)[1:])]
        yield Hit(line + text.count("\n", 0, match.start()), f"{match[0]!r}: write {instead}")


def check_clause_openings(text: str, line: int = 1) -> Iterator[Hit]:
    """Yield the statements of a prose text that open with a clause or a pronoun as their subject."""
    for match in _CLAUSE_OPENING.finditer(text):
        if match["end"]:
            continue
        at = line + text.count("\n", 0, match.start("opening"))
        yield Hit(at, f"sentence opens with {match['opening']!r}: open it with a noun")


def check_name(name: str, line: int) -> Iterator[Hit]:
    """Yield the refused parts of a name, in snake case or camel case."""
    for part in _NAME_PART.findall(name):
        if instead := NAME_PARTS.get(part.lower()):
            yield Hit(line, f"name {name!r}: call it {instead}")


def check_python(source: str, *, is_test: bool = False) -> list[Hit]:
    """Return what to replace in a Python file; the names of tests are measured where it is a test file."""
    hits: set[Hit] = set()
    file = _parse(source)
    for name, line in file.names.items():
        hits.update(check_name(name, line))
    for line, text in file.comments:
        hits.update(check_words(text, line))
        hits.update(check_openings(text, line))
    for node in file.nodes:
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


def find_phrases(path: Path) -> list[Hit]:
    """Return the phrases of a file that the allow-list counts."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        return find_python_phrases(text)
    prose = _CODE_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text) if path.suffix == ".md" else text
    return sorted({*check_phrases(prose), *check_clause_openings(prose)})


def find_python_phrases(source: str) -> list[Hit]:
    """Return the phrases in the comments, docstrings and messages of a Python file. A string of one word is data."""
    file = _parse(source)
    hits: set[Hit] = set()
    for line, text in file.comments:
        hits.update(check_phrases(text, line), check_clause_openings(text, line))
    for node in file.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            hits.update(check_phrases(node.value, node.lineno))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            hits.update(check_clause_openings(node.value.value, node.lineno))
    return sorted(hits)


def check_phrase_counts(hits: Mapping[str, list[Hit]], allowed: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each file with more or fewer phrases than the allow-list has.

    Args:
        hits: Phrases by file.
        allowed: Numbers of phrases by file.
    """
    for name, phrases in hits.items():
        limit = allowed.get(name, 0)
        if len(phrases) > limit:
            yield from (f"{name}:{hit.line}: {hit.message}" for hit in phrases)
            if limit:
                yield f"{name}: {len(phrases)} phrases, at most {limit} by scripts/allowed_wording.json"
        elif len(phrases) < limit:
            yield f"{name}: {len(phrases)} phrases instead of {limit}: run `python scripts/wording.py --lower`"


def lower_allowed(hits: Mapping[str, list[Hit]], allowed: Mapping[str, int]) -> dict[str, int]:
    """Return the allow-list with the numbers that are lower now, without files that have no phrase."""
    return {name: count for name, limit in allowed.items() if (count := min(limit, len(hits.get(name, ()))))}


def list_files() -> list[Path]:
    """Return the files of the repository that git knows and that hold words of ours."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    return [
        ROOT / name
        for name in names
        if (Path(name).suffix in SUFFIXES or Path(name).name == "Makefile")
        and not name.startswith(SKIPPED)
        and (ROOT / name).is_file()
    ]


@lru_cache(maxsize=1)
def _parse(source: str) -> PythonFile:
    names: dict[str, int] = {}
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            names.setdefault(token.string, token.start[0])
        elif token.type == tokenize.COMMENT:
            comments.append((token.start[0], token.string.lstrip("#:! ")))
    return PythonFile(names, list(_join_comments(comments)), list(ast.walk(ast.parse(source))))


def _join_comments(comments: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
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
    parser.add_argument("--lower", action="store_true", help="lower the numbers in scripts/allowed_wording.json")
    arguments = parser.parse_args()
    files = [path.resolve() for path in arguments.files] or list_files()
    allowed: dict[str, int] = json.loads(ALLOWED_WORDING.read_text("utf-8"))
    lines: list[str] = []
    phrases: dict[str, list[Hit]] = {}
    for path in files:
        name = str(path.relative_to(ROOT))
        lines += [f"{name}:{hit.line}: {hit.message}" for hit in check_file(path)]
        phrases[name] = find_phrases(path)
    if arguments.lower:
        unread = {name: limit for name, limit in allowed.items() if arguments.files and name not in phrases}
        allowed = dict(sorted({**unread, **lower_allowed(phrases, allowed)}.items()))
        ALLOWED_WORDING.write_text(json.dumps(allowed, indent=2) + "\n", "utf-8")
    lines += check_phrase_counts(phrases, allowed)
    if not arguments.files:
        lines += [f"{name}: no such file, in scripts/allowed_wording.json" for name in sorted({*allowed} - {*phrases})]
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
