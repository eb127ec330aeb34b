"""Claims of single tables, as the table of the lease has them: a property each, beside the lease of the warehouse."""

from __future__ import annotations

import threading
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


@dataclass
class _Claim:
    """A claim, as the heartbeat read it last."""

    warehouse: str
    holder: str
    is_given_up: bool = False
    """Whether the lease may say that the table is given up, so that the holder may work on it."""


class ClaimedTables:
    """Tables by their UUIDs. A table is never both given up and worked on.

    Once given up, a table stays so for this run: the next run does what is still due. A claim that is withdrawn before
    the table was given up is forgotten.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claims: dict[str, _Claim] = {}
        self._active: set[str] = set()

    def note(self, warehouse: str, claims: Mapping[str, str]) -> frozenset[str]:
        """Take note of the claims of a warehouse; return those claimed tables on which nothing runs or will begin.

        Args:
            warehouse: Its name.
            claims: The holder of each claim in it, by the table's UUID.
        """
        with self._lock:
            return self._idle(warehouse, claims)

    def give_up(self, warehouse: str, claims: Mapping[str, str]) -> frozenset[str]:
        """Do as `note`, and give the returned tables up."""
        with self._lock:
            for uuid in (idle := self._idle(warehouse, claims)):
                self._claims[uuid].is_given_up = True
            return idle

    def _idle(self, warehouse: str, claims: Mapping[str, str]) -> frozenset[str]:
        for uuid, known in list(self._claims.items()):
            if known.warehouse == warehouse and uuid not in claims and not known.is_given_up:
                del self._claims[uuid]
        for uuid, holder in claims.items():
            self._claims.setdefault(uuid, _Claim(warehouse, holder)).holder = holder
        return frozenset(uuid for uuid, one in self._claims.items() if one.warehouse == warehouse) - self._active

    def begin(self, uuid: str) -> str | None:
        """Return who claimed the table, so that nothing may begin; None if it is this runner's until `end`."""
        with self._lock:
            if (claim := self._claims.get(uuid)) is not None:
                return claim.holder
            self._active.add(uuid)
            return None

    def end(self, uuid: str) -> None:
        """Note that nothing of this runner's can change the table any more."""
        with self._lock:
            self._active.discard(uuid)

    def claimant(self, uuid: str) -> str | None:
        """Return who claimed the table, whether it is worked on or not."""
        with self._lock:
            claim = self._claims.get(uuid)
            return claim.holder if claim else None

    def is_given_up(self, uuid: str) -> bool:
        """Return whether the table stays given up for this run."""
        with self._lock:
            claim = self._claims.get(uuid)
            return claim is not None and claim.is_given_up
