"""ArchiveMark: an archived warehouse and the rules of its purge, as a role of the warehouse's project records them.

The description of the role `lakewright-archive-WAREHOUSE_ID` is the mark. The server writes the role's creation time,
from which the time to the purge counts. Lakewright never changes the role. If the role has a time of update, another
program changed it.
The role `lakewright-purge-WAREHOUSE_ID` is the announcement of the purge, which was made when the role was created.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any, cast

from lakewright.ownership.mark import UnreadableMarkError

ANNOUNCED_FOR = timedelta(days=7)
"""Time between the announcement of a purge and the purge."""
VERSION = 1
"""Version of the mark."""


@dataclass(frozen=True)
class ArchiveMark:
    """An archived warehouse: its owner, its place, and the time after which its data may be deleted."""

    stack: str
    """The stack that archived it, as `PROJECT/STACK`."""
    record: str
    """Id of the tenant's record of that stack."""
    warehouse: str
    """Name of the warehouse."""
    bucket: str
    """Bucket of its files."""
    key_prefix: str
    """Key prefix of its files, without slashes at its ends."""
    purge_after_days: int | None = None
    """Days from the archiving to the purge; None if it is never purged."""
    roles: tuple[str, ...] = ()
    """Names of the IAM roles that the archiving limited to reading."""
    is_adopted: bool = False
    """Whether the stack adopted it once. Foreign objects may be under its key prefix."""
    backend: str | None = None
    """Identity of the backend that has the stack's state (`backend_identity`); None if the run did not know it."""

    def to_description(self) -> str:
        """Return the mark as the description of a role."""
        return json.dumps({"version": VERSION, **asdict(self)})

    def compute_due_time(self, archived_at: datetime) -> datetime | None:
        """Return the earliest time of the purge without its announcement; None if there is no purge."""
        return None if self.purge_after_days is None else archived_at + timedelta(days=self.purge_after_days)


def parse_archive_mark(text: str | None) -> ArchiveMark:
    """Return the mark in the description of a role.

    Raises:
        UnreadableMarkError: The text is not a mark, or one of a later version.
    """
    try:
        document = json.loads(text or "")
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise UnreadableMarkError("expected JSON with `version`, `stack`, `record` and `warehouse`")
    values = cast(dict[str, Any], document)
    if values.pop("version", None) != VERSION:
        raise UnreadableMarkError(f"expected an archive mark of version {VERSION}")
    texts = ("stack", "record", "warehouse", "bucket", "key_prefix")
    days, roles, is_adopted = values.get("purge_after_days"), values.get("roles"), values.get("is_adopted")
    backend = values.get("backend")
    is_valid = (
        values.keys() <= {field.name for field in fields(ArchiveMark)}
        and all(isinstance(values.get(name), str) and values[name] for name in texts)
        and (days is None or (type(days) is int and days >= 1))
        and isinstance(roles, list)
        and all(isinstance(role, str) for role in cast(list[Any], roles))
        and isinstance(is_adopted, bool)
        and (backend is None or isinstance(backend, str))
    )
    if not is_valid:
        raise UnreadableMarkError("expected the fields that `deletion: archive` writes")
    complete_values: dict[str, Any] = {**values, "roles": tuple(cast(list[str], roles))}
    return ArchiveMark(**complete_values)


def compute_purge_time(due: datetime, announced_at: datetime) -> datetime:
    """Return the earliest time of a purge: when it is due, and has been announced for seven days."""
    return max(due, announced_at + ANNOUNCED_FOR)
