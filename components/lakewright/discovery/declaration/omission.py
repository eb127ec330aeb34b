"""Omission: something that exists and is not in a written spec, with the reason."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, order=True)
class Omission:
    """An object or setting that a written spec leaves out. `up` does not touch it."""

    kind: str
    """`warehouse`, `namespace`, `table`, `view`, `role`, `member`, `grant`, `queue`, `bucket`, ..."""
    name: str
    reason: str

    def __str__(self) -> str:
        """Return the omission as one line."""
        return f"{self.kind} {self.name}: {self.reason}"

    def to_json(self) -> dict[str, str]:
        """Return the fields as JSON."""
        return asdict(self)
