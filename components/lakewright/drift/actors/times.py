"""Compare times of records with the time of a stack's last update."""

from __future__ import annotations

from lakewright_spark.times import parse_json_time


def is_since(at: str, updated: str) -> bool:
    """Return whether a time in whole seconds is in or after the second of the stack's last update."""
    moment, start = parse_json_time(at), parse_json_time(updated)
    return moment is not None and start is not None and moment >= start.replace(microsecond=0)


def is_after(at: str, updated: str) -> bool:
    """Return whether a time is after the stack's last update.

    A time in whole seconds must be of a later second: a record of the update itself may have the same second.
    """
    moment, start = parse_json_time(at), parse_json_time(updated)
    if moment is None or start is None:
        return False
    return moment > start
