"""Mask a tenant's name in a text, to compare what changes in several tenants."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "TENANT"
"""Stands for the name of the stack or of its tenant."""


def mask_tenant(text: str, names: Iterable[str]) -> str:
    """Return a text with the mask in place of the names, where they are whole words or parts between signs."""
    for name in sorted({name for name in names if name}, key=len, reverse=True):
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", MASK, text)
    return text
