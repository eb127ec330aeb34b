"""Ends in time, as specs write them, and the clock that they are compared with. All times are in UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

Clock = Callable[[], datetime]
"""Returns the present time, in UTC."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_EXPECTED = "expected a day such as `2027-01-31`, or a time with its zone such as `2027-01-31T18:00:00Z`"
_DURATION = re.compile(r"(\d{1,5})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def read_clock() -> datetime:
    """Return the present time, in UTC."""
    return datetime.now(UTC)


def parse_end(text: str) -> datetime:
    """Return the moment at which something ends. A day ends at midnight after it, in UTC.

    >>> parse_end("2027-01-31").isoformat()
    '2027-02-01T00:00:00+00:00'
    >>> parse_end("2027-01-31T18:00:00+01:00").isoformat()
    '2027-01-31T17:00:00+00:00'

    Raises:
        ValueError: The text is neither a day nor a time with its zone, or has no such day.
    """
    try:
        if _DAY.fullmatch(text):
            return datetime.combine(date.fromisoformat(text), time(), UTC) + timedelta(days=1)
        moment = datetime.fromisoformat(text)
        end = None if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        end = None
    if end is None:
        raise ValueError(_EXPECTED)
    return end


def format_moment(moment: datetime) -> str:
    """Return a moment as policies of AWS and states have it: whole seconds in UTC, such as `2027-02-01T00:00:00Z`."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def has_ended(until: str | None, now: datetime) -> bool:
    """Return whether an end has come. Without an end, it never comes.

    >>> has_ended("2027-01-31", datetime(2027, 1, 31, 23, 59, tzinfo=UTC))
    False
    """
    return until is not None and parse_end(until) <= now


def parse_duration(text: str) -> timedelta:
    """Return a duration such as `30d`, `12h` or `2w`.

    Raises:
        ValueError: The text is something else.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("expected a number of hours, days or weeks, such as `12h`, `30d` or `2w`")
    return int(match[1]) * _UNITS[match[2]]


def _check_end(text: str) -> str:
    parse_end(text)
    return text


_SCHEMA = WithJsonSchema({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}"})
EndText = Annotated[str, AfterValidator(_check_end), _SCHEMA]
"""Last day, in UTC, or a time with its zone."""
