"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "optional", "missing"]
"""`optional`: absent, but there is an alternative. `missing`: something fails without it."""


@dataclass(frozen=True)
class Finding:
    """One check of `doctor`: its subject, its result, and how to fix a failure."""

    subject: str
    state: State
    found: str
    fix: str = ""
