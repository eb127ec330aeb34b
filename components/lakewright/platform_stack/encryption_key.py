"""Refuse encryption keys that are short, known, or not random. A heuristic: only a generated key is surely random."""

from __future__ import annotations

import math
import re
from collections import Counter

MIN_BYTES = 32
_KNOWN = frozenset({"<this is unsafe, please set a proper key>", "changeme", "secret", "password"})
_MIN_SAMPLE_BITS = 150
"""Bits of the text by the frequencies of its characters. Random hexadecimal of 32 bytes has about 245, base64 210."""


def find_key_mistake(key: str) -> str | None:
    """Return why a key is refused; None if it is accepted. The message never repeats the key."""
    if key.strip().casefold() in _KNOWN:
        return "is a known example key"
    bits = len(key) * _estimate_bits_per_character(key)
    if bits < MIN_BYTES * 8:
        return (
            f"has room for {int(bits // 8)} random bytes; expected at least {MIN_BYTES}, such as the output of"
            " `openssl rand -base64 48`, or `generated`"
        )
    if _estimate_sample_bits(key) < _MIN_SAMPLE_BITS or re.fullmatch(r"(.{1,24}?)\1+.{0,24}", key):
        return f"is not random: it repeats itself; expected at least {MIN_BYTES} random bytes, or `generated`"
    return None


def _estimate_bits_per_character(key: str) -> float:
    if re.fullmatch(r"[0-9]*", key):
        return math.log2(10)
    if re.fullmatch(r"[0-9a-fA-F]*", key):
        return 4
    return 6


def _estimate_sample_bits(key: str) -> float:
    counts = Counter(key)
    return -sum(count * math.log2(count / len(key)) for count in counts.values())
