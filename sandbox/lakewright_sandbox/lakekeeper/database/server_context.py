"""The part of a running server that needs no storage: settings, clock, database, status cache and id."""

from __future__ import annotations

from sqlalchemy import select

from lakewright_sandbox.lakekeeper.database.connection import Database
from lakewright_sandbox.lakekeeper.database.models import ServerRow, WarehouseRow
from lakewright_sandbox.lakekeeper.protocol.clock import Clock, new_id
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

STATUSES = "statuses"
"""Key of the status cache in a session's `info`."""


class StatusCache:
    """Statuses by warehouse id, which `activate` and `deactivate` do not update.

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


class ServerContext:
    """Settings, clock and database of a server. The first start creates the server's id."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        """Connect to the database."""
        self.settings = settings
        self.clock = clock or Clock()
        self.statuses = StatusCache(self.clock, settings.status_cache_seconds)
        self.database = Database(
            settings.database,
            {STATUSES: self.statuses},
            read_url=settings.read_database,
            creates_tables=settings.creates_tables,
        )
        with self.database.write() as session:
            row = session.scalars(select(ServerRow)).first()
            if row is None:
                row = ServerRow(server_id=new_id(), bootstrapped=False)
                session.add(row)
            self.server_id = row.server_id
