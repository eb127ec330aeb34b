"""`scripts/wording.py` finds words that plain technical English replaces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checker(load_script: Callable[[str], ModuleType]) -> Any:
    return load_script("wording")


def summarize(hits: list[Any]) -> list[tuple[int, str]]:
    return [(hit.line, hit.message.partition(":")[0]) for hit in hits]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("The user is told.", "'told'"),
        ("Whoever asks may read.", "'Whoever'"),
        ("The object is somebody\nelse's.", "'somebody'"),
        ("Mending the state is safe.", "'Mending'"),
        ("It changed behind\nits back.", "'behind its back'"),
        ("A role of one's own.", '"of one\'s own"'),
    ],
)
def test_words(checker: Any, text: str, word: str) -> None:
    assert summarize(checker.check_text(text)) == [(1, word)]


@pytest.mark.parametrize("text", ["Totold is a name.", "Recommended values.", "An amendment."])
def test_parts_of_words_are_allowed(checker: Any, text: str) -> None:
    assert checker.check_text(text) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Of these, one is kept.", 1),
        ("It ends.\nOf these, one is kept.", 2),
        ("- Of these, one is kept.", 1),
        ("It ends. So often a call is repeated.", 1),
        ("# Title\n\nThat there is one is known.", 3),
    ],
)
def test_openings_of_sentences(checker: Any, text: str, line: int) -> None:
    assert [hit.line for hit in checker.check_text(text)] == [line]


def test_openings_are_checked_in_docstrings_and_comments_only(checker: Any) -> None:
    source = '"""Of two, the later."""\nNAME = "Of two"\n# Of two, the later.\n# It is one of\n# Of all.\n'
    assert [hit.line for hit in checker.check_python(source)] == [1, 3, 5]


def test_words_in_messages(checker: Any) -> None:
    assert summarize(checker.check_python('raise ValueError(f"{name} told us")')) == [(1, "'told'")]


@pytest.mark.parametrize("name", ["_told", "shown", "what_is_told", "ToldError", "told_by_server"])
def test_parts_of_names(checker: Any, name: str) -> None:
    assert summarize(checker.check_python(f"{name} = 1\n")) == [(1, f"name {name!r}")]


def test_long_test_names(checker: Any) -> None:
    source = f"def test_{'a' * 56}() -> None: ...\ndef test_{'b' * 55}() -> None: ...\n"
    assert [hit.line for hit in checker.check_python(source, is_test=True)] == [1]
    assert checker.check_python(source) == []


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("The old table and the new one.", "'the new one'"),
        ("Another one replaces it.", "'Another one'"),
        ("It is the one that the spec names.", "'the one'"),
        ("Return one that is unused.", "'one that'"),
        ("Older ones are removed.", "'ones'"),
        ("Return those of the stack.", "'those'"),
        ("It stops the others.", "'the others'"),
        ("Keep so many rows.", "'so many'"),
        ("It is not used any more.", "'any more'"),
        ("The bucket stays.", "'stays'"),
        ("The table is gone.", "'gone'"),
        ("The files that are there.", "'are there'"),
        ("The server answers.", "'answers'"),
        ("Its behaviour.", "'behaviour'"),
        ("The look-up of a role.", "'look-up'"),
    ],
)
def test_phrases(checker: Any, text: str, phrase: str) -> None:
    assert summarize(checker.check_phrases(text)) == [(1, phrase)]


@pytest.mark.parametrize(
    "text",
    [
        "Each one-line file has one idea.",
        "Only one of them runs at a time, so that one run is complete.",
        "Those tables remain.",
        "As many as the limit allows, so far.",
        "No more than any more recent version.",
        "Is there a table?",
        "There are two others.",
    ],
)
def test_numbers_and_adjectives_are_no_phrases(checker: Any, text: str) -> None:
    assert list(checker.check_phrases(text)) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("What is found is printed.", 1),
        ("It ends.\nWho owns it is unknown.", 2),
        ("# Title\n\n- Those of the stack are kept.", 3),
        ("It ends. One that is\nin use is kept. Why?", 1),
    ],
)
def test_clauses_as_subject(checker: Any, text: str, line: int) -> None:
    assert [hit.line for hit in checker.check_clause_openings(text)] == [line]


def test_questions_open_with_what(checker: Any) -> None:
    assert list(checker.check_clause_openings("## What is printed?\n\nIt prints what it found. Who\nowns it?")) == []


def test_phrases_of_python_are_in_sentences(checker: Any) -> None:
    source = '"""What is kept."""\nKIND = "gone"\nTEXT = "What is gone"\n# Older ones\n# remain.\n'
    assert [hit.line for hit in checker.find_python_phrases(source)] == [1, 3, 4]


def test_code_of_markdown_has_no_phrases(checker: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```\nit stays\n```\nIt stays.\n")
    assert [hit.line for hit in checker.find_phrases(page)] == [4]


def test_counts_of_phrases_only_become_lower(checker: Any) -> None:
    hits = {"a.py": [checker.Hit(1, "x"), checker.Hit(2, "y")], "b.py": [checker.Hit(3, "z")], "c.py": []}
    allowed = {"a.py": 1, "b.py": 1, "c.py": 1}
    assert list(checker.check_phrase_counts(hits, allowed)) == [
        "a.py:1: x",
        "a.py:2: y",
        "a.py: 2 phrases, at most 1 by scripts/allowed_wording.json",
        "c.py: 0 phrases instead of 1: run `python scripts/wording.py --lower`",
    ]
    assert checker.lower_allowed(hits, allowed) == {"a.py": 1, "b.py": 1}
