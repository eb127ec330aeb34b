"""Memory of `usage` on a table with many snapshots of the same files."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pyarrow as pa
import pytest
from lakewright_spark.pyiceberg_client import file_sizes
from lakewright_spark.pyiceberg_client.file_sizes import FileSizes, Reach, TableSize
from lakewright_spark.pyiceberg_client.usage import measure
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record

FILES, BYTES, SNAPSHOTS = 1000, 7, 200


def append_files(table: Table, name: str, files: int) -> None:
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        for number in range(files):
            append.append_data_file(
                DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=f"{table.location()}/data/{name}-{number}.parquet",
                    file_format=FileFormat.PARQUET,
                    partition=Record(),
                    record_count=1,
                    file_size_in_bytes=BYTES,
                )
            )


def measure_with_peak(table: Table) -> tuple[TableSize, int]:
    """Return the size of the table, and the peak of this process's memory (bytes) meanwhile."""
    tracemalloc.start()
    try:
        return measure(table), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_snapshots(local_catalog: SqlCatalog) -> None:
    table = local_catalog.create_table("sales.many", pa.schema([("n", pa.int64())]))
    append_files(table, "first", FILES)
    measure(table)  # imports and caches
    size, peak = measure_with_peak(table)
    (snapshot,) = table.metadata.snapshots
    table.metadata.snapshots.extend(
        snapshot.model_copy(update={"snapshot_id": snapshot.snapshot_id + number}) for number in range(1, SNAPSHOTS)
    )
    later_size, later_peak = measure_with_peak(table)
    assert size == TableSize(bytes_live=FILES * BYTES, bytes_current=FILES * BYTES, files=FILES, snapshots=1)
    assert later_size == replace(size, snapshots=SNAPSHOTS)
    assert later_peak < 1.2 * peak


def test_files_count_once_with_their_largest_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_sizes, "_PENDING", 2)
    files = FileSizes()
    for path, size, reach in [
        ("a", 1, Reach.OLD),
        ("b", 2, Reach.LIVE),
        ("a", 1, Reach.CURRENT),
        ("c", 4, Reach.OLD),
        ("b", 2, Reach.OLD),
    ]:
        files.add(path, size, reach)
    assert files.total(3) == TableSize(bytes_live=3, bytes_reclaimable=4, bytes_current=1, files=2, snapshots=3)
    assert FileSizes().total(0) == TableSize()
