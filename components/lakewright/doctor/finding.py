"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "optional", "missing"]
"""`optional`: not there, and everything still works another way. `missing`: something will fail without it."""


@dataclass(frozen=True)
class Finding:
    """What was looked at, how it stands, what was found, and what to do about it."""

    subject: str
    state: State
    found: str
    mend: str = ""
