"""Durations as users write them: `45m`, `4h` or `2d`."""

from __future__ import annotations

import re

_SECONDS = {"m": 60, "h": 3600, "d": 86_400}


def seconds_between(duration: str, least: int, most: int, expected: str, *, units: str = "mh") -> int:
    """Return the seconds of a duration such as `45m` or `4h`.

    Args:
        duration: Amount and unit.
        least: Fewest seconds.
        most: Most seconds.
        expected: Description of the range, for the message.
        units: Allowed units: `m`, `h`, `d`.

    Raises:
        ValueError: It is not a duration, or is out of range.
    """
    match = re.fullmatch(rf"(\d{{1,4}})([{units}])", duration)
    seconds = int(match[1]) * _SECONDS[match[2]] if match else 0
    if not least <= seconds <= most:
        raise ValueError(f"expected {expected}")
    return seconds
