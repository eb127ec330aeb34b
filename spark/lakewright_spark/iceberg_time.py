"""Times as Iceberg's metadata has them: whole milliseconds, of the epoch or of a span."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def instant_of(milliseconds: int) -> datetime:
    """An instant (UTC)."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


LONGEST = timedelta.max // timedelta(milliseconds=1)


def span_of(milliseconds: int) -> timedelta:
    """Return a span; tables say "for ever" with the largest number of Java's, which no span of Python's holds."""
    return timedelta(milliseconds=min(milliseconds, LONGEST))


def optional_span(milliseconds: int | None) -> timedelta | None:
    """Return a span; None where the metadata has none."""
    return None if milliseconds is None else span_of(milliseconds)


def before(now: datetime, span: timedelta) -> datetime:
    """Return the instant that lies a span before another, at the earliest the beginning of the epoch."""
    epoch = instant_of(0)
    return epoch if span >= now - epoch else now - span
