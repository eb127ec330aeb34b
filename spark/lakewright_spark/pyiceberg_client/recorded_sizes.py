"""Sizes of tables that job `statistics` recorded from Iceberg's metadata tables, in `ops.table_statistics`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.expressions import In
from pyiceberg.table import Table

from lakewright_spark.pyiceberg_client.file_sizes import TableSize

STATISTICS = ("ops", "table_statistics")
_SIZES = ("snapshot_id", "snapshots", "data_files", "delete_files", "data_bytes", "delete_bytes", "all_bytes")


@dataclass(frozen=True)
class Earlier:
    """A table's size at an earlier time (UTC)."""

    at: datetime
    bytes: int


@dataclass(frozen=True)
class RecordedSizes:
    """Recorded sizes by the table's UUID. Tables without statistics are left out."""

    earliest: Mapping[str, Earlier]
    """The oldest size within the window."""
    latest: Mapping[str, Mapping[str, Any]]
    """The newest row."""

    def find_size(self, table: Table) -> TableSize | None:
        """Return the recorded size of a table, whose manifests need not be read then.

        Returns:
            None if the table has other snapshots since, or branches and tags, whose files the rows do not count.
        """
        row, metadata = self.latest.get(str(table.metadata.table_uuid)), table.metadata
        if row is None or row["snapshot_id"] is None or metadata.refs.keys() - {"main"}:
            return None
        if (row["snapshot_id"], row["snapshots"]) != (metadata.current_snapshot_id, len(metadata.snapshots)):
            return None
        current = (row["data_bytes"] or 0) + (row["delete_bytes"] or 0)
        return TableSize(
            bytes_live=current,
            bytes_reclaimable=(row["all_bytes"] or 0) - current,
            bytes_current=current,
            files=(row["data_files"] or 0) + (row["delete_files"] or 0),
            snapshots=row["snapshots"],
        )


def read_recorded_sizes(catalog: Catalog, since: datetime) -> RecordedSizes:
    """Return the oldest and the newest recorded size of each table since an instant (UTC)."""
    with suppress(NoSuchTableError, NoSuchNamespaceError):
        columns = ("table_uuid", "collected_at", *_SIZES)
        scan = catalog.load_table(STATISTICS).scan(f"collected_at >= '{since.isoformat()}'", selected_fields=columns)
        # In Arrow: as dictionaries, a month of 10,000 tables takes hundreds of megabytes.
        ordered = scan.to_arrow().sort_by([("collected_at", "ascending")])
        grouped = ordered.group_by(["table_uuid"], use_threads=False)
        firsts = [(name, "first") for name in ("collected_at", "data_bytes", "delete_bytes")]
        rows = grouped.aggregate([*firsts, *((name, "last") for name in _SIZES)]).to_pylist()
        return RecordedSizes(
            {row["table_uuid"]: _to_earlier(row) for row in rows},
            {row["table_uuid"]: {name: row[f"{name}_last"] for name in _SIZES} for row in rows},
        )
    return RecordedSizes({}, {})


def read_last_bytes(catalog: Catalog, uuids: Collection[str]) -> dict[str, int]:
    """Return the bytes of all snapshots in the newest row of each of these tables. Leave out tables without rows."""
    if not uuids:
        return {}
    with suppress(NoSuchTableError, NoSuchNamespaceError):
        columns = ("table_uuid", "collected_at", "all_bytes")
        within: Any = In
        scan = catalog.load_table(STATISTICS).scan(within("table_uuid", set(uuids)), selected_fields=columns)
        ordered = scan.to_arrow().sort_by([("collected_at", "ascending")])
        last = ordered.group_by(["table_uuid"], use_threads=False).aggregate([("all_bytes", "last")])
        return {row["table_uuid"]: row["all_bytes_last"] or 0 for row in last.to_pylist()}
    return {}


def _to_earlier(row: Mapping[str, Any]) -> Earlier:
    size = (row["data_bytes_first"] or 0) + (row["delete_bytes_first"] or 0)
    return Earlier(row["collected_at_first"].astimezone(UTC), size)
