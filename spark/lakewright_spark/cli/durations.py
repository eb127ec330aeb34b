"""Durations as people write them on a command line: `90s`, `45m`, `24h`, `7d`."""

from __future__ import annotations

import re
from datetime import timedelta

import typer

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str) -> timedelta:
    """Read one; typer's BadParameter for anything else."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text.strip())
    if match is None or int(match[1]) == 0:
        raise typer.BadParameter(f"expected a duration such as 90s, 45m, 24h or 7d, found {text!r}")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
