"""The two forms of times that commands print: for texts and for JSON. Both are UTC.

The engine, which may not import this package, has the same functions in `lakewright_engine.model.times`.
"""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """Return a time for texts.

    >>> format_time(datetime(2026, 1, 31, 12, 0, 0, 250000, tzinfo=UTC))
    '2026-01-31 12:00:00 UTC'
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_day(moment: datetime) -> str:
    """Return the UTC day of an instant, as in the columns `day` of tables in `ops`.

    >>> format_day(datetime(2026, 1, 31, 12, tzinfo=UTC))
    '2026-01-31'
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d}"


def format_json_time(moment: datetime) -> str:
    """Return a time for JSON: RFC 3339 in UTC, with a fraction only if the time has one.

    >>> format_json_time(datetime(2026, 1, 31, 12, tzinfo=UTC))
    '2026-01-31T12:00:00Z'
    """
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def format_json_time_as_text(text: str) -> str:
    """Return a time of JSON, such as of a server or a state, for texts. Other texts are returned unchanged.

    >>> format_json_time_as_text("2026-01-31T13:00:00.123456789+01:00")
    '2026-01-31 12:00:00 UTC'
    """
    moment = parse_json_time(text)
    return text if moment is None else format_time(moment)


def parse_json_time(text: str) -> datetime | None:
    """Return a time in RFC 3339; None for other texts. A time without a zone is UTC.

    >>> parse_json_time("today")
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
