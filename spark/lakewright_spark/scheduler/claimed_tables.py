"""Which tables a runner leaves to jobs that claimed them: agreed between its heartbeat and its supervisor."""

from __future__ import annotations

import threading
from collections.abc import Mapping


class ClaimedTables:
    """Tables by their UUIDs. A table is never both given up and worked on.

    Once given up, a table stays so for this run: the next run does what is still due.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[str, str] = {}
        self._active: set[str] = set()

    def give_up(self, claims: Mapping[str, str]) -> frozenset[str]:
        """Return the claimed tables, of these and earlier claims, on which nothing runs and nothing will begin.

        Args:
            claims: The holder of each claim, by the table's UUID.
        """
        with self._lock:
            self._asked = {**claims, **self._asked}
            return frozenset(self._asked.keys() - self._active)

    def begin(self, uuid: str) -> str | None:
        """Return who claimed the table, so that nothing may begin; None if it is this runner's until `end`."""
        with self._lock:
            if (holder := self._asked.get(uuid)) is None:
                self._active.add(uuid)
            return holder

    def end(self, uuid: str) -> None:
        """Note that nothing of this runner's can change the table any more."""
        with self._lock:
            self._active.discard(uuid)

    def claimant(self, uuid: str) -> str | None:
        """Return who claimed the table, whether it is worked on or not."""
        with self._lock:
            return self._asked.get(uuid)
