"""Branches and tags that jobs removed: their snapshots are kept while readers may have them open.

A snapshot does not show that a branch or tag referred to it, so jobs record it in a property of the table, in the
commit that removes the branch or tag. Pure functions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.iceberg_values import to_instant
from lakewright_spark.maintenance.table.expiration import Ref, Snapshot

REMOVED_REFS = "lakewright.removed-refs"
"""Property of a table: JSON map of the ID of a snapshot to when its branch or tag was removed, in milliseconds."""
MARGIN = timedelta(minutes=15)
"""Branches and tags are removed this much earlier, at most a tenth of their age.

If a branch or tag reached its age during an expiration, Iceberg would remove it together with its files."""


def find_overdue_refs(
    snapshots: Iterable[Snapshot], refs: Iterable[Ref], max_age: timedelta | None, now: datetime
) -> list[Ref]:
    """Return the branches and tags that are past their age, or past `max_age` if they have none. `main` never is."""
    by_id = {snapshot.id: snapshot for snapshot in snapshots}
    ages = [(ref, ref.max_age if ref.max_age is not None else max_age) for ref in refs if ref.name != "main"]
    return [
        ref
        for ref, age in ages
        if age is not None and now - by_id[ref.snapshot].committed_at > age - min(MARGIN, age / 10)
    ]


def find_expiration_obstacle(refs: Collection[Ref], overdue_refs: Collection[Ref]) -> str | None:
    """Return why no snapshot of a table expires, if each of its branches and tags is past its age.

    Lakekeeper responds to the removal of the last branch or tag with success, and keeps it. Iceberg's expiration would
    remove it together with its files, which readers may have open.
    """
    if not overdue_refs or len(overdue_refs) < len(refs):
        return None
    names = ", ".join(sorted(ref.name for ref in overdue_refs))
    return (
        f"the table has no branch main, and each branch and tag is past its age: {names}. Lakekeeper does not remove "
        "the last of them; write rows to the table, or drop it"
    )


def read_removed_refs(properties: Mapping[str, str]) -> dict[int, datetime]:
    """Return when the branch or tag of each snapshot was removed, by the ID of the snapshot.

    Raises:
        PolicyRefusedError: The property is not a JSON map of numbers.
    """
    try:
        times = json.loads(properties.get(REMOVED_REFS, "{}"))
        return {int(number): to_instant(int(milliseconds)) for number, milliseconds in times.items()}
    except (ValueError, TypeError, AttributeError):
        raise PolicyRefusedError(
            f"property {REMOVED_REFS}: expected a JSON map of snapshots to milliseconds, found "
            f"{properties[REMOVED_REFS]!r}; remove it one longest run after the last branch or tag was removed"
        ) from None


def record_removed_refs(
    properties: Mapping[str, str], removed: Sequence[Ref], snapshots: Iterable[Snapshot], now: datetime
) -> str:
    """Return the value of the property with these branches and tags, without snapshots that no longer exist."""
    existing = {snapshot.id for snapshot in snapshots}
    times = read_removed_refs(properties) | {ref.snapshot: now for ref in removed}
    milliseconds = {
        str(number): (at - to_instant(0)) // timedelta(milliseconds=1)
        for number, at in times.items()
        if number in existing
    }
    return json.dumps(milliseconds)
