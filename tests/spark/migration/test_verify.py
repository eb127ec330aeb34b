"""Comparisons of a migrated table's rows with the rows of its source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration import verify as verify_module
from lakewright_spark.migration.verify import Depth, has_equal_rows, verify
from migration_catalogs import build_catalogs
from projects import Project
from pyiceberg.catalog import Catalog
from pyiceberg.io import load_file_io
from pyiceberg.table import FileScanTask, Table

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
def catalog(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    catalog = build_catalogs(project, tmp_path, monkeypatch).open_source()
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
