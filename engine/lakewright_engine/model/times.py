"""The two forms of times that commands print: for texts and for JSON. Both are UTC.

`lakewright_spark.times` has the same functions for the other packages: the engine imports none of them.
"""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """Return a time for texts, such as `2026-01-31 12:00:00 UTC`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_json_time(moment: datetime) -> str:
    """Return a time for JSON: RFC 3339 in UTC, with a fraction only if the time has one."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
