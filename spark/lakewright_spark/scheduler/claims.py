"""Claims of single tables, as the table of the lease has them: a property each, beside the lease of the warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter

PREFIX = "lakewright.claim."
"""Start of a property's name. The UUID of the claimed table follows it."""


@dataclass(frozen=True)
class ClaimRow:
    """Who works on one table, and how long. Times are UTC."""

    table: str
    """Full name, to report."""
    holder: str
    since: datetime
    expires_at: datetime

    def held_against(self, who: str, now: datetime) -> bool:
        """Return whether another than `who` holds it now."""
        return self.holder != who and now < self.expires_at


_CLAIM = TypeAdapter(ClaimRow)


def read_claims(properties: Mapping[str, str]) -> dict[str, ClaimRow]:
    """Return the claims by the UUID of the table, expired ones too."""
    found = {key.removeprefix(PREFIX): text for key, text in properties.items() if key.startswith(PREFIX)}
    return {uuid: _CLAIM.validate_json(text) for uuid, text in found.items()}


def claim_property(uuid: str, row: ClaimRow) -> dict[str, str]:
    """Return the claim as a property of the lease's table."""
    return {PREFIX + uuid: _CLAIM.dump_json(row).decode()}
