"""Date patterns of text columns, in the syntax of Java's DateTimeFormatter. Texts sort like dates. Pure functions."""

from __future__ import annotations

import re
from datetime import datetime

DEFAULT_PATTERN = "yyyy-MM-dd"
_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H"}
_UNITS = {"year": 1, "month": 2, "day": 3, "hour": 4}
_TOKEN = re.compile(r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>[^']*)'|(?P<other>[^A-Za-z'{}\[\]#]+)")

_YEAR = "(?!0000)[0-9]{4}"
_FOURTHS = "(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = f"(?:[0-9]{{2}}{_FOURTHS}|{_FOURTHS}00)"
_DAYS = (
    ("0[13578]|1[02]", "0[1-9]|[12][0-9]|3[01]"),
    ("0[469]|11", "0[1-9]|[12][0-9]|30"),
    ("02", "0[1-9]|1[0-9]|2[0-8]"),
)
"""Months, and the numbers of their days. 29 February is apart."""


def validate_pattern(pattern: str, unit: str) -> str:
    """Return the pattern. Raises ValueError unless it is yyyy, MM, dd, HH in this order, at least down to the unit.

    Rows are compared by their text, and only texts of such patterns sort by time.
    """
    fields = [letters for letters, _ in _tokens(pattern) if letters]
    expected = list(_FIELDS)[: len(fields)]
    if not fields or fields != expected:
        raise ValueError(f"expected a pattern of yyyy, MM, dd, HH in this order, found {pattern!r}")
    if len(fields) < _UNITS[unit]:
        raise ValueError(f"expected a pattern that tells the {unit}, found {pattern!r}")
    return pattern


def format_moment(moment: datetime, pattern: str) -> str:
    """Return the moment in the format of the pattern."""
    return "".join(moment.strftime(_FIELDS[letters]) if letters else text for letters, text in _tokens(pattern))


def date_expression(pattern: str) -> str:
    """Return the regular expression, for Java and Python, of the texts that the pattern writes for real dates.

    Args:
        pattern: A pattern that `validate_pattern` accepts.

    Returns:
        An expression without anchors, which has to match the whole text.
    """
    fields: list[str] = []
    literals = [""]
    for letters, text in _tokens(pattern):
        if letters:
            fields.append(letters)
            literals.append("")
        else:
            literals[-1] += re.escape(text)
    first, after_year, *later = literals
    if len(fields) == 1:
        return f"{first}{_YEAR}{after_year}"
    after_month, after_day, after_hour = [*later, "", ""][:3]
    if len(fields) == 2:  # year and month
        return f"{first}{_YEAR}{after_year}(?:0[1-9]|1[0-2]){after_month}"
    days = "|".join(f"(?:{months}){after_month}(?:{numbers})" for months, numbers in _DAYS)
    dates = f"(?:{_YEAR}{after_year}(?:{days})|{_LEAP_YEAR}{after_year}02{after_month}29)"
    hours = "(?:[01][0-9]|2[0-3])" if len(fields) > 3 else ""  # year, month, day and hour
    return f"{first}{dates}{after_day}{hours}{after_hour}"


def _tokens(pattern: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None:
            raise ValueError(f"expected a date pattern of Java's DateTimeFormatter, found {pattern!r}")
        literal = match["other"] if match["other"] is not None else match["quoted"]
        # Two quotes stand for a quote in the text.
        tokens.append((match["letters"] or "", "'" if match["quoted"] == "" else literal or ""))
        at = match.end()
    return tokens
