"""Compare times of records with the time of a stack's last update."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_time(text: str) -> datetime | None:
    """Return a time in RFC 3339; None for other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def format_time(moment: datetime) -> str:
    """Return a time in RFC 3339 in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_since(at: str, updated: str) -> bool:
    """Return whether a time in whole seconds is in or after the second of the stack's last update."""
    moment, start = parse_time(at), parse_time(updated)
    return moment is not None and start is not None and moment >= start.replace(microsecond=0)


def is_after(at: str, updated: str) -> bool:
    """Return whether a time is after the stack's last update.

    A time in whole seconds must be of a later second: a record of the update itself may have the same one.
    """
    moment, start = parse_time(at), parse_time(updated)
    if moment is None or start is None:
        return False
    return moment > start
