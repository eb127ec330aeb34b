"""Bytes read for a page of a result, and tables that a reader keeps in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import RowsMovedError
from lakewright_spark.pyiceberg_client.catalog_cache import CatalogCache
from lakewright_spark.result_uris import Execution, Port, ResultUri
from lakewright_spark.results import row_groups
from lakewright_spark.results.reader import INDEXES, Cursor, ResultReader
from lakewright_spark.results.writer import CommitInterval, ResultWriter
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import pyarrow as pyarrow_io
from pyiceberg.types import StringType

ROWS = 300_000
PAGE = 1000
ROW_GROUP = 65_536
ONE_COMMIT = CommitInterval(rows=None, bytes=None, seconds=None)


class CountingStream:
    """A file that counts the bytes read from it."""

    def __init__(self, stream: Any, read: list[int]) -> None:
        self.stream, self.count = stream, read

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(None if size < 0 else size)
        self.count.append(len(data))
        return data

    def read_buffer(self, size: int = -1) -> pa.Buffer:
        return pa.py_buffer(self.read(size))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of the bytes of each file read by PyIceberg."""
    read: list[int] = []
    opened = pyarrow_io.PyArrowFile.open

    def open_counting(self: Any, **options: Any) -> Any:
        return pa.PythonFile(CountingStream(opened(self, **options), read), mode="r")

    monkeypatch.setattr(pyarrow_io.PyArrowFile, "open", open_counting)
    return read


@pytest.fixture
def cache(local_catalog: SqlCatalog) -> CatalogCache:
    return CatalogCache(lambda config, name: local_catalog)


@pytest.fixture
def writer(local_config: CatalogConfig, cache: CatalogCache) -> ResultWriter:
    return ResultWriter(local_config, "local", commit=ONE_COMMIT, catalogs=cache)


@pytest.fixture
def reader(local_config: CatalogConfig, cache: CatalogCache) -> ResultReader:
    return ResultReader(local_config, "local", catalogs=cache)


def address(number: int) -> ResultUri:
    return Execution(7, number, "local").result(Port("Scan-1"))


def rows(start: int, stop: int) -> pa.Table:
    numbers = pa.array(range(start, stop), pa.int64())
    return pa.table({"number": numbers, "text": pa.array([f"row {number:09}" for number in range(start, stop)])})


@pytest.fixture
def result(writer: ResultWriter) -> Iterator[ResultUri]:
    """Write a result with one file of 300,000 rows."""
    uri = address(1)
    writer.write(uri, rows(0, ROWS))
    return uri


def test_last_page_reads_only_its_row_group(reader: ResultReader, result: ResultUri, bytes_read: list[int]) -> None:
    """Regression: it decoded the whole file, 1.2 s instead of 0.03 s for the first page."""
    (file,) = [file for _, file in reader._index(result, reader.table(result)).files]
    bytes_read.clear()
    page = reader.range(result, ROWS - PAGE, PAGE)
    assert page.column("number").to_pylist() == list(range(ROWS - PAGE, ROWS))
    assert 0 < sum(bytes_read) < file.file_size_in_bytes / 3


@pytest.mark.parametrize(
    ("skip", "limit"),
    [
        *[(0, 10), (65_530, 12), (65_536, 65_536), (131_000, 100_000), (ROWS - 5, 100), (ROWS - 5, 250)],
        *[(0, ROWS), (ROWS, 5), (ROWS + 250, 100)],
    ],
)
def test_rows_of_pages(reader: ResultReader, result: ResultUri, writer: ResultWriter, skip: int, limit: int) -> None:
    """Pages within a row group, across two groups, across several files, and past the end."""
    for start in (ROWS, ROWS + 100, ROWS + 200):
        writer.tables.load(result).append(rows(start, start + 100))
    page = reader.range(result, skip, limit)
    expected = rows(0, ROWS + 300).slice(skip, limit)
    assert page.column("number").to_pylist() == expected.column("number").to_pylist()
    assert page.column("text").to_pylist() == expected.column("text").to_pylist()
    assert page.schema.names == ["number", "text"]


def test_pages_of_files_without_a_later_column(reader: ResultReader, result: ResultUri, writer: ResultWriter) -> None:
    """Added and renamed columns are projected as PyIceberg does."""
    table = writer.tables.load(result)
    with table.update_schema() as change:
        change.rename_column("text", "label")
        change.add_column("later", StringType())
    page = reader.range(result, ROWS - 2, 2)
    assert page.to_pylist() == [
        {"number": number, "label": f"row {number:09}", "later": None} for number in (ROWS - 2, ROWS - 1)
    ]


def test_page_of_a_recreated_result(reader: ResultReader, result: ResultUri, writer: ResultWriter) -> None:
    """The files that the reader has seen are gone."""
    assert reader.range(result, 0, 1).column("number").to_pylist() == [0]
    for file in list(writer.tables.load(result).inspect.files().column("file_path").to_pylist()):
        writer.tables.load(result).io.delete(file)
    writer.write(result, rows(5, 10))
    assert reader.range(result, 0, 1).column("number").to_pylist() == [5]


@pytest.mark.parametrize("replacement", [rows(5, 10), pa.table({"other": ["x", "y"]})], ids=["rows", "columns"])
def test_page_after_replacement_has_new_rows(reader: ResultReader, writer: ResultWriter, replacement: pa.Table) -> None:
    """Regression: pages of old rows were served for 5 s, since replacement keeps the table and its files."""
    uri = address(1)
    writer.write(uri, rows(0, 4))
    assert reader.range(uri, 0, 2).column("number").to_pylist() == [0, 1]
    writer.write(uri, replacement)
    assert reader.range(uri, 0, 2).to_pylist() == replacement.slice(0, 2).to_pylist()


def test_number_of_cached_results_is_bounded(reader: ResultReader, writer: ResultWriter) -> None:
    for number in range(INDEXES + 20):
        writer.tables.create_or_load(address(number), rows(0, 1).schema)
        assert reader.count(address(number)) == 0
    assert len(reader._indexes) == INDEXES


def test_batches_hold_one_row_group_at_a_time(
    reader: ResultReader, result: ResultUri, writer: ResultWriter, bytes_read: list[int]
) -> None:
    (file,) = [file for _, file in reader._index(result, reader.table(result)).files]
    writer.tables.load(result).append(rows(ROWS, ROWS + 100))
    bytes_read.clear()
    batches = reader.iterate_batches(result)
    assert next(batches).num_rows <= row_groups.MAX_BATCH_ROWS
    assert 0 < sum(bytes_read) < file.file_size_in_bytes / 2
    remaining = list(batches)
    assert max(batch.num_rows for batch in remaining) == row_groups.MAX_BATCH_ROWS
    assert sum(batch.num_rows for batch in remaining) > ROWS - ROW_GROUP


@pytest.mark.parametrize(("offset", "limit"), [(0, None), (65_530, 12), (131_000, 100_000), (ROWS - 5, 100), (ROWS, 5)])
def test_batches_are_the_rows_of_the_page(
    reader: ResultReader, result: ResultUri, writer: ResultWriter, offset: int, limit: int | None
) -> None:
    writer.tables.load(result).append(rows(ROWS, ROWS + 100))
    batches = list(reader.iterate_batches(result, offset, limit))
    expected = rows(0, ROWS + 100).slice(offset, limit)
    assert [value for batch in batches for value in batch.column("number").to_pylist()] == expected[
        "number"
    ].to_pylist()


def write_wide_rows(writer: ResultWriter, uri: ResultUri, files: int, width: int) -> list[bytes]:
    """Write four rows of random bytes to each file, and return the values."""
    values = [os.urandom(width) for _ in range(4 * files)]
    writer.write(uri, pa.table({"wide": values[:4]}))
    for file in range(1, files):
        writer.tables.load(uri).append(pa.table({"wide": values[4 * file : 4 * file + 4]}))
    return values


def refuse_to_wait(_: float) -> None:
    pytest.fail("a follower waits although there are rows")


def test_wide_rows_are_followed_by_bytes(reader: ResultReader, writer: ResultWriter) -> None:
    """The default limit, too: 40 MiB in ten files are not yielded at once."""
    values = write_wide_rows(writer, address(4), files=10, width=2**20)
    assert 24 <= next(reader.follow(address(4), wait=refuse_to_wait)).rows.num_rows <= 32
    pages = reader.follow(address(4), max_bytes=7 * 2**20, wait=refuse_to_wait)
    numbers = [next(pages).rows["wide"].to_pylist() for _ in range(7)]
    assert [value for page in numbers for value in page] == values
    assert max(map(len, numbers)) == 6
    assert reader.read_after(address(4), None, 2, max_bytes=1).rows["wide"].to_pylist() == values[:1]
    assert reader.read_after(address(4)).rows.num_rows == len(values), "without a limit, all rows"


def test_compressed_rows_are_followed_by_their_bytes_in_memory(reader: ResultReader, writer: ResultWriter) -> None:
    """The file of 4 MiB of equal texts has a few KiB."""
    writer.write(address(6), pa.table({"text": ["x" * 2**16] * 64}))
    pages = reader.follow(address(6), max_bytes=2**20, wait=refuse_to_wait)
    sizes = [next(pages).rows.num_rows for _ in range(5)]
    assert sizes == [15, 15, 15, 15, 4], "a text has 64 KiB, and its offset 4 bytes"


def test_batches_of_wide_rows_are_small(
    reader: ResultReader, writer: ResultWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = write_wide_rows(writer, address(5), files=2, width=100_000)
    monkeypatch.setattr(row_groups, "BATCH_BYTES", 250_000)
    batches = list(reader.iterate_batches(address(5), 1, 6))
    assert [value for batch in batches for value in batch.column("wide").to_pylist()] == values[1:7]
    assert max(batch.num_rows for batch in batches) == 2


def test_batches_of_a_result_without_rows(reader: ResultReader, writer: ResultWriter) -> None:
    writer.tables.create_or_load(address(2), rows(0, 1).schema)
    assert list(reader.iterate_batches(address(2))) == []


def test_batches_are_those_of_the_first_snapshot(reader: ResultReader, result: ResultUri, writer: ResultWriter) -> None:
    batches = reader.iterate_batches(result)
    first = next(batches)
    writer.tables.load(result).append(rows(ROWS, ROWS + 100))
    assert first.num_rows + sum(batch.num_rows for batch in batches) == ROWS


def test_followed_rows_come_once_and_in_order(reader: ResultReader, writer: ResultWriter) -> None:
    uri = address(3)
    table = writer.tables.create_or_load(uri, rows(0, 1).schema)
    appended = iter([(0, 5), (5, 12)])
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) in {1, 4}:  # rows come after the first wait, and after three waits without rows
            table.refresh().append(rows(*next(appended)))

    news = reader.follow(uri, wait=wait, limit=4)
    pages = [next(news).rows["number"].to_pylist() for _ in range(4)]
    assert pages == [[0, 1, 2, 3], [4], [5, 6, 7, 8], [9, 10, 11]]
    assert waits == [0.5, 0.5, 1.0, 2.0]


def test_followed_rows_continue_after_a_cursor(reader: ResultReader, result: ResultUri) -> None:
    first = reader.read_after(result, None, 10)
    following = next(reader.follow(result, Cursor.parse(str(first.cursor)), limit=3))
    assert following.rows["number"].to_pylist() == [10, 11, 12]


def test_following_ends_when_the_result_is_replaced(
    reader: ResultReader, result: ResultUri, writer: ResultWriter
) -> None:
    news = reader.follow(result, limit=5)
    next(news)
    writer.write(result, rows(5, 10))
    with pytest.raises(RowsMovedError, match="read again without a cursor"):
        next(news)
