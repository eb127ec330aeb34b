"""Credentials that a table came with end before a long stream does: ask for the table again in time."""

from __future__ import annotations

import time

from pyiceberg.table import Table

LEAD_SECONDS = 300.0
"""A credential that has this long to go is still good for one commit, or for reading one file."""

_EXPIRY = "s3.session-token-expires-at-ms"


def ending(table: Table, now: float | None = None) -> bool:
    """Whether its credentials end within LEAD_SECONDS. `now` in seconds since the epoch."""
    end = table.io.properties.get(_EXPIRY)
    return end is not None and int(end) / 1000 - (time.time() if now is None else now) <= LEAD_SECONDS


def refreshed(table: Table, now: float | None = None) -> Table:
    """The same table, loaded again if its credentials are ending."""
    return table.refresh() if ending(table, now) else table
