"""Declared branches and tags of a table, compared with its live branches and tags. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.table.expiration import Ref, Snapshot, list_ancestors
from lakewright_spark.policies.model import RefPolicy

CREATED_REFS = "lakewright.refs"
"""Property of a table: JSON list of the branches and tags that the job created. It removes no others."""
MAIN = "main"


@dataclass(frozen=True)
class RefChanges:
    """Changes that make the live branches and tags as declared."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Branches and tags with another retention."""
    removed: tuple[str, ...] = ()
    """Branches and tags that the job created and that are no longer declared."""
    forgotten: tuple[str, ...] = ()
    """Names that the job created and that no longer exist. A user may use such a name again."""
    unmerged: tuple[str, ...] = ()
    """Branches that would be removed, but have commits that `main` does not have."""
    waiting: tuple[str, ...] = ()
    """Declared names that cannot be created: the table has no snapshot that is young enough."""
    last: str | None = None
    """Name that would be removed, but is the table's last branch or tag, which Lakekeeper does not remove."""

    def __bool__(self) -> bool:
        """Return whether there is anything to change."""
        return bool(self.created or self.changed or self.removed or self.forgotten)

    def describe(self) -> str:
        """Return the changes in words, such as `create audit`."""
        parts = {"create": self.created, "change": self.changed, "remove": self.removed, "forget": self.forgotten}
        return "; ".join(f"{verb} {', '.join(names)}" for verb, names in parts.items() if names) or "as declared"


def read_created_refs(properties: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the branches and tags that the job created.

    Raises:
        PolicyRefusedError: The property is not a JSON list.
    """
    try:
        names = json.loads(properties.get(CREATED_REFS, "[]"))
        return frozenset(str(name) for name in names)
    except (ValueError, TypeError):
        raise PolicyRefusedError(
            f"property {CREATED_REFS}: expected a JSON list of names, found {properties[CREATED_REFS]!r}; remove it, "
            "and remove the branches and tags that are no longer declared"
        ) from None


def compare_refs(
    ref_policies: Mapping[str, RefPolicy],
    live_refs: Iterable[Ref],
    snapshots: Iterable[Snapshot],
    *,
    current: int | None,
    created: Iterable[str],
    now: datetime,
) -> RefChanges:
    """Return the changes of a table's branches and tags.

    Args:
        ref_policies: Policies of the declared branches and tags, by name.
        live_refs: The table's branches and tags.
        snapshots: The table's snapshots.
        current: Its current snapshot; None without rows.
        created: Names that the job created.
        now: The time (UTC).

    Raises:
        PolicyRefusedError: A declared branch is a tag, or the other way round.
    """
    refs = {ref.name: ref for ref in live_refs}
    by_id = {snapshot.id: snapshot for snapshot in snapshots}
    for name, policy in ref_policies.items():
        if name in refs and refs[name].kind.lower() != policy.type:
            raise PolicyRefusedError(
                f"refs: expected {name} to be a {policy.type}, found a {refs[name].kind.lower()}; rename it in the "
                "policy, or drop it in Spark"
            )
    missing = [name for name in ref_policies if name not in refs]
    creatable = [name for name in missing if current is not None and _is_young(by_id[current], ref_policies[name], now)]
    obsolete = [name for name in sorted(created) if name in refs and name not in ref_policies]
    on_main = {snapshot.id for snapshot in list_ancestors(by_id, by_id[current])} if current is not None else set[int]()
    unmerged = [name for name in obsolete if refs[name].snapshot not in on_main and refs[name].kind == "BRANCH"]
    removed = [name for name in obsolete if name not in unmerged]
    is_emptied = bool(removed) and len(removed) == len(refs) and not creatable
    last = removed.pop() if is_emptied else None
    return RefChanges(
        created=tuple(creatable),
        changed=tuple(
            name for name in ref_policies if name in refs and not _has_retention(refs[name], ref_policies[name])
        ),
        removed=tuple(removed),
        forgotten=tuple(name for name in sorted(created) if name not in refs and name not in creatable),
        unmerged=tuple(unmerged),
        waiting=tuple(name for name in missing if name not in creatable),
        last=last,
    )


def _is_young(snapshot: Snapshot, policy: RefPolicy, now: datetime) -> bool:
    """Return whether a branch or tag at the snapshot would not expire at once."""
    return policy.max_age is None or now - snapshot.committed_at < policy.max_age


def _has_retention(ref: Ref, policy: RefPolicy) -> bool:
    return (ref.max_age, ref.min_snapshots, ref.max_snapshot_age) == (
        policy.max_age,
        policy.min_snapshots,
        policy.max_snapshot_age,
    )


def to_milliseconds(span: timedelta) -> int:
    """Return a time span as Iceberg stores it."""
    return span // timedelta(milliseconds=1)
