"""Versions of engines, as text such as `482` or `1.5.2`, and their order."""

from __future__ import annotations

import re

from lakewright.config_formats.errors import RefusedFormatError


def parse_version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version without trailing zeros, such as (1, 5, 2). Suffixes such as `-rc1` are ignored.

    Raises:
        RefusedFormatError: The text does not begin with a number.
    """
    match = re.match(r"v?(\d+(?:\.\d+)*)", text)
    if match is None:
        raise RefusedFormatError(f"--engine-version {text}: expected a version such as 482 or 1.5.2")
    numbers = [int(number) for number in match[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def is_at_least(version: str, least: str) -> bool:
    """Return whether a version is the least version or newer. An empty least version is older than all."""
    return not least or parse_version(version) >= parse_version(least)
