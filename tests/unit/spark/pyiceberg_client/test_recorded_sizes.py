"""`usage` takes the size of an unchanged table from `ops.table_statistics`, and reads no manifest."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from lakewright_spark.maintenance.jobs.statistics import TABLES
from lakewright_spark.pyiceberg_client.recorded_sizes import read_recorded_sizes
from lakewright_spark.pyiceberg_client.usage import measure
from lakewright_spark.scheduler.run_log.ops_tables import append
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
ROWS = pa.table({"n": pa.array(range(10), pa.int64())})


def create_table(catalog: SqlCatalog) -> Table:
    """Return a table with a snapshot whose file was replaced."""
    catalog.create_namespace_if_not_exists("sales")
    table = catalog.create_table("sales.orders", schema=ROWS.schema)
    table.append(ROWS)
    table.overwrite(ROWS)
    return table


def record(catalog: SqlCatalog, table: Table, at: datetime, **changes: Any) -> None:
    """Record the size of the table, as job `statistics` does."""
    size = measure(table)
    row: Mapping[str, Any] = {
        **{column.split()[0]: None for column in TABLES.columns.split(",")},
        "table_uuid": str(table.metadata.table_uuid),
        "collected_at": at,
        "snapshot_id": table.metadata.current_snapshot_id,
        "snapshots": size.snapshots,
        "data_files": size.files,
        "data_bytes": size.bytes_current,
        "delete_files": 0,
        "delete_bytes": 0,
        "all_bytes": size.bytes_live + size.bytes_reclaimable,
        **changes,
    }
    append(catalog, TABLES, [row])


def test_size_of_an_unchanged_table_is_the_recorded_size(local_catalog: SqlCatalog) -> None:
    table = create_table(local_catalog)
    record(local_catalog, table, NOW - timedelta(days=2), data_bytes=7, snapshot_id=1)
    record(local_catalog, table, NOW - timedelta(days=1))
    sizes = read_recorded_sizes(local_catalog, NOW - timedelta(days=30))
    assert sizes.find_size(table) == measure(table)
    assert measure(table).bytes_reclaimable > 0
    assert sizes.earliest[str(table.metadata.table_uuid)].bytes == 7


def test_changed_tables_are_measured(local_catalog: SqlCatalog) -> None:
    """Other snapshots, fewer snapshots, and a tag, whose files the recorded size does not count."""
    table = create_table(local_catalog)
    record(local_catalog, table, NOW)
    sizes = read_recorded_sizes(local_catalog, NOW - timedelta(days=30))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_tag(snapshot.snapshot_id, "kept").commit()
    assert sizes.find_size(table) is None
    table.manage_snapshots().remove_tag("kept").commit()
    assert sizes.find_size(table) is not None
    table.append(ROWS)
    assert sizes.find_size(table) is None
    record(local_catalog, table, NOW, snapshots=9)
    assert read_recorded_sizes(local_catalog, NOW - timedelta(days=30)).find_size(table) is None
