"""The driver holds neither all orphan or old files nor all partitions of a table. Results of tasks are limited here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lakewright_spark.errors import SharedLocationError
from lakewright_spark.maintenance.jobs import retention, staged_files
from lakewright_spark.maintenance.table import partition_sizes
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.maintenance.table.partition_sizes import PartitionSizes
from pyspark.sql import DataFrame, SparkSession

from tests.spark.maintenance.conftest import DAY, Maintained
from tests.spark.maintenance.delete_files import delete_by_equality
from tests.spark.maintenance.large_table import generate

pytestmark = pytest.mark.spark
CreateTable = Callable[..., Maintained]
ORPHANS = 30_000
"""Their addresses take about 1 MB in the compressed results of tasks."""


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


@pytest.mark.long
def test_orphan_files_are_not_in_the_driver(create_table: CreateTable) -> None:
    table = create_table("littered", "AS SELECT 1 AS n")
    location = IcebergTable.open(table.spark, table.table).location
    table.spark.range(ORPHANS).selectExpr(
        f"concat('{location}/data/', md5(CAST(id AS string)), '.parquet') AS file_path",
        "TIMESTAMP '2020-01-01' AS last_modified",
    ).createOrReplaceTempView("littered")
    table.set_policies(orphan_files={"listing": "littered"})
    with limit_results(table.spark, "300k"):
        metrics = table.job("orphan-files")
    assert (metrics.candidates, metrics.new) == (ORPHANS, ORPHANS)


@pytest.fixture
def littered(create_table: CreateTable, monkeypatch: pytest.MonkeyPatch) -> Iterator[Maintained]:
    """Yield a table with candidates that no listing of the store needs, and with deletions that no store sees."""
    table = create_table("staged", "AS SELECT 1 AS n")
    location = IcebergTable.open(table.spark, table.table).location
    addresses = table.spark.range(ORPHANS).selectExpr(
        f"concat('{location}/data/', md5(CAST(id AS string)), '.parquet') AS file_path"
    )
    old = "TIMESTAMP '2020-01-01'"
    candidates = addresses.selectExpr("file_path", f"{old} AS first_seen")
    monkeypatch.setattr(staged_files, "read_candidates", lambda _: candidates)

    @contextmanager
    def find_all(*_: object) -> Iterator[DataFrame]:
        yield addresses

    monkeypatch.setattr(staged_files, "find_unreferenced_files", find_all)
    monkeypatch.setattr(staged_files, "record_candidates", lambda *_: 0)
    # The driver has the smaller table of a broadcast join, up to 10 MB.
    table.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield table
    table.spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


@pytest.mark.long
def test_staged_files_come_to_the_driver_in_parts(littered: Maintained, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the addresses, which is a partition of the session, exceeds the limit."""
    parts: list[int] = []
    monkeypatch.setattr(IcebergTable, "delete_files", lambda _, paths: parts.append(len(paths)))
    monkeypatch.setattr(staged_files, "FILES_AT_ONCE", 2_000)
    with limit_results(littered.spark, "300k"):
        metrics = littered.job("staged-files")
    assert metrics.deleted == ORPHANS
    assert parts == [2_000] * 15


def test_an_interrupted_deletion_counts_its_files(littered: Maintained, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[int] = []

    def delete(opened: IcebergTable, paths: list[str]) -> None:
        if parts:
            opened.spark.sql("SELECT raise_error('the second part failed')").collect()
        parts.append(len(paths))

    monkeypatch.setattr(IcebergTable, "delete_files", delete)
    monkeypatch.setattr(staged_files, "FILES_AT_ONCE", 10_000)
    monkeypatch.setattr(staged_files, "keep_rows", lambda *_: pytest.fail("open candidates are marked as handled"))
    metrics = littered.job("staged-files")
    assert metrics.deleted == parts[0] == 10_000
    assert "the second part failed" in metrics.failure
    assert "after the deletion of 10000 files" in metrics.failure


def test_an_interrupted_check_counts_the_deleted_files(littered: Maintained, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another catalog takes over the location after the deletions."""
    listings = 0
    find_all = staged_files.find_unreferenced_files

    def find_once(opened: IcebergTable, limit: datetime) -> AbstractContextManager[DataFrame]:
        nonlocal listings
        listings += 1
        if listings == 2:
            raise SharedLocationError("the location has a second owner")
        return find_all(opened, limit)

    monkeypatch.setattr(staged_files, "find_unreferenced_files", find_once)
    monkeypatch.setattr(IcebergTable, "delete_files", lambda *_: None)
    monkeypatch.setattr(staged_files, "keep_rows", lambda *_: pytest.fail("open candidates are marked as handled"))
    metrics = littered.job("staged-files")
    assert metrics.deleted == ORPHANS
    assert "a second owner" in metrics.failure


@pytest.mark.long
def test_old_files_come_to_the_driver_in_parts(create_table: CreateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paths of all old files exceed the limit. The files of a manifest are in one commit, or in two."""
    table = create_table("outdated", "(part string, text string) USING iceberg PARTITIONED BY (part)")
    generate(table.spark, table.table, commits=8, files=5_000)
    table.do("INSERT INTO THIS VALUES ('2099-01-01', 'current')")
    table.set_policies(retention={"keep": 1, "column": "part", "pattern": ""})
    summaries: list[dict[str, str]] = []
    commit = IcebergTable.commit

    def record_commit(opened: IcebergTable, change: Any) -> dict[str, str]:
        summaries.append(commit(opened, change))
        return summaries[-1]

    monkeypatch.setattr(IcebergTable, "commit", record_commit)
    monkeypatch.setattr(retention, "FILES_AT_ONCE", 5_000)
    with limit_results(table.spark, "300k"):
        metrics = table.job("retention")
    assert (metrics.files, metrics.rows) == (40_000, 40_000_000_000)
    assert [summary["deleted-data-files"] for summary in summaries] == ["5000"] * 8
    assert max(int(summary["manifests-replaced"]) for summary in summaries) <= 2
    assert table.column("SELECT text FROM THIS") == ["current"]


def test_an_interrupted_retention_counts_its_files(create_table: CreateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create_table("interrupted", "(day string, n int) USING iceberg PARTITIONED BY (day)")
    table.do("INSERT INTO THIS SELECT '2020-01-0' || id, id FROM range(1, 6)")
    table.set_policies(retention={"keep": 1, "column": "day", "pattern": ""})
    commit, summaries = IcebergTable.commit, list[dict[str, str]]()

    def fail_second_commit(opened: IcebergTable, change: Any) -> dict[str, str]:
        if summaries:
            opened.spark.sql("SELECT raise_error('the second commit failed')").collect()
        summaries.append(commit(opened, change))
        return summaries[-1]

    monkeypatch.setattr(IcebergTable, "commit", fail_second_commit)
    monkeypatch.setattr(retention, "FILES_AT_ONCE", 2)
    interrupted = table.job("retention")
    assert (interrupted.files, interrupted.rows) == (2, 2)
    assert "the second commit failed" in interrupted.failure
    assert "after the deletion of 2 files" in interrupted.failure
    monkeypatch.setattr(IcebergTable, "commit", commit)
    completed = table.job("retention")
    assert (completed.files, completed.failure) == (3, None)
    assert table.column("SELECT n FROM THIS") == []


def test_an_addition_between_two_commits_is_kept(create_table: CreateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with old rows, which is added during the run, is not in the snapshot that the run has read."""
    table = create_table("growing", "(day string, n int) USING iceberg PARTITIONED BY (day)")
    table.do("INSERT INTO THIS VALUES ('2020-01-01', 1), ('2020-01-02', 2), ('2020-01-03', 3), ('', 4)")
    table.set_policies(retention={"keep": 1, "column": "day", "pattern": ""})
    commit = IcebergTable.commit

    def commit_and_add(opened: IcebergTable, change: Any) -> dict[str, str]:
        summary = commit(opened, change)
        table.do("INSERT INTO THIS VALUES ('2020-01-01', 5)")
        return summary

    monkeypatch.setattr(IcebergTable, "commit", commit_and_add)
    monkeypatch.setattr(retention, "FILES_AT_ONCE", 2)
    metrics = table.job("retention")
    assert (metrics.files, metrics.rows, metrics.other_files, metrics.failure) == (3, 3, 1, None)
    assert sorted(table.column("SELECT n FROM THIS")) == [4, 5, 5]


@pytest.mark.long
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
    summed = partition_sizes.sum_files_by_partition(opened)
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


def test_statistics_of_partitions_by_a_dropped_column(
    create_table: CreateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of both specs are in the partition `n=1`. Iceberg cannot read the files of such a table."""
    table = create_table("dropped", "(n int, extra int) USING iceberg PARTITIONED BY (n)")
    table.do("INSERT INTO THIS VALUES (1, 1)")
    table.do("ALTER TABLE THIS ADD PARTITION FIELD extra")
    table.do("INSERT INTO THIS VALUES (1, 2)")
    table.do("ALTER TABLE THIS DROP PARTITION FIELD extra")
    table.do("ALTER TABLE THIS DROP COLUMN extra")
    monkeypatch.setattr(partition_sizes, "MAX_FILES", 0)
    with PartitionSizes(IcebergTable.open(table.spark, table.table)) as partitions:
        assert partitions.sum() == partitions.sum() | {"row_count": 2, "data_files": 2}
        assert partitions.record({}, None, dry_run=True) == 1


def list_rows(frame: DataFrame) -> list[dict[str, Any]]:
    rows = [row.asDict() for row in frame.collect()]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.long
def test_jobs_leave_no_frames_in_sparks_cache(create_table: CreateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame in the cache is computed again at each commit to a table that it reads, also after a drop of others."""
    monkeypatch.setattr(staged_files, "FILES_AT_ONCE", 1)
    monkeypatch.setattr(partition_sizes, "MAX_FILES", 0)
    table = create_table("cached", "AS SELECT 1 AS n")
    cache: Any = table.spark._jsparkSession.sharedState().cacheManager()
    cache.clearCache()
    context: Any = table.spark.sparkContext
    earlier = {*context._jsc.getPersistentRDDs().keySet()}
    table.set_policies(orphan_files={"older_than_days": 1}, staged_files={"older_than_days": 1})
    lost = {table.create_lost_file(name) for name in ("lost.parquet", "lost-too.parquet")}
    assert table.job("orphan-files").new == len(lost)
    table.now += DAY
    assert table.job("staged-files").deleted == len(lost)
    assert table.job("statistics").partitions == 1
    assert not lost & table.objects().keys()
    assert cache.isEmpty()
    assert {*context._jsc.getPersistentRDDs().keySet()} <= earlier


def test_wrong_and_missing_summaries_of_commits(create_table: CreateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iceberg requires no summary. A summary with too few files does not let all partitions into the driver."""
    java = SimpleNamespace(currentSnapshot=lambda: SimpleNamespace(summary=lambda: None))
    no_summary = SimpleNamespace(java=java, to_dict=lambda summary: summary or {})
    assert not partition_sizes.has_few_files(cast(IcebergTable, no_summary))
    table = create_table("unsummed", "USING iceberg PARTITIONED BY (n) AS SELECT id AS n FROM range(3)")
    monkeypatch.setattr(partition_sizes, "MAX_FILES", 2)
    monkeypatch.setattr(partition_sizes, "has_few_files", lambda _: True)
    with PartitionSizes(IcebergTable.open(table.spark, table.table)) as partitions:
        assert partitions._frame is not None
        assert partitions.sum()["row_count"] == 3
