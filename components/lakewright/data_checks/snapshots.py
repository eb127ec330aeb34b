"""Rows and files of a table, by the snapshots of its metadata. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakewright.validation.documents import as_list, as_mapping


@dataclass(frozen=True)
class RowCount:
    """The number of rows of a snapshot, from its summary."""

    records: int
    """Rows in data files."""
    deleted: int
    """Records of position deletes. Several of them may remove the same row, or a row of a removed file."""
    equality_deletes: int
    """Records of equality deletes, each of which removes any number of rows."""

    @property
    def lowest(self) -> int:
        """The fewest rows that there can be."""
        return 0 if self.equality_deletes else max(0, self.records - self.deleted)

    def __str__(self) -> str:
        """Return the number, or its limits."""
        return f"{self.records} rows" if self.lowest == self.records else f"{self.lowest} to {self.records} rows"


def find_current_snapshot(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the current snapshot of a table; None if it has none."""
    current = metadata.get("current-snapshot-id")
    return _index_by_id(as_list(metadata.get("snapshots"))).get(current) if current not in (None, -1) else None


def count_rows(snapshot: Mapping[str, Any]) -> RowCount | None:
    """Return the number of rows of a snapshot; None if its summary does not have it."""
    records = read_total(snapshot, "total-records")
    if records is None:
        return None
    deleted, equality = read_total(snapshot, "total-position-deletes"), read_total(snapshot, "total-equality-deletes")
    return RowCount(records, deleted or 0, equality or 0)


def read_total(snapshot: Mapping[str, Any], name: str) -> int | None:
    """Return a total of a snapshot's summary; None if it does not have it."""
    value = str(as_mapping(snapshot.get("summary")).get(name, ""))
    return int(value) if value.isascii() and value.isdigit() else None


def parse_snapshot_time(snapshot: Mapping[str, Any]) -> datetime:
    """Return the time of a snapshot."""
    return datetime.fromtimestamp(int(snapshot["timestamp-ms"]) / 1000, UTC)


def list_lineage(snapshots: Sequence[Any], current: object) -> list[Mapping[str, Any]]:
    """Return the current snapshot and its kept ancestors, the newest first."""
    by_id = _index_by_id(snapshots)
    ancestors: list[Mapping[str, Any]] = []
    while (snapshot := by_id.pop(current, None)) is not None:
        ancestors.append(snapshot)
        current = snapshot.get("parent-snapshot-id")
    return ancestors


def adds_rows(snapshot: Mapping[str, Any]) -> bool:
    """Return whether a snapshot certainly added rows: an append, or an overwrite after which there are more rows."""
    match _read_operation(snapshot):
        case "append":
            return _read_added(snapshot) != 0
        case "overwrite":
            return _read_growth(snapshot) > 0
        case _:  # `replace` rewrites rows, as compaction does, and `delete` removes them
            return False


def may_add_rows(snapshot: Mapping[str, Any]) -> bool:
    """Return whether a snapshot wrote rows that may be new: an overwrite may also be an update or a deletion."""
    return _read_operation(snapshot) in {"append", "overwrite"} and _read_added(snapshot) != 0


def _read_operation(snapshot: Mapping[str, Any]) -> str:
    return str(as_mapping(snapshot.get("summary")).get("operation"))


def _read_added(snapshot: Mapping[str, Any]) -> int | None:
    """Return the number of added rows; None if the writer counts no rows. Writers leave out counts of zero."""
    added = read_total(snapshot, "added-records")
    return 0 if added is None and read_total(snapshot, "total-records") is not None else added


def _read_growth(snapshot: Mapping[str, Any]) -> int:
    """Return the number of added rows, minus the number of removed rows."""
    added, deleted, added_deletes, removed_deletes = (
        read_total(snapshot, name) or 0
        for name in ("added-records", "deleted-records", "added-position-deletes", "removed-position-deletes")
    )
    return added - deleted - added_deletes + removed_deletes


def _index_by_id(snapshots: Sequence[Any]) -> dict[Any, Mapping[str, Any]]:
    return {as_mapping(snapshot).get("snapshot-id"): as_mapping(snapshot) for snapshot in snapshots}
