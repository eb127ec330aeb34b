"""Rows and files of a table, by the snapshots of its metadata. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakewright.validation.documents import as_list, as_mapping

_ADDING = frozenset({"append", "overwrite"})
"""Operations that add rows. `replace` rewrites them, as compaction does, and `delete` removes them."""


@dataclass(frozen=True)
class RowCount:
    """The number of rows of a snapshot, from its summary."""

    records: int
    """Rows in data files."""
    deleted: int
    """Rows that position deletes remove."""
    equality_deletes: int
    """Records of equality deletes, each of which removes any number of rows."""

    @property
    def highest(self) -> int:
        """The most rows that there can be."""
        return max(0, self.records - self.deleted)

    @property
    def is_exact(self) -> bool:
        """Whether the number is known."""
        return self.equality_deletes == 0


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


def find_newest_addition(snapshots: Sequence[Any], current: object) -> Mapping[str, Any] | None:
    """Return the newest ancestor of the current snapshot that added rows; None if none that is kept did."""
    return next((snapshot for snapshot in list_lineage(snapshots, current) if _adds_rows(snapshot)), None)


def list_lineage(snapshots: Sequence[Any], current: object) -> list[Mapping[str, Any]]:
    """Return the current snapshot and its kept ancestors, the newest first."""
    by_id = _index_by_id(snapshots)
    ancestors: list[Mapping[str, Any]] = []
    while (snapshot := by_id.pop(current, None)) is not None:
        ancestors.append(snapshot)
        current = snapshot.get("parent-snapshot-id")
    return ancestors


def _adds_rows(snapshot: Mapping[str, Any]) -> bool:
    operation = as_mapping(snapshot.get("summary")).get("operation")
    added = read_total(snapshot, "added-records")
    return operation in _ADDING and added != 0


def _index_by_id(snapshots: Sequence[Any]) -> dict[Any, Mapping[str, Any]]:
    return {as_mapping(snapshot).get("snapshot-id"): as_mapping(snapshot) for snapshot in snapshots}
