"""`scripts/wording.py` finds words that plain technical English replaces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wording(load_script: Callable[[str], ModuleType]) -> Any:
    return load_script("wording")


def found(hits: list[Any]) -> list[tuple[int, str]]:
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
def test_words(wording: Any, text: str, word: str) -> None:
    assert found(wording.check_text(text)) == [(1, word)]


@pytest.mark.parametrize("text", ["Totold is a name.", "Recommended values.", "An amendment."])
def test_parts_of_words_are_allowed(wording: Any, text: str) -> None:
    assert wording.check_text(text) == []


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
def test_openings_of_sentences(wording: Any, text: str, line: int) -> None:
    assert [hit.line for hit in wording.check_text(text)] == [line]


def test_openings_are_checked_in_docstrings_and_comments_only(wording: Any) -> None:
    source = '"""Of two, the later."""\nNAME = "Of two"\n# Of two, the later.\n# It is one of\n# Of all.\n'
    assert [hit.line for hit in wording.check_python(source)] == [1, 3, 5]


def test_words_in_messages(wording: Any) -> None:
    assert found(wording.check_python('raise ValueError(f"{name} told us")')) == [(1, "'told'")]


@pytest.mark.parametrize("name", ["_told", "shown", "what_is_told", "ToldError", "told_by_server"])
def test_parts_of_names(wording: Any, name: str) -> None:
    assert found(wording.check_python(f"{name} = 1\n")) == [(1, f"name {name!r}")]


def test_long_test_names(wording: Any) -> None:
    source = f"def test_{'a' * 56}() -> None: ...\ndef test_{'b' * 55}() -> None: ...\n"
    assert [hit.line for hit in wording.check_python(source, is_test=True)] == [1]
    assert wording.check_python(source) == []
