"""The result of a check of `doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "optional", "missing"]
"""`optional`: absent, but there is an alternative. `missing`: something fails without it."""

REQUEST_SECONDS = 5
"""Seconds to wait for a response of a service."""


@dataclass(frozen=True)
class Finding:
    """One check of `doctor`: its subject, its result, and how to fix a failure."""

    subject: str
    state: State
    result: str
    fix: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the check as `lakewright doctor --json` prints it."""
        return {"subject": self.subject, "state": self.state, "found": self.result, "fix": self.fix}
