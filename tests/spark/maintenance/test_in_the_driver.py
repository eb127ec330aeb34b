"""Calls of Iceberg's library in the driver: unusual tables, faults, and concurrent writers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from fault_proxy import unavailable
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance.table.facts import table_facts
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.policies.model import JOBS, JobName
from lakewright_spark.pyiceberg_client.catalog import open_catalog

from tests.spark.maintenance.conftest import DAY, FaultyWarehouse, Maintained
from tests.spark.maintenance.table_history import TableHistory

pytestmark = pytest.mark.spark

FULL_ONLY = pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="ten seconds each: test-all")
CreateTable = Callable[..., Maintained]


@pytest.mark.parametrize("version", [pytest.param(1, marks=FULL_ONLY), pytest.param(2, marks=FULL_ONLY), 3])
def test_tables_of_every_format_version(create_table: CreateTable, version: int) -> None:
    table = create_table(
        f"format_{version}",
        "(file_path string, partition int, pos date) USING iceberg PARTITIONED BY (days(pos), partition) "
        f"TBLPROPERTIES ('format-version'='{version}')",
    )
    table.set_policies(
        retention={"keep": 1, "column": "pos"},
        history={"versions": 2},
        orphan_files={"older_than_days": 1},
        staged_files={"older_than_days": 1},
        compaction={"min_input_files": 2},
    )
    for job in JOBS:
        assert table.job(job).state == "SUCCEEDED", "the table is empty"
    for number in range(3):
        table.do(f"INSERT INTO THIS VALUES ('{number}', {number % 2}, date'2099-01-01')")
    row_ids = "file_path || ' ' || _row_id" if version == 3 else "file_path"
    before = sorted(table.column(f"SELECT {row_ids} FROM THIS"))
    assert table.job("rewrite-manifests").rewritten == 3
    assert sorted(table.column(f"SELECT {row_ids} FROM THIS")) == before
    assert table.job("compaction").rewritten == 2
    done = table.job("snapshot-expiration")
    assert (done.snapshots, done.data_files, done.manifests) == (4, 2, 8), (
        "four manifest lists, and the manifests that only they reference"
    )
    assert table.job("statistics").partitions == 2
    assert table.job("orphan-files").candidates == 0
    assert sorted(table.column(f"SELECT {row_ids} FROM THIS")) == before


@pytest.mark.long
def test_statistics_of_old_partitions_and_staged_files(create_table: CreateTable) -> None:
    table = create_table("repartitioned", "(n int) USING iceberg PARTITIONED BY (n)")
    table.do("INSERT INTO THIS VALUES (1), (2)")
    table.do("ALTER TABLE THIS DROP PARTITION FIELD n")
    table.do("INSERT INTO THIS VALUES (3)")
    table.job("statistics")
    query = f"SELECT partition FROM results.ops.partition_statistics WHERE table_name = '{table.table}'"
    assert {json.loads(text).get("n") for text in table.column(query)} == {1, 2, None}

    staged = create_table("staged", "(n int) USING iceberg TBLPROPERTIES ('write.wap.enabled'='true')")
    table.spark.conf.set("spark.wap.id", "audit")
    try:
        staged.do("INSERT INTO THIS VALUES (1)")
    finally:
        table.spark.conf.unset("spark.wap.id")
    metrics = staged.job("statistics")
    assert (metrics.rows, metrics.data_bytes, metrics.snapshots) == (0, 0, 1)
    assert metrics.all_bytes > 0


def test_commit_rolled_back_by_another_writer_succeeded(create_table: CreateTable) -> None:
    table = create_table("gone_back", "(n int) USING iceberg")
    for number in range(2):
        table.do(f"INSERT INTO THIS VALUES ({number})")
    opened = IcebergTable.open(table.spark, table.table)
    first = opened.java.currentSnapshot().parentId()

    class RolledBackRewrite:
        """A rewrite of manifests that another writer rolls back before its result is read."""

        def __init__(self) -> None:
            key = opened.find_class("com.google.common.base.Functions").constant("all")
            self.change = opened.java.rewriteManifests().clusterBy(key)

        def set(self, key: str, value: str) -> RolledBackRewrite:
            self.change.set(key, value)
            return self

        def commit(self) -> None:
            self.change.commit()
            opened.java.manageSnapshots().rollbackTo(first).commit()

    assert opened.commit(RolledBackRewrite())["manifests-replaced"] == "2"


def test_backup_contains_all_deleted_rows(
    create_table: CreateTable, tenant: CatalogConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table("logged", "(day string, n int) USING iceberg PARTITIONED BY (day)")
    table.do("INSERT INTO THIS VALUES ('2020-01-01', 1)")
    table.set_policies(retention={"keep": 1, "column": "day", "pattern": "", "backup": True})
    late = pa.table({"day": ["2020-01-02"], "n": pa.array([2], pa.int32())})
    write = IcebergTable.write

    def slow(opened: IcebergTable, path: str, text: str) -> None:
        write(opened, path, text)
        load_table(tenant, table).append(late)

    monkeypatch.setattr(IcebergTable, "write", slow)
    assert table.job("retention").rows == 1
    monkeypatch.undo()
    table.spark.catalog.refreshTable(table.sql)
    assert table.column("SELECT n FROM THIS") == [2], "a late row is deleted by the next run"

    def write_while_rows_change(opened: IcebergTable, path: str, text: str) -> None:
        write(opened, path, text)
        with load_table(tenant, table).transaction() as change:
            change.overwrite(late)

    monkeypatch.setattr(IcebergTable, "write", write_while_rows_change)
    table.now += DAY
    before = {path for path in table.objects() if "/.backup/" in path}
    with pytest.raises(JobFailedError, match="Missing required files to delete"):
        table.job("retention")
    assert {path for path in table.objects() if "/.backup/" in path} == before, "no backup of kept rows"


def test_files_that_cannot_be_deleted_are_reported(create_table: CreateTable, faulty: FaultyWarehouse) -> None:
    table = create_table("undeleted", "(n int) USING iceberg", "faulty")
    for number in range(2):
        table.do(f"INSERT OVERWRITE THIS VALUES ({number})")
    with faulty.store.inject(lambda line, forward: unavailable() if "?delete" in line else forward()):
        done = table.job("snapshot-expiration")
    assert (done.snapshots, done.data_files, done.files_left) == (1, 0, True)
    assert "some of 3 files could not be deleted" in done.reason
    assert table.job("orphan-files").candidates == 3


def test_files_are_kept_if_backups_cannot_be_listed(create_table: CreateTable, faulty: FaultyWarehouse) -> None:
    table = create_table("unlisted", "(n int) USING iceberg", "faulty")
    for number in range(2):
        table.do(f"INSERT OVERWRITE THIS VALUES ({number})")
    listings: list[str] = []
    _, prefix = table.bucket_and_prefix

    def refuse_listings(line: str, forward: Callable[[], Any]) -> Any:
        # The server lists the locations of tables that other tests have dropped.
        if "list-type=2" not in line or quote(prefix.rstrip("/"), safe="") not in line:
            return forward()
        listings.append(line)
        return unavailable()

    with faulty.store.inject(refuse_listings):
        done = table.job("snapshot-expiration")
        assert (done.snapshots, done.data_files, done.files_left) == (1, 0, True)
        assert listings
        listings.clear()
        assert table.job("snapshot-expiration").snapshots == 0
    assert listings == [], "nothing was to expire"


def test_properties_are_parsed_as_iceberg_does(create_table: CreateTable, tenant: CatalogConfig) -> None:
    table = create_table("aged", "(n int) USING iceberg TBLPROPERTIES ('history.expire.max-ref-age-ms'='1')")
    table.do("INSERT INTO THIS VALUES (1)")
    table.do("ALTER TABLE THIS CREATE TAG kept RETAIN 365 DAYS")
    table.do("INSERT INTO THIS VALUES (2)")
    table.do("ALTER TABLE THIS CREATE TAG short")
    table.do("INSERT INTO THIS VALUES (3)")
    refs = Metadata.read(IcebergTable.open(table.spark, table.table)).refs
    assert sorted(table_facts(table.table, load_table(tenant, table)).refs, key=str) == sorted(refs, key=str)
    table.now += -30 * DAY + 6 * DAY
    dry = table.job("snapshot-expiration", dry_run=True)
    assert (dry.removed_refs, dry.snapshots) == (("short",), 0)
    assert table.job("snapshot-expiration") == replace(dry, dry_run=False)
    assert set(table.column("SELECT name FROM THIS.refs")) == {"main", "kept"}
    table.now += timedelta(hours=23)
    assert table.job("snapshot-expiration").snapshots == 0, "a reader of the tag may have a day"
    table.now += timedelta(hours=1)
    assert table.job("snapshot-expiration").snapshots == 1
    table.do("ALTER TABLE THIS SET TBLPROPERTIES ('gc.enabled' = 'FALSE')")
    for job in ("snapshot-expiration", "orphan-files", "staged-files"):
        assert table.job(job).reason == "the table has gc.enabled=false"
    assert table_facts(table.table, load_table(tenant, table)).keeps_garbage


def test_branch_created_meanwhile_keeps_its_snapshots(
    create_table: CreateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table("branched", "(n int) USING iceberg")
    for number in range(4):
        table.do(f"INSERT INTO THIS VALUES ({number})")
    line = table.column("SELECT snapshot_id FROM THIS.snapshots ORDER BY committed_at")
    read = Metadata.read

    def slow(opened: IcebergTable) -> Metadata:
        metadata = read(opened)
        table.do(f"ALTER TABLE THIS CREATE BRANCH late AS OF VERSION {line[2]} WITH SNAPSHOT RETENTION 3 SNAPSHOTS")
        return metadata

    monkeypatch.setattr(Metadata, "read", slow)
    table.job("snapshot-expiration")
    assert set(table.column("SELECT snapshot_id FROM THIS.snapshots")) == set(line)


@pytest.mark.parametrize("moment", ["before the transaction", "during the commit"])
@pytest.mark.parametrize("job", ["snapshot-expiration", "refs"])
def test_branch_that_moves_is_not_removed(
    create_table: CreateTable, faulty: FaultyWarehouse, monkeypatch: pytest.MonkeyPatch, job: JobName, moment: str
) -> None:
    """A writer commits to an old branch while a job is about to remove the branch."""
    table = create_table("moving", "(n bigint) USING iceberg", "faulty")
    table.do("INSERT INTO THIS VALUES (1)")
    table.set_policies(refs={"work": {"type": "branch", "max_age_days": 5}})
    table.now -= 30 * DAY
    assert table.job("refs").created == ("work",)
    table.now += 30 * DAY
    if job == "refs":
        table.set_policies()
    read, moves = Metadata.read, list[str]()

    def move(*, is_moment: bool) -> None:
        if is_moment and not moves:
            moves.append(moment)
            live_table = open_catalog(faulty.config, "faulty").load_table(table.table.within)
            live_table.append(pa.table({"n": [2]}), branch="work")

    def read_before_move(opened: IcebergTable) -> Metadata:
        metadata = read(opened)
        move(is_moment=moment == "before the transaction")
        return metadata

    def move_before_commit(line: str, forward: Callable[[], Any]) -> Any:
        move(is_moment=moment == "during the commit" and line.startswith("POST") and "/tables/moving" in line)
        return forward()

    monkeypatch.setattr(Metadata, "read", read_before_move)
    with faulty.catalog.inject(move_before_commit):
        done = table.job(job)
    assert moves == [moment]
    assert getattr(done, "removed", ()) == getattr(done, "removed_refs", ()) == ()
    table.do("REFRESH TABLE THIS")
    assert sorted(table.column("SELECT n FROM THIS VERSION AS OF 'work'")) == [1, 2]


@FULL_ONLY
def test_files_committed_before_the_deletion_are_kept(
    create_table: CreateTable, tenant: CatalogConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table("late", "(n int) USING iceberg")
    table.do("INSERT INTO THIS VALUES (1)")
    table.set_policies(orphan_files={"older_than_days": 1}, staged_files={"older_than_days": 1})
    history = TableHistory(table, tenant)
    history.begin()
    lost = table.create_lost_file("lost.parquet")
    assert table.job("orphan-files").new == 2
    table.now += 2 * DAY

    def deletes(opened: IcebergTable) -> bool:
        if history.uncommitted_writes:
            history.end()
        return True

    monkeypatch.setattr(IcebergTable, "deletes_files", property(deletes))
    table.job("staged-files")
    assert lost not in table.objects()
    table.spark.catalog.refreshTable(table.sql)
    assert sorted(table.column("SELECT n FROM THIS")) == [1, 10_000]


def load_table(config: CatalogConfig, table: Maintained) -> Any:
    """Load the table through a second client."""
    return open_catalog(config, table.table.warehouse).load_table(table.table.within)
