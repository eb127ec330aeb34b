"""Results as DataFrames: Spark and PyIceberg read each other's results, under any operator id."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import ColumnRefusedError, RowsDeletedError, RowsMovedError, WarehouseRefusedError
from lakewright_spark.migration.fence import build_fence
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.frames import ResultFrames
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.writer import ResultWriter
from lakewright_spark.session.builder import spark_session
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# Every port id has parentheses, commas and `=`; operator ids may have dots.
PORT = Port("Frames.of-a-kind")


@pytest.fixture(scope="module")
def spark(catalog_config: CatalogConfig) -> Iterator[SparkSession]:
    session = spark_session(catalog_config, "frames")
    yield session
    session.stop()


@pytest.fixture
def frames(spark: SparkSession, catalog_config: CatalogConfig) -> ResultFrames:
    return ResultFrames(spark, catalog_config, "results")


@pytest.fixture
def reader(catalog_config: CatalogConfig) -> ResultReader:
    return ResultReader(catalog_config)


def test_frames_and_results_convert_both_ways(
    frames: ResultFrames, reader: ResultReader, catalog_config: CatalogConfig
) -> None:
    uri = Execution(1, 1, "results").result(PORT)
    frames.write(uri, frames.spark.range(0, 1000, numPartitions=4).withColumnRenamed("id", "number"))
    assert reader.count(uri) == frames.read(uri).count() == 1000
    # Each partition is one file; rows keep the order of the partitions.
    assert reader.range(uri, 240, 20)["number"].to_pylist() == list(range(240, 260))
    assert reader.table(uri).properties["commit.manifest-merge.enabled"] == "true"
    schema = reader.read_all(uri).schema
    ResultWriter(catalog_config, "results").write_rows(uri, schema, [(5,), (6,)])
    frames.spark.catalog.refreshTable(frames.identifier(uri))
    assert sorted(row.number for row in frames.read(uri).collect()) == [5, 6]


def test_files_of_spark_have_row_groups(frames: ResultFrames, reader: ResultReader) -> None:
    """A reader of the last page would read the whole file otherwise."""
    uri = Execution(1, 2, "results").result(PORT)
    frames.write(uri, frames.spark.range(0, 400_000, numPartitions=1).selectExpr("id", "md5(string(id)) AS text"))
    table = reader.table(uri)
    (task,) = table.scan().plan_files()
    with table.io.new_input(task.file.file_path).open() as stream:
        metadata = pq.ParquetFile(stream).metadata
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert max(groups) < 200_000
    assert sum(groups) == 400_000
    assert reader.range(uri, 399_990, 10)["id"].to_pylist() == list(range(399_990, 400_000))


@pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="five million rows: test-all")
def test_five_million_rows_by_page(frames: ResultFrames, reader: ResultReader) -> None:
    uri = Execution(1, 2).result(PORT)
    frame = frames.spark.range(0, 5_000_000, numPartitions=8)
    frame = frame.selectExpr("id", "id % 97 AS category", "cast(floor(rand(7) * 1000000) AS bigint) AS amount")
    frames.write(uri, frame)
    expected = frames.read(uri).agg({"id": "sum", "amount": "sum"}).collect()[0]
    whole = reader.read_all(uri)
    assert whole.num_rows == reader.count(uri) == 5_000_000
    assert whole["id"].to_pylist() == list(range(5_000_000))
    assert (pc.sum(whole["id"]).as_py(), pc.sum(whole["amount"]).as_py()) == (
        expected["sum(id)"],
        expected["sum(amount)"],
    )
    for offset in (0, 624_990, 4_999_990):
        assert reader.range(uri, offset, 20).equals(whole.slice(offset, 20))


def test_one_session_writes_a_result_twice(frames: ResultFrames, reader: ResultReader) -> None:
    uri = Execution(1, 3).result(PORT)
    for rows in (10, 4):
        frames.write(uri, frames.spark.range(rows))
        assert frames.read(uri).count() == reader.count(uri) == rows


def test_write_keeps_the_fence_of_a_migration(frames: ResultFrames, reader: ResultReader) -> None:
    uri = Execution(1, 5).result(PORT)
    frames.write(uri, frames.spark.range(10))
    table = reader.table(uri)
    fence = build_fence(table.properties, "r1", datetime.now(UTC), was_protected=False)
    with table.transaction() as change:
        change.set_properties(fence)
    frames.write(uri, frames.spark.range(4))
    assert reader.table(uri).properties.items() >= fence.items()
    assert reader.count(uri) == 4


def test_failed_write_keeps_the_old_result(frames: ResultFrames, reader: ResultReader) -> None:
    uri = Execution(1, 6).result(PORT)
    frames.write(uri, frames.spark.range(10))
    broken = frames.spark.range(20).selectExpr("IF(id = 15, CAST(raise_error('no such value') AS bigint), id) AS id")
    with pytest.raises(PySparkException, match="no such value"):
        frames.write(uri, broken)
    assert reader.read_all(uri)["id"].to_pylist() == list(range(10))


def test_frame_reads_the_result_it_replaces(frames: ResultFrames, reader: ResultReader) -> None:
    uri = Execution(1, 7).result(PORT)
    frames.write(uri, frames.spark.range(10))
    frames.write(uri, frames.read(uri).where("id >= 4").selectExpr("id", "id * 2 AS twice"))
    assert reader.read_all(uri).to_pylist() == [{"id": number, "twice": 2 * number} for number in range(4, 10)]
    assert frames.read(uri).count() == 6


def test_columns_are_converted_to_texera_types(frames: ResultFrames, reader: ResultReader) -> None:
    uri = Execution(1, 9).result(PORT)
    columns = [
        "TIMESTAMP '2026-07-01 14:00:00.123456+02:00' AS instant",
        "DATE '2026-07-01' AS day",
        "CAST(1.5 AS float) AS small",
        "CAST(7 AS smallint) AS short",
        "'a' AS `text.with``dots`",
        "TIMESTAMP_NTZ '2026-07-01 08:00:00' AS local",
    ]
    frames.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        frames.write(uri, frames.spark.range(1).selectExpr(*columns))
    finally:
        frames.spark.conf.set("spark.sql.session.timeZone", "UTC")
    kinds = [str(field.field_type) for field in reader.table(uri).schema().fields]
    assert kinds == ["timestamp", "timestamp", "double", "int", "string", "timestamp"]
    assert list(reader.read_all(uri).to_pylist()[0].values()) == [
        datetime.fromisoformat("2026-07-01T12:00:00.123456"),
        datetime.fromisoformat("2026-07-01T00:00:00"),
        1.5,
        7,
        "a",
        datetime.fromisoformat("2026-07-01T08:00:00"),
    ]


@pytest.mark.parametrize("column", ["CAST(1 AS decimal(5,2)) AS c", "array(1) AS c", "named_struct('a', 1) AS c"])
def test_unsupported_column_types_are_refused(frames: ResultFrames, reader: ResultReader, column: str) -> None:
    uri = Execution(1, 10).result(PORT)
    frames.write(uri, frames.spark.range(3))
    with pytest.raises(ColumnRefusedError, match="column 'c': expected a type that Texera reads"):
        frames.write(uri, frames.spark.range(1).selectExpr(column))
    assert reader.count(uri) == 3


def test_pages_of_rewritten_results_are_refused(frames: ResultFrames, reader: ResultReader) -> None:
    uri = Execution(1, 4).result(PORT)
    frames.write(uri, frames.spark.range(10))
    table = frames.identifier(uri)
    frames.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    frames.spark.sql(f"DELETE FROM {table} WHERE id = 3")
    with pytest.raises(RowsDeletedError, match=r"has delete files.*appended only"):
        reader.range(uri, 0, 5)
    rewritten = Execution(1, 8).result(PORT)
    frames.write(rewritten, frames.spark.range(10))
    cursor = reader.read_after(rewritten, limit=5).cursor
    frames.spark.sql(f"DELETE FROM {frames.identifier(rewritten)} WHERE id = 3")
    with pytest.raises(RowsMovedError, match="was rewritten"):
        reader.read_after(rewritten, cursor)


def test_result_of_another_warehouse_is_refused(frames: ResultFrames) -> None:
    with pytest.raises(WarehouseRefusedError, match="is in warehouse 'curated'"):
        frames.identifier(Execution(1, 5, "curated").runtime_statistics())
