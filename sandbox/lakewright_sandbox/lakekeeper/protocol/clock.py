"""Time and identifiers: one time source that tests can advance, and time-ordered ids."""

from __future__ import annotations

import secrets
import time
import uuid
from datetime import UTC, datetime, timedelta


class Clock:
    """Microseconds since the epoch, UTC. Tests advance it instead of waiting."""

    def __init__(self) -> None:
        """Start at the system's time."""
        self._ahead = 0

    def now(self) -> int:
        """Return the current time in microseconds."""
        return time.time_ns() // 1000 + self._ahead

    def advance(self, seconds: float) -> None:
        """Advance the clock by some seconds."""
        self._ahead += int(seconds * 1_000_000)


def timestamp(micros: int) -> str:
    """Return a time as RFC 3339 with microseconds, the server's format."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def optional_timestamp(micros: int | None) -> str | None:
    """Return a time in the server's format, None for None."""
    return None if micros is None else timestamp(micros)


def to_micros(moment: datetime) -> int:
    """Return the microseconds of a time in a request, the inverse of `timestamp`."""
    return int(moment.timestamp() * 1_000_000)


def new_id() -> str:
    """Return a UUIDv7 (RFC 9562), which sorts by creation time."""
    millis = time.time_ns() // 1_000_000
    value = (millis & (1 << 48) - 1) << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))
