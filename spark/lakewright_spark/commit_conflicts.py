"""Conflicts of commits that Lakekeeper 0.13.3 reports as invalid requests (400) and not as conflicts (409).

Such a commit meets its requirements, but its snapshot has a sequence number or row ids that a commit to another branch,
or a staged write, took meanwhile. Clients of Iceberg repeat a commit after 409 only.
"""

from __future__ import annotations

_OUTDATED = ("older than last sequence number", "first-row-id is behind table next-row-id")


def is_outdated(message: str) -> bool:
    """Return whether a server refused a commit for such a conflict, so that it can be repeated on newer metadata.

    >>> is_outdated("InvalidTableUpdate: Cannot add snapshot with sequence number 3 older than last sequence number 3")
    True
    """
    return any(part in message for part in _OUTDATED)
