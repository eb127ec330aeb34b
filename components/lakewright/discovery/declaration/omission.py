"""Objects that a written spec leaves out, with reasons, and errors of discovery. `lakewright.errors` draws the tree."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lakewright.errors import LakewrightError


class DiscoveryError(LakewrightError):
    """Something that exists cannot be read or declared. The message names it and what to do."""


class EmptyProjectError(DiscoveryError):
    """A project has no warehouse, so there is nothing to declare."""


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
