"""How large tables were, from the rows that the `statistics` job left in `ops`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

STATISTICS = ("ops", "table_statistics")


@dataclass(frozen=True)
class Earlier:
    """A table's size at an earlier time (UTC)."""

    at: datetime
    bytes: int


def earlier(catalog: Catalog, since: datetime) -> Mapping[str, Earlier]:
    """By the table's UUID: the oldest row since then. Tables of which there is none are not in it."""
    found: dict[str, Earlier] = {}
    with suppress(NoSuchTableError, NoSuchNamespaceError):
        columns = ("table_uuid", "collected_at", "data_bytes", "delete_bytes")
        scan = catalog.load_table(STATISTICS).scan(f"collected_at >= '{since.isoformat()}'", selected_fields=columns)
        # In Arrow: as dictionaries, a month of 10,000 tables takes hundreds of megabytes.
        ordered = scan.to_arrow().sort_by([("collected_at", "ascending")])
        first = ordered.group_by(["table_uuid"], use_threads=False).aggregate([(name, "first") for name in columns[1:]])
        for row in first.to_pylist():
            size = (row["data_bytes_first"] or 0) + (row["delete_bytes_first"] or 0)
            found[row["table_uuid"]] = Earlier(row["collected_at_first"].astimezone(UTC), size)
    return found
