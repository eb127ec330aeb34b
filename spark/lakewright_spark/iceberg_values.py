"""Values as Iceberg's metadata and clients write them: times in milliseconds, switches, retries and time limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

COMMIT_RETRIES: Mapping[str, str] = {
    "commit.retry.num-retries": "10",
    "commit.retry.min-wait-ms": "100",
    "commit.retry.max-wait-ms": "10000",
}
"""Properties of new tables (milliseconds): Texera's defaults, which suit many writers on one table."""
METADATA_LIMITS: Mapping[str, str] = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
"""Properties of tables in `ops`. Each commit writes a metadata file, and only Lakekeeper deletes old files."""


def find_missing_limits(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the limits that an existing table lacks. Values that a user set remain.

    A table whose old metadata files a user keeps gets no number either: Iceberg then forgets files beyond the number,
    and nothing deletes them.
    """
    if is_switched_off(properties, "write.metadata.delete-after-commit.enabled"):
        return {}
    return {key: value for key, value in METADATA_LIMITS.items() if key not in properties}


CONNECT_SECONDS = 10.0
"""Time limit of catalog clients to connect."""
SOCKET_SECONDS = 60.0
"""Time limit of catalog clients between two reads of a response."""

LONGEST = timedelta.max // timedelta(milliseconds=1)


def to_instant(milliseconds: int) -> datetime:
    """Return the instant (UTC) of a number of milliseconds since the epoch."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


def to_span(milliseconds: int) -> timedelta:
    """Return a time span. Java's largest number, which tables use for "forever", exceeds Python's range."""
    return timedelta(milliseconds=min(milliseconds, LONGEST))


def optional_span(milliseconds: int | None) -> timedelta | None:
    """Return a time span, or None if the metadata has none."""
    return None if milliseconds is None else to_span(milliseconds)


def subtract_span(now: datetime, span: timedelta) -> datetime:
    """Return the instant that lies a span before `now`, but not before the epoch."""
    epoch = to_instant(0)
    return epoch if span >= now - epoch else now - span


def is_switched_off(properties: Mapping[str, str], switch: str) -> bool:
    """Return whether a switch that is on by default is off. Iceberg reads every value but `true` as off."""
    value = properties.get(switch)  # maps of Java take no default
    return value is not None and value.lower() != "true"
