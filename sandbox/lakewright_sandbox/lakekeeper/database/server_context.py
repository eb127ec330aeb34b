"""The part of a running server that needs no storage: settings, clock, database, and the server's id."""

from __future__ import annotations

from sqlalchemy import select

from lakewright_sandbox.lakekeeper.database.connection import Database
from lakewright_sandbox.lakekeeper.database.models import ServerRow
from lakewright_sandbox.lakekeeper.database.status_cache import STATUSES, StatusCache
from lakewright_sandbox.lakekeeper.protocol.clock import Clock, new_id
from lakewright_sandbox.lakekeeper.protocol.settings import Settings


class ServerContext:
    """Settings, clock and database of a server. The first start creates the server's id."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        """Connect to the database."""
        self.settings = settings
        self.clock = clock or Clock()
        self.statuses = StatusCache(self.clock, settings.status_cache_seconds)
        self.database = Database(settings.database, {STATUSES: self.statuses})
        with self.database.write() as session:
            row = session.scalars(select(ServerRow)).first()
            if row is None:
                row = ServerRow(server_id=new_id(), bootstrapped=False)
                session.add(row)
            self.server_id = row.server_id
