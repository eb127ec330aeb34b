"""The vended credentials of a loaded table: whether they expire soon, and their renewal."""

from __future__ import annotations

import time

from pyiceberg.table import Table

LEAD_SECONDS = 300.0
"""A credential that is valid for this time is good for a commit, or for reading a file."""

_EXPIRIES = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at")
"""Properties with the end of a credential, in milliseconds since the epoch. Azure has one for each storage account."""
_ADLS_EXPIRY = "adls.sas-token-expires-at-ms."


def has_expiring_credentials(table: Table, now: float | None = None) -> bool:
    """Return whether the table's credentials expire within LEAD_SECONDS. `now` in seconds since the epoch."""
    ends = [
        int(end) / 1000
        for name, end in table.io.properties.items()
        if name in _EXPIRIES or name.startswith(_ADLS_EXPIRY)
    ]
    return bool(ends) and min(ends) - (time.time() if now is None else now) <= LEAD_SECONDS


def refresh_credentials(table: Table, now: float | None = None) -> Table:
    """Return the table, loaded again if its credentials expire soon."""
    return table.refresh() if has_expiring_credentials(table, now) else table
