"""Quantities of CPU and memory, as in Kubernetes: `500m`, `8Gi`, `512MiB`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

_BINARY = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*(Ki|Mi|Gi|Ti|k|M|G|T)?B?")
_CPU = re.compile(r"(\d+(?:\.\d{1,3})?)|(\d+)m")


def parse_bytes(size: str) -> int:
    """Return the bytes of a size such as `8Gi` or `512MiB`. Raises ValueError."""
    match = _BYTES.fullmatch(size)
    if not match:
        raise ValueError("expected a size such as `512Mi`, `8Gi` or `1.5Gi`")
    amount = int(float(match[1]) * _BINARY[match[2] or ""])
    if amount <= 0:
        raise ValueError("expected a size above zero")
    return amount


def parse_millicores(cpu: str) -> int:
    """Return the millicores of a quantity such as `2` or `500m`. Raises ValueError."""
    match = _CPU.fullmatch(cpu)
    amount = 0 if not match else int(match[2]) if match[2] else round(float(match[1]) * 1000)
    if amount <= 0:
        raise ValueError("expected cores such as `2`, `0.5` or `500m`")
    return amount


def cpu_text(millicores: int) -> str:
    """Return millicores as the API server writes them: `2` or `500m`."""
    return f"{millicores}m" if millicores % 1000 else str(millicores // 1000)


def bytes_text(amount: int) -> str:
    """Return bytes as the API server writes them: with the largest binary unit that needs no fraction, else decimal."""
    for units in (("Ti", "Gi", "Mi", "Ki"), ("T", "G", "M", "k")):
        for unit in units:
            if amount and amount % _BINARY[unit] == 0:
                return f"{amount // _BINARY[unit]}{unit}"
    return str(amount)


def canonical_memory(size: str) -> str:
    """Return a size in the notation that the API server keeps: `1.5Gi` is `1536Mi`. Other notations would drift."""
    return bytes_text(parse_bytes(size))


def text_of_number(value: object) -> object:
    """Return a number as text, as YAML reads `2` as a number; other values unchanged."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _memory(size: str) -> str:
    parse_bytes(size)
    if size.endswith("B"):
        raise ValueError("expected the notation of Kubernetes, `512Mi` instead of `512MiB`")
    return size


def _file_size(size: str) -> str:
    parse_bytes(size)
    return size


def _cpu(cpu: str) -> str:
    parse_millicores(cpu)
    return cpu


Memory = Annotated[
    str,
    AfterValidator(_memory),
    WithJsonSchema({"type": "string", "examples": ["8Gi"], "pattern": r"^\d+(\.\d+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$"}),
]
"""An amount of memory or disk in the notation of Kubernetes."""
Cpu = Annotated[
    str,
    BeforeValidator(text_of_number),
    AfterValidator(_cpu),
    WithJsonSchema({"type": "string", "examples": ["2", "500m"], "pattern": r"^(\d+(\.\d{1,3})?|\d+m)$"}),
]
FileSize = Annotated[str, AfterValidator(_file_size), WithJsonSchema({"type": "string", "examples": ["512MiB"]})]
"""A size in bytes with an optional unit: `512MiB`, `512Mi` and `536870912` are the same."""


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
