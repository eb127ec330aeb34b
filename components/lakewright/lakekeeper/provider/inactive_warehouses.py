"""Objects in inactive warehouses: a refresh cannot see them, and the `up` that activates the warehouse reads them.

A server responds to requests for objects in an inactive warehouse as if they were missing. A refresh keeps their
recorded state and marks it. A stack activates the warehouse before it processes the objects inside, and then reads
them again.
"""

import threading
from collections.abc import Callable
from typing import Any

from lakewright.lakekeeper.api.connection.client import Client

MARK = "hidden_in"
"""Output of an object that a refresh could not see: the id of the inactive warehouse."""


class WarehousesToActivate:
    """Warehouses that the running program wants active. Safe to share between threads.

    A warehouse is compared before the objects inside it, in previews too.
    """

    def __init__(self) -> None:
        """Create an empty set."""
        self._lock = threading.Lock()
        self._program_runs = False
        self._ids: set[str] = set()

    def note_program(self) -> None:
        """Record that a program runs. A refresh runs no program and activates no warehouse."""
        with self._lock:
            self._program_runs = True

    def note_compared(self, warehouse_id: str, *, active: bool) -> None:
        """Record whether a warehouse is declared active. Without a program, the state's declaration is compared."""
        with self._lock:
            if active and self._program_runs:
                self._ids.add(warehouse_id)

    def __contains__(self, warehouse_id: str) -> bool:
        """Return whether this run activates a warehouse."""
        with self._lock:
            return warehouse_id in self._ids


def must_read(outs: dict[str, Any], to_activate: WarehousesToActivate, client: Callable[[], Client]) -> bool:
    """Return whether this run must read an object that a refresh could not see.

    Args:
        outs: Outputs of the object in the state.
        to_activate: Warehouses that this run activates.
        client: Returns a client of the object's server.
    """
    return bool(outs.get(MARK)) and (outs[MARK] in to_activate or can_read(outs, client))


def can_read(outs: dict[str, Any], client: Callable[[], Client]) -> bool:
    """Return whether an object that a refresh could not see is visible now, because its warehouse is active."""
    return bool(outs.get(MARK)) and client().is_active(str(outs[MARK])) is True
