"""Each maintenance job on a real table: its effect, its dry run, and the files that it keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError, NoSuchResultError, PolicyRefusedError
from lakewright_spark.maintenance import job_runner
from lakewright_spark.maintenance.jobs import compaction, retention, snapshot_expiration, statistics
from lakewright_spark.maintenance.table.iceberg import IcebergTable, SharedTable
from lakewright_spark.maintenance.table.recorded_commits import RecordedCommits
from lakewright_spark.policies.model import PoliciesInForce
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.run_log.ops_buffer import OpsBuffer
from lakewright_spark.table_identifier import TableIdentifier

from tests.real_servers import leave_out
from tests.spark.maintenance.conftest import DAY, Maintained, deny

pytestmark = pytest.mark.spark

CreateTable = Callable[..., Maintained]


class TestRetention:
    def test_expired_partitions_are_deleted(self, create_table: CreateTable) -> None:
        table = create_table("events", "(ts timestamp, n int) USING iceberg PARTITIONED BY (days(ts))")
        table.do("INSERT INTO THIS SELECT timestamp'2026-01-01 12:00:00' + make_interval(0,0,0,id), id FROM range(5)")
        table.set_policies(retention={"keep": 2, "column": "ts", "backup": True})
        table.now = table.now.replace(year=2026, month=1, day=5, hour=9)
        before = table.objects()
        dry = table.job("retention", dry_run=True)
        assert (dry.files, dry.rows, dry.before) == (2, 2, "TIMESTAMP '2026-01-03 00:00:00.000000+00:00'")
        assert len(table.column("SELECT n FROM THIS")) == 5
        done = table.job("retention")
        assert (done.files, done.rows, done.bytes) == (2, 2, dry.bytes)
        assert sorted(table.column("SELECT n FROM THIS")) == [2, 3, 4]
        assert table.job("retention").files == 0
        self._backup_outlives_other_jobs(table, before, done.manifest)

    def _backup_outlives_other_jobs(self, table: Maintained, before: dict[str, str], manifest: str) -> None:
        table.now += 365 * DAY
        expired = table.job("snapshot-expiration")
        assert (expired.snapshots, expired.files_left) == (1, True)
        table.job("orphan-files")
        table.now += 10 * DAY
        table.job("staged-files")
        remaining_files = table.objects()
        assert manifest in remaining_files
        data = {path for path in before if "/data/" in path}
        assert data <= remaining_files.keys()

    def test_text_column_is_compared_by_pattern(self, create_table: CreateTable) -> None:
        table = create_table("logs", "(day string, n int) USING iceberg PARTITIONED BY (day)")
        table.do("INSERT INTO THIS VALUES ('20251231', 1), ('20260101', 2), (NULL, 3)")
        table.now = table.now.replace(year=2026, month=2, day=1)
        table.set_policies(retention={"keep": 1, "unit": "month", "column": "day", "pattern": "yyyyMMdd"})
        assert table.job("retention").rows == 1
        assert sorted(table.column("SELECT n FROM THIS")) == [2, 3]

    @pytest.mark.parametrize(
        ("backup", "most_in_driver"),
        [
            (False, retention.MAX_FILES),
            (False, 1),
            pytest.param(True, retention.MAX_FILES, marks=pytest.mark.long),
            pytest.param(True, 1, marks=pytest.mark.long),
        ],
    )
    def test_text_that_is_no_date_is_kept(
        self, create_table: CreateTable, monkeypatch: pytest.MonkeyPatch, *, backup: bool, most_in_driver: int
    ) -> None:
        monkeypatch.setattr(retention, "MAX_FILES", most_in_driver)
        table = create_table("notes", "(day string, n int) USING iceberg PARTITIONED BY (day)")
        texts = ["", "01/02/2020", "15", "2020-02-30", "2020-01-01 ", "0000-01-01", "2020-13-01"]
        values = ", ".join(f"('{text}', {number})" for number, text in enumerate(texts))
        table.do(f"INSERT INTO THIS VALUES ('2020-01-01', 90), ('2020-02-29', 91), ('2099-01-01', 92), {values}")
        table.set_policies(retention={"keep": 1, "column": "day", "pattern": "", "backup": backup})
        dry, done = table.job("retention", dry_run=True), table.job("retention")
        for metrics in (dry, done):
            assert (metrics.files, metrics.rows, metrics.other_files) == (2, 2, len(texts))
            assert metrics.reason.startswith("7 files are kept: a smallest or largest `day` is no date of `yyyy-MM-dd`")
            assert "/data/day=15/" in metrics.reason
        assert sorted(table.column("SELECT n FROM THIS")) == [*range(len(texts)), 92]
        second_run = table.job("retention")
        assert (second_run.files, second_run.other_files) == (0, len(texts))

    def test_file_with_one_date_bound_is_kept(self, create_table: CreateTable) -> None:
        table = create_table("half", "(day string, n int) USING iceberg")
        for texts in (("", "2020-01-01"), ("2020-01-01", "zzz"), ("2020-01-01", "2020-01-02")):
            rows = ", ".join(f"('{text}', 1)" for text in texts)
            table.do(f"INSERT INTO THIS SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
        table.set_policies(retention={"keep": 1, "column": "day", "pattern": ""})
        done = table.job("retention")
        assert (done.files, done.rows, done.other_files) == (1, 2, 2)
        assert sorted(table.column("SELECT day FROM THIS")) == ["", "2020-01-01", "2020-01-01", "zzz"]

    def test_partitions_need_no_column_metrics(self, create_table: CreateTable) -> None:
        properties = "TBLPROPERTIES ('write.metadata.metrics.default' = 'none')"
        table = create_table("bare", f"(day string, n int) USING iceberg PARTITIONED BY (day) {properties}")
        table.do("INSERT INTO THIS VALUES ('2020-01-01', 1), ('2099-01-01', 2), ('', 3), (NULL, 4)")
        table.set_policies(retention={"keep": 1, "column": "day", "pattern": ""})
        done = table.job("retention")
        assert (done.files, done.rows, done.other_files) == (1, 1, 1)
        assert sorted(table.column("SELECT n FROM THIS")) == [2, 3, 4]

    def test_file_with_expired_and_current_rows(self, create_table: CreateTable) -> None:
        table = create_table("mixed", "(day string, n int) USING iceberg")
        table.do("INSERT INTO THIS SELECT /*+ COALESCE(1) */ * FROM VALUES ('2020-01-01', 1), ('2099-01-01', 2)")
        table.set_policies(retention={"keep": 1, "column": "day", "pattern": ""})
        for dry_run in (True, False):
            done = table.job("retention", dry_run=dry_run)
            assert (done.files, done.mixed_files) == (0, 1)
            assert done.failure.startswith("1 files hold rows before and after '")
        table.set_policies(retention={"keep": 1, "column": "n", "pattern": ""})
        with pytest.raises(PolicyRefusedError, match="`n` is int"):
            table.job("retention")
        assert len(table.column("SELECT n FROM THIS")) == 2

    @pytest.mark.parametrize("backup", [False, True])
    def test_straddling_file_of_earlier_partitions(self, create_table: CreateTable, *, backup: bool) -> None:
        properties = (
            "TBLPROPERTIES ('write.metadata.metrics.default'='none', 'write.metadata.metrics.column.ts'='full')"
        )
        table = create_table("moved", f"(ts timestamp, n int) USING iceberg PARTITIONED BY (months(ts)) {properties}")
        table.do(f"INSERT INTO THIS VALUES {values('2026-01-01', '2026-01-30')}, {values('2025-12-01')}")
        table.do("ALTER TABLE THIS REPLACE PARTITION FIELD ts_month WITH days(ts)")
        table.do("ALTER TABLE THIS SET TBLPROPERTIES ('write.metadata.metrics.column.ts'='none')")
        table.do(f"INSERT INTO THIS VALUES {values('2026-01-02', '2026-01-28')}")
        table.now = table.now.replace(year=2026, month=1, day=30, hour=9)
        table.set_policies(retention={"keep": 2, "column": "ts", "backup": backup})
        done = table.job("retention")
        assert (done.files, done.mixed_files) == (2, 1)
        assert done.failure.startswith("1 files hold rows before and after TIMESTAMP '2026-01-28")
        assert sorted(table.column("SELECT string(date(ts)) FROM THIS")) == ["2026-01-01", "2026-01-28", "2026-01-30"]

    @pytest.mark.parametrize("unit", ["hour", "year"])
    def test_partitions_decide_without_column_metrics(self, create_table: CreateTable, unit: str) -> None:
        properties = "TBLPROPERTIES ('write.metadata.metrics.default' = 'none')"
        table = create_table("blind", f"(ts timestamp, n int) USING iceberg PARTITIONED BY ({unit}s(ts)) {properties}")
        table.do(f"INSERT INTO THIS VALUES {values('1969-12-31', '2025-12-31', '2026-01-30')}")
        table.now = table.now.replace(year=2027, month=1, day=30, hour=2)
        table.set_policies(
            retention={"keep": 1 if unit == "year" else 9000, "unit": unit, "column": "ts", "backup": True}
        )
        assert table.job("retention").files == 2
        assert table.column("SELECT string(date(ts)) FROM THIS") == ["2026-01-30"]

    def test_partitions_by_date(self, create_table: CreateTable) -> None:
        table = create_table("dated", "(day date, n int) USING iceberg PARTITIONED BY (day)")
        table.do("INSERT INTO THIS VALUES (date'2025-12-31', 1), (date'2026-01-01', 2), (NULL, 3)")
        table.now = table.now.replace(year=2026, month=2, day=1)
        for policy in ({"unit": "hour"}, {"pattern": ""}):
            table.set_policies(retention={"keep": 1, "column": "day", **policy})
            with pytest.raises(PolicyRefusedError, match="is a date"):
                table.job("retention")
        table.set_policies(retention={"keep": 1, "unit": "month", "column": "day"})
        assert table.job("retention", dry_run=True).rows == 1
        assert table.job("retention").rows == 1
        assert sorted(table.column("SELECT n FROM THIS")) == [2, 3]

    def test_branches_and_tags_with_deleted_rows_are_named(self, create_table: CreateTable) -> None:
        table = create_table("branched", "(day date, n int) USING iceberg PARTITIONED BY (day)")
        table.do("INSERT INTO THIS VALUES (date'2026-01-02', 2)")
        for name in ("TAG clean", "BRANCH clean_too"):
            table.do(f"ALTER TABLE THIS CREATE {name}")
        table.do("INSERT INTO THIS VALUES (date'2025-12-31', 1)")
        for name in ("TAG audit", "BRANCH work"):
            table.do(f"ALTER TABLE THIS CREATE {name}")
        table.now = table.now.replace(year=2026, month=1, day=3)
        table.set_policies(retention={"keep": 1, "column": "day"})
        dry, first, second = table.job("retention", dry_run=True), table.job("retention"), table.job("retention")
        assert (dry.refs, first.refs, second.refs) == (("audit", "work"),) * 3
        assert first.reason.endswith("that may still have rows before DATE '2026-01-02': audit, work")
        assert (dry.rows, first.rows, second.rows) == (1, 1, 0)
        assert table.column("SELECT n FROM THIS VERSION AS OF 'audit' ORDER BY n") == [1, 2]
        table.do("ALTER TABLE THIS RENAME COLUMN day TO date")
        table.set_policies(retention={"keep": 1, "column": "date"})
        assert {"audit", "work"} <= set(table.job("retention").refs), "tags have the old name, and cannot be checked"

    def test_backup_is_refused_where_the_server_deletes_files(self, create_table: CreateTable) -> None:
        table = create_table("served", "(day date, n int) USING iceberg PARTITIONED BY (day)")
        table.do("INSERT INTO THIS VALUES (date'2026-01-01', 1)")
        table.set_policies(retention={"keep": 1, "column": "day", "backup": True})
        by_server = {"snapshot-expiration": "the table's property lakekeeper.history.expire.enabled"}
        table.policy = PoliciesInForce.model_construct(**dict(table.policy), done_by_server=by_server)
        with pytest.raises(PolicyRefusedError, match=r"served: retention: expected no `backup` where .* snapshot-"):
            table.job("retention")
        assert table.column("SELECT n FROM THIS") == [1]

    @pytest.mark.long
    def test_backups_end_with_their_time(self, create_table: CreateTable) -> None:
        table = create_table("backed", "(day date, n int) USING iceberg PARTITIONED BY (day)")
        table.do("INSERT INTO THIS VALUES (date'2026-01-01', 1), (date'2099-01-01', 2)")
        old_file = table.column("SELECT file_path FROM THIS.files WHERE partition.day < date'2099-01-01'")[0]
        table.set_policies(
            retention={"keep": 1, "column": "day", "backup": True, "backup_days": 30},
            orphan_files={"older_than_days": 1},
            staged_files={"older_than_days": 1},
        )
        manifest = table.job("retention").manifest
        table.now += 29 * DAY
        assert table.job("snapshot-expiration").files_left
        assert table.job("retention").expired_backups == 0
        assert table.job("orphan-files").candidates == 2, "manifest and list of the expired snapshot"
        table.now += 2 * DAY
        assert table.job("retention", dry_run=True).expired_backups == 1
        assert {manifest, old_file} <= table.objects().keys()
        assert table.job("retention").expired_backups == 1
        table.job("orphan-files")
        table.now += 2 * DAY
        table.job("staged-files")
        assert not {manifest, old_file} & table.objects().keys()
        assert table.column("SELECT n FROM THIS") == [2]


def values(*days: str) -> str:
    """Return rows with a time on each of these days."""
    return ", ".join(f"(timestamp'{day} 12:00:00', {number})" for number, day in enumerate(days))


def replace_table(table: Maintained) -> tuple[Maintained, datetime]:
    """Replace a table by a table with other rows, and return it with the time of the replacement."""
    table.do("INSERT INTO THIS VALUES (1)")
    table.do("CREATE OR REPLACE TABLE THIS USING iceberg AS SELECT 2 AS n")
    table.set_policies(history={"versions": 2})
    times = table.column("SELECT committed_at FROM THIS.snapshots ORDER BY committed_at")
    return table, times[1].astimezone(UTC)


class TestSnapshots:
    def test_branches_and_tags_never_expire(self, create_table: CreateTable) -> None:
        table = create_table("branches_and_tags", "(n int) USING iceberg")
        for number in range(4):
            table.do(f"INSERT INTO THIS VALUES ({number})")
            if number == 0:
                table.do("ALTER TABLE THIS CREATE TAG first")
        table.do("ALTER TABLE THIS CREATE BRANCH work")
        table.do("INSERT INTO THIS.branch_work VALUES (9)")
        table.do("INSERT OVERWRITE THIS VALUES (100)")
        table.set_policies(history={"versions": 3})
        table.now -= 30 * DAY
        table.now += timedelta(hours=23)
        assert table.job("snapshot-expiration").snapshots == 0, "a reader of a day may have opened them"
        table.now += timedelta(hours=2)
        assert table.job("snapshot-expiration", dry_run=True).snapshots == 1
        assert table.job("snapshot-expiration").snapshots == 1
        table.now += 6 * DAY
        dry = table.job("snapshot-expiration", dry_run=True)
        count = len(table.column("SELECT snapshot_id FROM THIS.snapshots"))
        done = table.job("snapshot-expiration")
        remaining_count = len(table.column("SELECT snapshot_id FROM THIS.snapshots"))
        assert dry.snapshots == done.snapshots == count - remaining_count > 0
        assert remaining_count == 3, "main, work and first"
        assert table.column("SELECT n FROM THIS VERSION AS OF 'first'") == [0]
        assert sorted(table.column("SELECT n FROM THIS VERSION AS OF 'work'")) == [0, 1, 2, 3, 9]

    def test_readers_keep_their_files_after_a_replacement(self, create_table: CreateTable) -> None:
        """The new snapshot has no parent, and some servers clear the snapshot log."""
        table, replaced_at = replace_table(create_table("replaced", "(n int) USING iceberg"))
        before = table.objects()
        table.now = replaced_at + DAY - timedelta(milliseconds=1)
        assert table.job("snapshot-expiration").snapshots == 0, "a reader of a day opened the first snapshot"
        assert before.keys() <= table.objects().keys()
        table.now += timedelta(hours=1)
        done = table.job("snapshot-expiration")
        assert (done.snapshots, done.data_files) == (1, 1)

    def test_readers_keep_files_after_a_replacement_without_rows(self, create_table: CreateTable) -> None:
        """The tag lets Lakekeeper remove the branch `main`: it keeps the last branch or tag of a table."""
        table, replaced_at = replace_table(create_table("emptied", "(n int) USING iceberg"))
        first = table.column("SELECT snapshot_id FROM THIS.snapshots ORDER BY committed_at")[0]
        table.do(f"ALTER TABLE THIS CREATE TAG audited AS OF VERSION {first}")
        before = table.objects()
        table.do("CREATE OR REPLACE TABLE THIS (n int) USING iceberg")
        table.now = replaced_at + DAY
        assert table.job("snapshot-expiration").snapshots == 0, "it was replaced after that"
        assert before.keys() <= table.objects().keys()
        table.now += timedelta(hours=1)
        done = table.job("snapshot-expiration")
        assert (done.snapshots, done.data_files) == (1, 1)

    def test_table_property_overrides_policy_age(self, create_table: CreateTable) -> None:
        table = create_table(
            "declared", "(n int) USING iceberg TBLPROPERTIES ('history.expire.max-snapshot-age-ms'='2592000000')"
        )
        for number in range(4):
            table.do(f"INSERT INTO THIS VALUES ({number})")
        table.set_policies(history={"max_age_days": 1, "versions": 2})
        table.now -= DAY
        assert table.job("snapshot-expiration").snapshots == 0, "29 days old, and 30 are declared"
        table.now += 2 * DAY
        assert table.job("snapshot-expiration").snapshots == 3
        assert len(table.column("SELECT snapshot_id FROM THIS.snapshots")) == 1

    @pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
    def test_versions_keep_staged_writes(self, create_table: CreateTable, mode: str) -> None:
        """With delete files Spark's procedure expires, else Iceberg's library in the driver."""
        name = f"audited_{mode[:4]}"
        properties = f"'write.wap.enabled'='true', 'write.delete.mode'='{mode}'"
        table = create_table(name, f"(n int) USING iceberg TBLPROPERTIES ({properties})")
        table.do("INSERT INTO THIS SELECT /*+ COALESCE(1) */ id FROM range(3)")
        table.do("DELETE FROM THIS WHERE n = 1")
        table.spark.conf.set("spark.wap.id", "audit")
        try:
            table.do("INSERT INTO THIS VALUES (100)")
        finally:
            table.spark.conf.unset("spark.wap.id")
        for number in range(2):
            table.do(f"INSERT INTO THIS VALUES ({number})")
        table.set_policies(history={"max_age_days": 300, "versions": 2})
        assert table.job("snapshot-expiration", dry_run=True).snapshots == 2
        assert table.job("snapshot-expiration").snapshots == 2
        table.do(f"CALL {table.table.warehouse}.system.publish_changes({table.table.argument}, 'audit')")
        assert sorted(table.column("SELECT n FROM THIS")) == [0, 0, 1, 2, 100]

    def test_delete_files_expire_with_their_snapshots(self, create_table: CreateTable) -> None:
        table = create_table("marked", "(n int) USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
        table.do("INSERT INTO THIS SELECT /*+ COALESCE(1) */ id FROM range(3)")
        table.do("DELETE FROM THIS WHERE n = 1")
        assert table.job("statistics", dry_run=True).rows == 3
        table.do("INSERT OVERWRITE THIS VALUES (9)")
        done = table.job("snapshot-expiration")
        assert (done.snapshots, done.data_files, done.delete_files) == (2, 1, 1)
        assert table.column("SELECT n FROM THIS") == [9]

    def test_migration_that_begins_during_the_job(self, tenant: CatalogConfig, create_table: CreateTable) -> None:
        """The table gets `gc.enabled=false` after the job has checked it: another catalog has its snapshots."""
        table = create_table("fenced_late", "(n int) USING iceberg")
        for number in range(3):
            table.do(f"INSERT OVERWRITE THIS VALUES ({number})")
        files = table.objects().keys()
        opened = IcebergTable.open(table.spark, table.table)
        other = open_catalog(tenant, table.table.warehouse).load_table(("maintained", "fenced_late"))
        other.transaction().set_properties({"gc.enabled": "false"}).commit_transaction()
        done = snapshot_expiration.run(opened, table.policy, dry_run=False, now=table.now)
        assert (done.snapshots, done.files_left, done.data_files) == (2, True, 0)
        assert "gc.enabled=false was set during the job" in done.reason
        assert files <= table.objects().keys()
        with open_catalog(tenant, table.table.warehouse).load_table(("maintained", "fenced_late")).transaction() as end:
            end.remove_properties("gc.enabled")

    def test_migration_that_begins_before_the_procedure(self, tenant: CatalogConfig, create_table: CreateTable) -> None:
        """The table gets `gc.enabled=false` after the job has checked it. Spark's procedure expires its snapshots."""
        table = create_table(
            "fenced_procedure", "(n int) USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
        )
        table.do("INSERT INTO THIS SELECT /*+ COALESCE(1) */ id FROM range(3)")
        table.do("DELETE FROM THIS WHERE n = 1")
        table.do("INSERT OVERWRITE THIS VALUES (9)")
        files = table.objects().keys()
        opened = IcebergTable.open(table.spark, table.table)
        catalog, name = open_catalog(tenant, table.table.warehouse), ("maintained", "fenced_procedure")
        catalog.load_table(name).transaction().set_properties({"gc.enabled": "false"}).commit_transaction()
        done = snapshot_expiration.run(opened, table.policy, dry_run=False, now=table.now)
        assert done.snapshots == 0
        assert "gc.enabled=false was set during the job" in done.reason
        assert files <= table.objects().keys()
        with catalog.load_table(name).transaction() as end:
            end.remove_properties("gc.enabled")

    def test_soft_deletion_keeps_files_unless_allowed(self, tenant: CatalogConfig, create_table: CreateTable) -> None:
        if tenant.auth:
            leave_out("reads a warehouse through a second Spark catalog, which has no credential")
        table = create_table("kept", "(n int) USING iceberg", warehouse="soft")
        for number in range(2):
            table.do(f"INSERT OVERWRITE THIS VALUES ({number})")
        before = table.objects()
        expired = table.job("snapshot-expiration")
        assert (expired.snapshots, expired.files_left, expired.data_files) == (1, True, 0)
        assert before.keys() <= table.objects().keys()
        assert table.job("orphan-files").candidates == 3, "a data file, its manifest and the list"
        table.now += 4 * DAY
        with pytest.raises(JobFailedError, match=r"3 files are due.*s3.delete-enabled=true"):
            table.job("staged-files")
        assert before.keys() <= table.objects().keys()
        as_jobs_do = TableIdentifier("softly", ("maintained",), "kept")
        assert table.job("staged-files", table=as_jobs_do).deleted == 3
        assert len(before.keys() - table.objects().keys()) == 3
        assert table.column("SELECT n FROM THIS") == [1]


class TestOrphans:
    def test_orphans_are_deleted_after_two_runs(self, create_table: CreateTable) -> None:
        table = create_table("lossy", "AS SELECT 1 AS n")
        lost = table.create_lost_file("lost.parquet")
        table.set_policies(orphan_files={"older_than_days": 1}, staged_files={"older_than_days": 2})
        later, table.now = table.now, table.now - 30 * DAY
        assert table.job("orphan-files").candidates == 0, "younger than a day"
        table.now = later
        orphans = table.job("orphan-files")
        assert (orphans.candidates, orphans.new) == (1, 1)
        assert table.job("orphan-files").new == 0
        assert table.job("staged-files").waiting == 1
        table.now += 3 * DAY
        assert table.job("staged-files", dry_run=True).deleted == 1
        assert lost in table.objects()
        before = table.objects()
        done = table.job("staged-files")
        assert (done.deleted, done.waiting) == (1, 0)
        assert before.keys() - table.objects().keys() == {lost}
        assert table.column("SELECT n FROM THIS") == [1]

    @pytest.mark.long
    @pytest.mark.stand_in("denies a role an action on AWS")
    def test_undeletable_files_stay_candidates(self, create_table: CreateTable) -> None:
        table = create_table("denied", "AS SELECT 1 AS n")
        names = ["gone.parquet", "kept-1.parquet", "kept-2.parquet"]
        deletable, *undeletable = [table.create_lost_file(name) for name in names]
        table.set_policies(orphan_files={"older_than_days": 1}, staged_files={"older_than_days": 1})
        assert table.job("orphan-files").new == 3
        table.now += 2 * DAY
        with deny(table, "s3:DeleteObject", "data/kept-*"):
            done = table.job("staged-files")
            assert (done.deleted, done.refused, done.waiting) == (1, 2, 0)
            assert done.failure.startswith("the store refused to delete 2 of 3 files. They remain candidates")
            assert deletable not in table.objects()
        assert table.job("staged-files", dry_run=True).deleted == 2
        done = table.job("staged-files")
        assert (done.deleted, done.refused, done.failure) == (2, 0, None)
        assert not table.objects().keys() & {*undeletable}
        assert table.job("staged-files").deleted == 0, "no candidate remains"

    def test_orphans_of_replicas_and_tables_without_gc(self, create_table: CreateTable) -> None:
        table = create_table("copied", "AS SELECT 1 AS n")
        table.create_lost_file("lost.parquet")
        table.set_policies(orphan_files={"older_than_days": 1}, replica=True)
        table.now += -30 * DAY + 2 * DAY
        assert table.job("orphan-files").candidates == 0
        table.now += 2 * DAY
        assert table.job("orphan-files", dry_run=True).candidates == 1
        assert table.job("snapshot-expiration").reason == "the table is a replica; this job runs on the primary only"
        table.do("ALTER TABLE THIS SET TBLPROPERTIES ('gc.enabled' = 'false')")
        assert table.job("orphan-files").reason == "the table has gc.enabled=false"


class TestLayout:
    @pytest.mark.parametrize(
        "policy",
        [
            {},
            {"strategy": "sort", "columns": ["n"], "partial_progress_commits": 0},
            {"strategy": "z-order", "columns": ["n", "k"]},
        ],
    )
    def test_compaction_keeps_every_row(self, create_table: CreateTable, policy: dict[str, Any]) -> None:
        table = create_table("small", "(n int, k int) USING iceberg")
        for number in range(3):
            table.do(f"INSERT INTO THIS VALUES ({9 - number}, 1)")
        table.set_policies(compaction={"min_input_files": 4, **policy})
        assert table.job("compaction").rewritten == 0
        table.set_policies(compaction={"min_input_files": 2, **policy})
        assert table.job("compaction", dry_run=True).rewritten == 3
        done = table.job("compaction")
        assert (done.rewritten, done.added, done.failed) == (3, 1, 0)
        rows = table.column("SELECT n FROM THIS")
        assert sorted(rows) == [7, 8, 9]
        assert rows == sorted(rows) or policy == {}
        table.set_policies(compaction={"strategy": "sort", "min_input_files": 2})
        with pytest.raises(PolicyRefusedError, match="no sort order"):
            table.job("compaction")

    @pytest.mark.parametrize(
        ("partitions", "values", "is_one"),
        [
            ("", ["1", "2"], True),
            ("PARTITIONED BY (n)", ["1", "1"], True),
            ("PARTITIONED BY (n)", ["1", "2"], False),
            ("PARTITIONED BY (n)", ["1", "NULL"], False),
        ],
    )
    def test_tables_with_one_group(
        self, create_table: CreateTable, partitions: str, values: list[str], *, is_one: bool
    ) -> None:
        """Iceberg's commits in parts serve several groups only."""
        table = create_table("grouped", f"(n int) USING iceberg {partitions}")
        for value in values:
            table.do(f"INSERT INTO THIS VALUES ({value})")

        def has_one_group(size: int) -> bool:
            opened = IcebergTable.open(table.spark, table.table)
            return compaction._has_one_group(opened, {"max-file-group-size-bytes": str(size)})

        assert (has_one_group(10**9), has_one_group(1)) == (is_one, False)
        table.do("ALTER TABLE THIS ADD PARTITION FIELD bucket(4, n)")
        assert not has_one_group(10**9), "files of an earlier spec are grouped by themselves"

    def test_deleted_partitions_are_in_no_group(self, create_table: CreateTable) -> None:
        """The manifest that a deletion writes lists the deleted files until the next commit."""
        table = create_table("left", "(n int) USING iceberg PARTITIONED BY (n)")
        for value in (1, 2):
            table.do(f"INSERT INTO THIS VALUES ({value})")
        table.do("DELETE FROM THIS WHERE n = 2")
        opened = IcebergTable.open(table.spark, table.table)
        assert compaction._has_one_group(opened, {"max-file-group-size-bytes": "1000000"})

    def test_manifests_and_statistics(self, create_table: CreateTable) -> None:
        table = create_table("counted", "(n int, k string) USING iceberg PARTITIONED BY (k)")
        table.do("INSERT INTO THIS VALUES (1, 'a'), (2, 'b')")
        table.do("INSERT INTO THIS VALUES (3, 'a')")
        assert table.job("rewrite-manifests", dry_run=True).rewritten == 2
        assert (table.job("rewrite-manifests").rewritten, table.job("rewrite-manifests").rewritten) == (2, 0)
        assert table.job("statistics", dry_run=True).commits == 3
        first, second = table.job("statistics"), table.job("statistics")
        assert (first.rows, first.data_files, first.partitions, first.snapshots, first.commits) == (3, 3, 2, 3, 3)
        assert second.commits == 0
        name = f"WHERE table_name = '{table.table}'"
        rows = table.do(f"SELECT * FROM results.ops.table_statistics {name}").collect()
        assert [(row.row_count, row.data_files, row.manifests) for row in rows] == [(3, 3, 1)] * 2
        parts = table.do(f"SELECT DISTINCT partition, row_count FROM results.ops.partition_statistics {name}").collect()
        assert sorted((json.loads(row.partition)["k"], row.row_count) for row in parts) == [("a", 2), ("b", 1)]
        operations = table.column(f"SELECT operation FROM results.ops.commit_statistics {name} ORDER BY committed_at")
        assert operations == ["append", "append", "replace"]


def test_commits_of_all_tables_are_read_once(
    create_table: CreateTable, tenant: CatalogConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each table of a night read the commits of all tables."""
    tables = [create_table(f"recorded_{number}", "AS SELECT 1 AS n") for number in range(2)]
    readings: list[str] = []
    read = statistics.read_recorded_commits

    def count_readings(opened: IcebergTable, *arguments: Any, **options: Any) -> RecordedCommits:
        readings.append(str(opened.table))
        return read(opened, *arguments, **options)

    monkeypatch.setattr(statistics, "read_recorded_commits", count_readings)
    for expected in (1, 0):
        buffer = OpsBuffer(tenant, {"results": open_catalog(tenant, "results")})
        for table in tables:
            done: Any = job_runner.run_job(
                "statistics",
                table.spark,
                table.table,
                table.policy,
                dry_run=False,
                now=table.now,
                shared=SharedTable(table.spark, table.table, buffer),
            )
            assert done.commits == expected
        assert buffer.flush("results") == []
    assert len(readings) == 2, "one in each run"


def test_missing_table(create_table: CreateTable) -> None:
    table = create_table("there", "AS SELECT 1 AS n")
    with pytest.raises(NoSuchResultError, match=r"table results.maintained.`no.thing` cannot be opened"):
        table.job("statistics", table=TableIdentifier("results", ("maintained",), "no.thing"))
