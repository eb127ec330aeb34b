"""The driver holds neither all orphan files nor all partitions of a table. Results of tasks are limited here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from lakewright_spark.maintenance.jobs import staged_files
from lakewright_spark.maintenance.table import partition_sizes
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from pyspark.sql import DataFrame, SparkSession

from tests.spark.maintenance.conftest import DAY, Maintained
from tests.spark.maintenance.delete_files import delete_by_equality

pytestmark = pytest.mark.spark
CreateTable = Callable[..., Maintained]
ORPHANS = 30_000
"""Their addresses take more than 2 MB in the results of tasks."""


@contextmanager
def limit_results(spark: SparkSession, size: str) -> Iterator[None]:
    """Let Spark abort each stage whose tasks return more bytes than this to the driver."""
    context: Any = spark.sparkContext
    conf, key = context._jsc.sc().conf(), "spark.driver.maxResultSize"
    conf.set(key, size)
    try:
        yield
    finally:
        conf.remove(key)


def test_orphan_files_are_not_in_the_driver(create_table: CreateTable) -> None:
    table = create_table("littered", "AS SELECT 1 AS n")
    location = IcebergTable.open(table.spark, table.table).location
    table.spark.range(ORPHANS).selectExpr(
        f"concat('{location}/data/', md5(CAST(id AS string)), '.parquet') AS file_path",
        "TIMESTAMP '2020-01-01' AS last_modified",
    ).createOrReplaceTempView("littered")
    table.set_policies(orphan_files={"listing": "littered"})
    with limit_results(table.spark, "1m"):
        done = table.job("orphan-files")
    assert (done.candidates, done.new) == (ORPHANS, ORPHANS)


@pytest.mark.parametrize("version", [2, 3])
def test_sums_of_files_equal_icebergs_partitions(
    create_table: CreateTable, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Partitions of several specs, with deletes of each kind, files of expired snapshots, and nulls."""
    table = create_table(
        f"summed_{version}",
        "(n int, day date, text string) USING iceberg PARTITIONED BY (n) TBLPROPERTIES "
        f"('format-version'='{version}', 'write.delete.mode'='merge-on-read')",
    )
    table.do("INSERT INTO THIS VALUES (1, date'2026-01-01', 'a'), (1, NULL, 'b'), (NULL, NULL, 'c'), (2, NULL, 'd')")
    table.do("ALTER TABLE THIS ADD PARTITION FIELD bucket(4, text)")
    table.do("INSERT INTO THIS VALUES (1, NULL, 'a'), (1, NULL, 'b'), (2, NULL, NULL)")
    table.do("DELETE FROM THIS WHERE text = 'b'")
    table.do("ALTER TABLE THIS DROP PARTITION FIELD n")
    table.do("INSERT INTO THIS VALUES (3, NULL, 'x'), (3, NULL, NULL)")
    delete_by_equality(table, 3, 0)
    table.set_policies(history={"max_age_days": 1})
    assert table.job("snapshot-expiration").snapshots > 0
    opened = IcebergTable.open(table.spark, table.table)
    expected = partition_sizes.read_partitions(opened)
    summed = partition_sizes.add_files_up(opened)
    assert list_rows(summed) == list_rows(expected)
    assert {row["equality_deletes"] for row in list_rows(summed)} == {0, 1}

    small = table.job("statistics", dry_run=True)
    monkeypatch.setattr(partition_sizes, "MAX_FILES", 3)
    monkeypatch.setattr(partition_sizes, "read_partitions", None)
    assert table.job("statistics", dry_run=True) == small
    assert table.job("statistics").partitions == small.partitions
    recorded_rows = table.column(
        f"SELECT count(*) FROM results.ops.partition_statistics WHERE table_uuid = '{opened.uuid}'"
    )
    assert recorded_rows == [small.partitions]


def list_rows(frame: DataFrame) -> list[dict[str, Any]]:
    rows = [row.asDict() for row in frame.collect()]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def test_jobs_leave_no_frames_in_sparks_cache(create_table: CreateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame in the cache is computed again at each commit to a table that it reads, also after a drop of others."""
    monkeypatch.setattr(staged_files, "FILES_AT_ONCE", 1)
    table = create_table("cached", "AS SELECT 1 AS n")
    cache: Any = table.spark._jsparkSession.sharedState().cacheManager()
    cache.clearCache()
    table.set_policies(orphan_files={"older_than_days": 1}, staged_files={"older_than_days": 1})
    lost = {table.create_lost_file(name) for name in ("lost.parquet", "lost-too.parquet")}
    assert table.job("orphan-files").new == len(lost)
    table.now += DAY
    assert table.job("staged-files").deleted == len(lost)
    table.job("statistics")
    assert not lost & table.objects().keys()
    assert cache.isEmpty()
