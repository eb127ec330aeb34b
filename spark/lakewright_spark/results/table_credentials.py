"""The vended credentials of a loaded table: whether they expire soon, and their renewal."""

from __future__ import annotations

import time

from pyiceberg.table import Table

LEAD_SECONDS = 300.0
"""A credential that is valid for this time is good for a commit, or for reading a file."""

_EXPIRY = "s3.session-token-expires-at-ms"


def has_expiring_credentials(table: Table, now: float | None = None) -> bool:
    """Return whether the table's credentials expire within LEAD_SECONDS. `now` in seconds since the epoch."""
    end = table.io.properties.get(_EXPIRY)
    return end is not None and int(end) / 1000 - (time.time() if now is None else now) <= LEAD_SECONDS


def refresh_credentials(table: Table, now: float | None = None) -> Table:
    """Return the table, loaded again if its credentials expire soon."""
    return table.refresh() if has_expiring_credentials(table, now) else table
