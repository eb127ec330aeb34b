"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "optional", "missing"]
"""`optional`: absent, but there is an alternative. `missing`: something fails without it."""


@dataclass(frozen=True)
class Finding:
    """What was checked, its state, what was found, and how to fix it."""

    subject: str
    state: State
    found: str
    fix: str = ""
