"""Suggest the name that a user may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest_name(word: str, names: Iterable[str]) -> str:
    """Return what joins "no such name" and what to do: a question with the names most like a word, or a semicolon.

    >>> suggest_name("acm", ["acme", "globex"])
    '; did you mean `acme`? '
    >>> suggest_name("other", ["acme"])
    '; '
    """
    matches = get_close_matches(word, [*names])
    return f"; did you mean {' or '.join(f'`{name}`' for name in matches)}? " if matches else "; "
