"""Which tables a runner leaves to jobs that claimed them: agreed between its heartbeat and its supervisor."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass


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
