"""What an inactive warehouse hides: a refresh cannot see it, so the `up` that finds the warehouse awake looks again.

A server answers for everything inside an inactive warehouse as if it were missing. What the state has of it is kept by
a refresh, with a mark; whether it is still so is found out after the warehouse has been activated, which a stack does
before it comes to what is inside.
"""

import threading
from collections.abc import Callable
from typing import Any

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.management import warehouses

MARK = "hidden_in"
"""Output of what a refresh could not see: the id of the warehouse that hides it."""


class Waking:
    """The warehouses that the running program wants active. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._program_runs = False
        self._ids: set[str] = set()

    def program_runs(self) -> None:
        """A warehouse was checked, which engines do for programs alone: a refresh wakes none."""
        with self._lock:
            self._program_runs = True

    def compared(self, warehouse_id: str, *, active: bool) -> None:
        """What is declared of a warehouse, or was, where there is no program."""
        with self._lock:
            if active and self._program_runs:
                self._ids.add(warehouse_id)

    def forget(self) -> None:
        """Begin another run."""
        with self._lock:
            self._program_runs = False
            self._ids.clear()

    def __contains__(self, warehouse_id: str) -> bool:
        with self._lock:
            return warehouse_id in self._ids


of_process = Waking()
"""Of a provider's process, where a warehouse is compared before what is inside it: in previews, too."""


def to_be_seen(outs: dict[str, Any], client: Callable[[], Client]) -> bool:
    """Whether something that a refresh could not see is to be looked at: its warehouse is awake, or about to be."""
    return bool(outs.get(MARK)) and (outs[MARK] in of_process or to_be_seen_now(outs, client))


def to_be_seen_now(outs: dict[str, Any], client: Callable[[], Client]) -> bool:
    """Whether something that a refresh could not see can be looked at: its warehouse is awake."""
    return bool(outs.get(MARK)) and is_active(client(), str(outs[MARK])) is True


def is_active(client: Client, warehouse_id: str) -> bool | None:
    """Whether a warehouse is active; None if it is not there."""
    found = warehouses.get(client, warehouse_id)
    return None if found is None else found["status"] == "active"
