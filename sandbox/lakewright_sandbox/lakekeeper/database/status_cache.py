"""The server's cache of warehouse statuses, which `activate` and `deactivate` do not update."""

from __future__ import annotations

from lakewright_sandbox.lakekeeper.database.models import WarehouseRow
from lakewright_sandbox.lakekeeper.protocol.clock import Clock

STATUSES = "statuses"
"""Key of the status cache in a session's `info`."""


class StatusCache:
    """Statuses by warehouse id.

    Reading a warehouse through the management API updates its entry. The catalog reads the cache: it refuses a
    warehouse whose cached status is inactive, and finds nothing in a warehouse that is inactive and cached as active.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        """Keep entries for some seconds."""
        self._clock, self._micros = clock, int(seconds * 1_000_000)
        self._entries: dict[str, tuple[bool, int]] = {}

    def update(self, warehouse: WarehouseRow) -> None:
        """Keep the current status."""
        self._entries[warehouse.id] = (warehouse.active, self._clock.now() + self._micros)

    def is_active(self, warehouse: WarehouseRow) -> bool:
        """Return the cached status. If the entry is missing or has expired, return the current status."""
        active, until = self._entries.get(warehouse.id, (False, 0))
        if until > self._clock.now():
            return active
        self.update(warehouse)
        return warehouse.active
