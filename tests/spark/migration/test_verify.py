"""Comparisons of a migrated table's rows with the rows of its source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration import verify as verify_module
from lakewright_spark.migration.verify import Depth, has_equal_rows, has_same_store, verify
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Snapshot

NAN = float("nan")
ROWS = pa.table(
    {
        "part": pa.array([1.0, NAN, None]),
        "parts": pa.array([[NAN, 1.0], None, [2.0]], pa.list_(pa.float32())),
        "place": pa.array([{"x": NAN}, {"x": 1.0}, None], pa.struct([("x", pa.float64())])),
        "prices": pa.array([[("a", NAN)], [], None], pa.map_(pa.string(), pa.float64())),
        "number": pa.array([1, 2, 3], pa.int64()),
    }
)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Return a catalog whose files are in a folder: no server is needed to compare tables."""
    properties = {"s3.endpoint": "https://s3.example", "s3.access-key-id": "source"}
    catalog = SqlCatalog("old", uri=f"sqlite:///{tmp_path}/old.db", warehouse=f"file://{tmp_path}", **properties)
    catalog.create_namespace("sales")
    return catalog


def test_nan_equals_nan(catalog: Catalog) -> None:
    table = catalog.create_table("sales.orders", ROWS.schema)
    table.append(ROWS)
    copy = catalog.load_table("sales.orders")
    copy.metadata_location = f"{copy.metadata_location}.copied"  # files of another metadata file are compared
    assert verify(table, copy, Depth.FULL) == "5 columns in 1 of 1 files with 3 rows"


@pytest.mark.parametrize("endpoint", ["the same", "another"])
def test_same_file_in_one_store_is_read_once(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    table = catalog.create_table("sales.orders", ROWS.schema)
    table.append(ROWS)
    readers: list[Table] = []

    def read(table: Table, task: FileScanTask) -> Iterator[pa.RecordBatch]:
        readers.append(table)
        return read_file(table, task)

    read_file = verify_module._read
    monkeypatch.setattr(verify_module, "_read", read)
    target = catalog.load_table("sales.orders")
    target.io = load_file_io({**target.io.properties})  # sources share one
    if endpoint == "another":
        target.io.properties["s3.endpoint"] += "/"
    assert verify(table, target, Depth.FULL) == "5 columns in 1 of 1 files with 3 rows"
    assert readers == ([target] if endpoint == "the same" else [table, target])


def test_missing_rows_of_a_file_in_place(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = catalog.create_table("sales.orders", ROWS.schema)
    table.append(ROWS)
    monkeypatch.setattr(verify_module, "_read", lambda *_: iter(ROWS.slice(1).to_batches()))
    with pytest.raises(MigrationError, match=r"with 3 rows and \d+ bytes: found 2 rows"):
        verify(table, table, Depth.FULL)


@pytest.mark.parametrize("depth", Depth)
def test_manifest_list_of_another_snapshot(catalog: Catalog, depth: Depth) -> None:
    """A server responds from its own records, so its metadata may differ from the metadata file that it names."""
    table = append_twice(catalog)
    target = catalog.load_table("sales.orders")
    first, last = target.metadata.snapshots
    changed_snapshots = [first, last.model_copy(update={"manifest_list": first.manifest_list})]
    target.metadata = target.metadata.model_copy(update={"snapshots": changed_snapshots})
    with pytest.raises(MigrationError, match="the tables differ: snapshots: expected"):
        verify(table, target, depth)


@pytest.mark.parametrize("depth", Depth)
def test_other_content_of_the_manifest_list(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, depth: Depth) -> None:
    table = append_twice(catalog)
    target = catalog.load_table("sales.orders")
    target.io = load_file_io({**target.io.properties})
    first, last = (snapshot.manifest_list for snapshot in target.metadata.snapshots)
    open_input = target.io.new_input
    monkeypatch.setattr(target.io, "new_input", lambda path: open_input(first if path == last else path))
    with pytest.raises(MigrationError, match=r"the files differ: .*with 3 rows"):
        verify(table, target, depth)


def append_twice(catalog: Catalog) -> Table:
    table = catalog.create_table("sales.orders", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    return table


def test_another_location_of_the_same_metadata_file(catalog: Catalog) -> None:
    table = append_twice(catalog)
    target = catalog.load_table("sales.orders")
    target.metadata = target.metadata.model_copy(update={"location": "s3://elsewhere/orders"})
    with pytest.raises(MigrationError, match=r"location: expected .*, found s3://elsewhere/orders"):
        verify(table, target, Depth.METADATA)


@pytest.mark.parametrize(
    ("properties", "is_same"),
    [
        ({}, True),
        ({"s3.access-key-id": "another"}, False),
        ({"s3.access-key-id": "another", "s3.session-token": "temporary"}, True),
        ({"s3.endpoint": "https://another.example"}, False),
    ],
)
def test_stores_at_one_address(catalog: Catalog, properties: dict[str, str], *, is_same: bool) -> None:
    table = catalog.create_table("sales.orders", ROWS.schema)
    target = catalog.load_table("sales.orders")
    target.io = load_file_io({**target.io.properties, **properties})
    assert has_same_store(table, target) == is_same


@pytest.mark.parametrize("fault", ["missing rows", "missing delete file", None])
def test_file_in_place_with_deleted_rows(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, fault: str | None) -> None:
    table = catalog.create_table("sales.orders", ROWS.schema)
    table.append(ROWS)
    (task,) = table.scan().plan_files()
    deletes = pa.table({"file_path": [task.file.file_path], "pos": pa.array([1], pa.int64())})
    path = f"{table.location()}/data/deletes.parquet"
    if fault != "missing delete file":
        with table.io.new_output(path).create() as output:
            pq.write_table(deletes, output)
    delete_file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=path, file_format=FileFormat.PARQUET, record_count=1
    )
    task_with_deletes = FileScanTask(task.file, {delete_file})
    monkeypatch.setattr(verify_module, "_plan_files", lambda *_: [task_with_deletes])
    if fault is None:
        assert verify(table, table, Depth.FULL) == "5 columns in 1 of 1 files with 3 rows"
        return
    if fault == "missing rows":
        monkeypatch.setattr(verify_module, "_read", lambda *_: iter(ROWS.slice(1).to_batches()))
    with pytest.raises(MigrationError, match=r"found 2 rows|cannot be read: "):
        verify(table, table, Depth.FULL)


def test_lost_delete_file_of_a_copy(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted rows would return. The plan of a scan lists data files only."""
    table = append_twice(catalog)
    target = catalog.load_table("sales.orders")
    target.io = load_file_io({**target.io.properties})
    target.metadata_location = f"{target.metadata_location}.copied"
    path = f"{table.location()}/data/deletes.parquet"
    delete_file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=path, file_format=FileFormat.PARQUET, record_count=1
    )
    entries = [ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=1, data_file=delete_file)]
    deletes = SimpleNamespace(content=ManifestContent.DELETES, fetch_manifest_entry=lambda _: entries)
    assert verify(table, target, Depth.METADATA) == "metadata, 2 files"
    monkeypatch.setattr(verify_module, "_plan_files", lambda *_: [])
    monkeypatch.setattr(Snapshot, "manifests", lambda _, io: [deletes] if io is table.io else [])
    with pytest.raises(MigrationError, match="the files with deleted rows differ"):
        verify(table, target, Depth.METADATA)


@pytest.mark.parametrize(
    ("name", "value"),
    [("part", 2.0), ("parts", [NAN, 2.0]), ("place", {"x": 2.0}), ("prices", [("a", 2.0)]), ("number", 7)],
)
def test_other_value_in_one_row_differs(name: str, value: object) -> None:
    index = ROWS.schema.get_field_index(name)
    field = ROWS.schema.field(index)
    values = pa.array([value, *ROWS[name].to_pylist()[1:]], field.type)
    assert has_equal_rows(ROWS, pa.Table.from_pylist(ROWS.to_pylist(), ROWS.schema))
    assert not has_equal_rows(ROWS, ROWS.set_column(index, field, values))
