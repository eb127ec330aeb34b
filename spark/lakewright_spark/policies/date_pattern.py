"""Date patterns of text columns: those of Java's DateTimeFormatter whose texts sort as the dates do. Pure functions."""

from __future__ import annotations

import re
from datetime import datetime

DEFAULT_PATTERN = "yyyy-MM-dd"
_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H"}
_UNITS = {"year": 1, "month": 2, "day": 3, "hour": 4}
_TOKEN = re.compile(r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>[^']*)'|(?P<other>[^A-Za-z'{}\[\]#]+)")


def checked_pattern(pattern: str, unit: str) -> str:
    """The pattern; ValueError unless it is yyyy, MM, dd, HH from the left on, down to the unit at least.

    Rows are compared by their text, and only these texts are in the order of time.
    """
    fields = [letters for letters, _ in _tokens(pattern) if letters]
    expected = list(_FIELDS)[: len(fields)]
    if not fields or fields != expected:
        raise ValueError(f"expected a pattern of yyyy, MM, dd, HH in this order, found {pattern!r}")
    if len(fields) < _UNITS[unit]:
        raise ValueError(f"expected a pattern that tells the {unit}, found {pattern!r}")
    return pattern


def formatted(moment: datetime, pattern: str) -> str:
    """The moment as the pattern writes it."""
    return "".join(moment.strftime(_FIELDS[letters]) if letters else text for letters, text in _tokens(pattern))


def _tokens(pattern: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None:
            raise ValueError(f"expected a date pattern of Java's DateTimeFormatter, found {pattern!r}")
        literal = match["other"] if match["other"] is not None else match["quoted"]
        # Two quotes are one in a text.
        found.append((match["letters"] or "", "'" if match["quoted"] == "" else literal or ""))
        at = match.end()
    return found
