"""Time and identifiers: one time source that tests can move, and the time-ordered ids made from it."""

from __future__ import annotations

import secrets
import time
import uuid
from datetime import UTC, datetime, timedelta


class Clock:
    """Microseconds since the epoch, UTC. `advance` moves it forward, so that a test need not wait for an expiry."""

    def __init__(self) -> None:
        self._ahead = 0

    def now(self) -> int:
        return time.time_ns() // 1000 + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += int(seconds * 1_000_000)


def timestamp(micros: int) -> str:
    """RFC 3339 with microseconds, as the server writes all its times."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def optional_timestamp(micros: int | None) -> str | None:
    return None if micros is None else timestamp(micros)


def micros_of(moment: datetime) -> int:
    """The inverse of `timestamp`, for times that requests carry."""
    return int(moment.timestamp() * 1_000_000)


def new_id() -> str:
    """A UUIDv7 (RFC 9562): rows sort by the time they were made."""
    millis = time.time_ns() // 1_000_000
    value = (millis & (1 << 48) - 1) << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))
