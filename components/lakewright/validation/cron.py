"""Cron schedules of five fields, as Kubernetes reads them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_FIELDS: tuple[tuple[str, int, int, str], ...] = (
    ("minute", 0, 59, ""),
    ("hour", 0, 23, ""),
    ("day of month", 1, 31, ""),
    ("month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"),
    ("day of week", 0, 6, "sun mon tue wed thu fri sat"),
)
_TERM = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d+))?")


def _cron(value: str) -> str:
    fields = value.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"expected a cron schedule of five fields, such as `0 2 * * *` (UTC), found {len(fields)}")
    for text, (field, lowest, highest, names) in zip(fields, _FIELDS, strict=True):
        numbers_by_name = {name: lowest + index for index, name in enumerate(names.split())}
        if not all(_fits(term, lowest, highest, numbers_by_name) for term in text.split(",")):
            raise ValueError(
                f"{field}: expected numbers from {lowest} to {highest}, `*`, ranges or steps, found {text}"
            )
    return value


def _fits(term: str, lowest: int, highest: int, names: dict[str, int]) -> bool:
    match = _TERM.fullmatch(term)
    if match is None or match[3] == "0":
        return False
    ends = [_number(text, names) for text in (match[1], match[2]) if text is not None]
    return all(lowest <= end <= highest for end in ends) and ends == sorted(ends)


def _number(text: str, names: dict[str, int]) -> int:
    return int(text) if text.isascii() and text.isdigit() else names.get(text.lower(), -1)


Cron = Annotated[str, AfterValidator(_cron)]
"""`0 2 * * *`: minute, hour, day of month, month, day of week."""
