"""Remove branches and tags in a transaction of Iceberg's Java library, unless they move at the same time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lakewright_spark.maintenance.table.expiration import Ref


def lock_refs(transaction: Any, refs: Iterable[Ref]) -> None:
    """Let the catalog's server refuse the commit if one of these branches and tags has moved.

    Iceberg states the expected snapshot of a branch only for changes of it, not for its removal. So this changes the
    retention before the same transaction removes the branch; otherwise the server would remove its newest commits.
    """
    change = transaction.manageSnapshots()
    for ref in refs:
        change = change.setMaxRefAgeMs(ref.name, 1)
    change.commit()


def remove_ref(change: Any, ref: Ref) -> Any:
    """Remove a branch or tag, and return the change of snapshots."""
    return change.removeBranch(ref.name) if ref.kind == "BRANCH" else change.removeTag(ref.name)
