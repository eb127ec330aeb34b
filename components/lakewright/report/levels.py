"""How serious a result is: the levels that the page shows by a sign and a color."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Level(StrEnum):
    """Levels of results, the least serious first."""

    NONE = "none"
    """There is no result."""
    OK = "ok"
    WARN = "warn"
    """Something could not be checked, or needs attention soon."""
    BAD = "bad"
    """Something is not as declared."""


def find_worst(levels: Iterable[Level]) -> Level:
    """Return the most serious level; NONE without levels."""
    order = list(Level)
    return max(levels, key=order.index, default=Level.NONE)
