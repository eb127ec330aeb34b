"""The name that a user may have meant by a mistyped name."""

from __future__ import annotations

from collections.abc import Iterable


def suggest_name(word: object, names: Iterable[object]) -> str:
    """Return the end of a message, with the name that is most like a word; empty if no name is like it.

    >>> suggest_name("warehuose", ["warehouse", "warehouses", "storage"])
    '; did you mean `warehouse`?'
    >>> suggest_name("color", ["warehouse"])
    ''
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

    matches = get_close_matches(str(word), [str(name) for name in names], 1)
    return f"; did you mean `{matches[0]}`?" if matches else ""
