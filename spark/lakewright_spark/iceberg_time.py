"""Times as Iceberg's metadata has them: whole milliseconds, of the epoch or of a span."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def instant_of(milliseconds: int) -> datetime:
    """An instant (UTC)."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


def span_of(milliseconds: int | None) -> timedelta | None:
    """A span; None where nothing is said."""
    return None if milliseconds is None else timedelta(milliseconds=milliseconds)
