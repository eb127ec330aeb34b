"""Claims of single tables: their rows in the table of the lease, and what a runner does about claims of others."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter

PREFIX = "lakewright.claim."
"""Prefix of a claim's property; the UUID of the claimed table follows."""


@dataclass(frozen=True)
class ClaimRow:
    """The holder of a claim and its times (UTC)."""

    table: str
    """Full name, for messages."""
    holder: str
    since: datetime
    expires_at: datetime

    def is_held_by_other(self, runner: str, now: datetime) -> bool:
        """Return whether another runner holds it now."""
        return self.holder != runner and now < self.expires_at


_CLAIM = TypeAdapter(ClaimRow)


def read_claims(properties: Mapping[str, str]) -> dict[str, ClaimRow]:
    """Return the claims by the UUID of the table, including expired claims."""
    texts = {key.removeprefix(PREFIX): text for key, text in properties.items() if key.startswith(PREFIX)}
    return {uuid: _CLAIM.validate_json(text) for uuid, text in texts.items()}


def claim_property(uuid: str, row: ClaimRow) -> dict[str, str]:
    """Return the claim as a property of the lease's table."""
    return {PREFIX + uuid: _CLAIM.dump_json(row).decode()}


@dataclass
class _Claim:
    """A claim as of the heartbeat's last read."""

    warehouse: str
    holder: str
    is_given_up: bool = False
    """Whether the lease may list the table as yielded, so that the holder may work on it."""


class ClaimedTables:
    """Claimed tables by UUID, for a runner's heartbeat and supervisor. No table is both given up and in work.

    A table that was given up remains so for this run; the next run does the due jobs. A claim that is withdrawn
    before the table was given up is forgotten.
    """

    def __init__(self) -> None:
        """Start without claims."""
        self._lock = threading.Lock()
        self._claims: dict[str, _Claim] = {}
        self._active: set[str] = set()

    def update(self, warehouse: str, claims: Mapping[str, str]) -> frozenset[str]:
        """Store the claims of a warehouse, and return the claimed tables on which nothing runs or will begin.

        Args:
            warehouse: Name of the warehouse.
            claims: Holder of each claim, by table UUID.
        """
        with self._lock:
            return self._idle(warehouse, claims)

    def give_up(self, warehouse: str, claims: Mapping[str, str]) -> frozenset[str]:
        """Do the same as `update`, and give up the returned tables."""
        with self._lock:
            for uuid in (idle := self._idle(warehouse, claims)):
                self._claims[uuid].is_given_up = True
            return idle

    def _idle(self, warehouse: str, claims: Mapping[str, str]) -> frozenset[str]:
        for uuid, claim in list(self._claims.items()):
            if claim.warehouse == warehouse and uuid not in claims and not claim.is_given_up:
                del self._claims[uuid]
        for uuid, holder in claims.items():
            self._claims.setdefault(uuid, _Claim(warehouse, holder)).holder = holder
        return frozenset(uuid for uuid, claim in self._claims.items() if claim.warehouse == warehouse) - self._active

    def begin(self, uuid: str) -> str | None:
        """Reserve the table for this runner until `end`. Return the holder of a claim instead, if there is one."""
        with self._lock:
            if (claim := self._claims.get(uuid)) is not None:
                return claim.holder
            self._active.add(uuid)
            return None

    def end(self, uuid: str) -> None:
        """End the reservation: no job of this runner can change the table afterwards."""
        with self._lock:
            self._active.discard(uuid)

    def claimant(self, uuid: str) -> str | None:
        """Return the holder of a claim of the table, or None."""
        with self._lock:
            claim = self._claims.get(uuid)
            return claim.holder if claim else None

    def is_given_up(self, uuid: str) -> bool:
        """Return whether the table was given up for the rest of this run."""
        with self._lock:
            claim = self._claims.get(uuid)
            return claim is not None and claim.is_given_up
