"""Results written row by row, as an operator yields them, and read by page while rows have a fixed place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import RowsDeletedError
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.uris import Execution, Port
from lakewright_spark.results.writer import ResultWriter
from lakewright_spark.session import spark_session
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

pytestmark = pytest.mark.spark

SCHEMA = StructType([StructField("number", LongType()), StructField("text", StringType())])
ROWS = [(number, f"row {number}") for number in range(10)]


@pytest.fixture(scope="module")
def spark(catalog_config: CatalogConfig) -> Iterator[SparkSession]:
    session = spark_session(catalog_config, "results")
    yield session
    session.stop()


@pytest.fixture
def writer(spark: SparkSession, catalog_config: CatalogConfig) -> ResultWriter:
    return ResultWriter(spark, catalog_config, "results")


@pytest.fixture
def reader(catalog_config: CatalogConfig) -> ResultReader:
    return ResultReader(catalog_config, "results")


def test_rows_come_back_in_the_order_in_which_they_were_committed(writer: ResultWriter, reader: ResultReader) -> None:
    uri = Execution(1, 1, "results").result(Port("Batches-operator-1"))
    assert writer.write_rows(uri, SCHEMA, iter(ROWS), batch=3) == 10
    assert len(list(reader.table(uri).scan().plan_files())) == 4  # a file a batch: 3, 3, 3 and 1 rows
    assert reader.count(uri) == 10
    assert reader.whole(uri)["number"].to_pylist() == list(range(10))
    for offset, limit in [(0, 10), (2, 3), (3, 3), (5, 100), (9, 1), (10, 1), (4, 0)]:
        assert reader.range(uri, offset, limit)["number"].to_pylist() == list(range(10))[offset : offset + limit]


def test_an_operator_without_rows_leaves_an_empty_table(writer: ResultWriter, reader: ResultReader) -> None:
    uri = Execution(1, 2).console_messages("Silent-operator-1")
    assert writer.write_rows(uri, SCHEMA, []) == 0
    assert reader.count(uri) == 0
    assert reader.range(uri, 0, 20).num_rows == 0
    assert reader.whole(uri).schema.names == ["number", "text"]


def test_one_session_can_write_a_result_twice(writer: ResultWriter, reader: ResultReader) -> None:
    uri = Execution(1, 3).result(Port("Again-operator-1"))
    writer.write_rows(uri, SCHEMA, ROWS)
    assert writer.spark.table(writer.identifier(uri)).count() == 10
    writer.write_rows(uri, SCHEMA, ROWS[:4])
    assert writer.spark.table(writer.identifier(uri)).count() == 4
    assert reader.count(uri) == 4


def test_pages_of_a_result_with_deleted_rows_are_refused(writer: ResultWriter, reader: ResultReader) -> None:
    uri = Execution(1, 4).result(Port("Deleted-operator-1"))
    writer.write_rows(uri, SCHEMA, ROWS)
    table = writer.identifier(uri)
    writer.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    writer.spark.sql(f"DELETE FROM {table} WHERE number = 3")
    with pytest.raises(RowsDeletedError, match=r"has delete files.*appended only"):
        reader.range(uri, 0, 5)


def test_a_result_of_another_warehouse_is_refused(writer: ResultWriter, reader: ResultReader) -> None:
    elsewhere = Execution(1, 5, "curated").runtime_statistics()
    with pytest.raises(ValueError, match="is in warehouse 'curated'"):
        writer.identifier(elsewhere)
    with pytest.raises(ValueError, match="is in warehouse 'curated'"):
        reader.count(elsewhere)
