"""A restore brings back rows that retention deleted, but no rows that were deleted before."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError, NoSuchResultError, StoppedError
from lakewright_spark.maintenance import restore
from lakewright_spark.maintenance.table.iceberg import IcebergTable, iterate
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.restore import RestoreRun
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.records import RunState
from lakewright_spark.scheduler.supervisor import Control
from pyspark.sql import SparkSession

from tests.spark.maintenance.conftest import DAY, Maintained, s3
from tests.spark.maintenance.delete_files import delete_by_equality

pytestmark = pytest.mark.spark

CreateTable = Callable[..., Maintained]


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        pytest.param(2, "position", marks=pytest.mark.long),
        pytest.param(2, "equality", marks=pytest.mark.long),
        pytest.param(3, "vector", marks=pytest.mark.long),
    ],
)
def test_restore_brings_back_no_deleted_row(create_table: CreateTable, version: int, kind: str) -> None:
    table = create_table(
        f"restored_{kind}",
        "(day string, n int) USING iceberg PARTITIONED BY (day) "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read')",
    )
    table.do("INSERT INTO THIS SELECT /*+ COALESCE(1) */ '2020-01-01', CAST(id AS int) FROM range(4)")
    if kind == "equality":
        delete_by_equality(table, 2, "2020-01-01")
    else:
        table.do("DELETE FROM THIS WHERE n = 2")
    table.spark.catalog.refreshTable(table.sql)
    # Row 2 was inserted after the deletion of its key and is live.
    table.do("INSERT INTO THIS VALUES ('2020-01-01', 2), ('2099-01-01', 9)")
    table.do("INSERT INTO THIS VALUES ('2020-01-01', 5)")
    table.do("DELETE FROM THIS WHERE n = 5")
    rows = sorted(table.column("SELECT n FROM THIS"))
    assert rows == [0, 1, 2, 3, 9]
    table.set_policies(retention={"keep": 1, "column": "day", "pattern": "", "backup": True})
    done = table.job("retention")
    backup_files = set(json.loads(body(table, done.manifest))["files"])
    assert table.column("SELECT n FROM THIS") == [9]
    table.set_policies()  # the backup remains after the policy is unset
    table.now += 30 * DAY
    expired = table.job("snapshot-expiration")
    assert (expired.snapshots > 0, expired.files_left) == (True, True)
    table.job("orphan-files")
    table.now += 30 * DAY
    table.job("staged-files")
    assert backup_files <= table.objects().keys(), "delete files as well"
    (name,) = restore.list_backups(table.spark, table.table)
    came = restore.restore(table.spark, table.table, name)
    assert came.rows == 4
    table.spark.catalog.refreshTable(table.sql)
    assert sorted(table.column("SELECT n FROM THIS")) == rows
    with pytest.raises(NoSuchResultError, match=f"no backup {name}; it has: none"):
        restore.restore(table.spark, table.table, name)


class SharedSession:
    """The session of the tests; `stop` does nothing."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """Keep the session for other tests."""


def test_restore_is_recorded_and_can_be_stopped(create_table: CreateTable, tenant: CatalogConfig) -> None:
    table = create_table("restored_on_record", "(day string, n int) USING iceberg PARTITIONED BY (day)")
    table.do("INSERT INTO THIS VALUES ('2020-01-01', 1), ('2099-01-01', 9)")
    table.set_policies(retention={"keep": 1, "column": "day", "pattern": "", "backup": True})
    name = table.job("retention").manifest.rpartition("/")[2]
    spark: Any = SharedSession(table.spark)

    def run_restore(start_spark: Callable[[], Any], control: Control) -> restore.RestoreResult:
        return RestoreRun(tenant, table.table, name, start_spark, control, warn=pytest.fail).run()

    def list_restores() -> list[tuple[RunState, str, Any]]:
        runs = job_runs.list_runs(open_catalog(tenant, table.table.warehouse), table.table.warehouse)
        return [
            (run.state, run.reason, run.metrics) for run in runs if run.job == "restore" and run.table == table.table
        ]

    control = Control()
    with pytest.raises(StoppedError, match="asked to stop"):
        run_restore(lambda: control.ended.set() or spark, control)
    ((state, reason, _),) = list_restores()
    assert (state, "asked to stop" in reason) == (RunState.CANCELLED, True)
    assert table.column("SELECT n FROM THIS") == [9]

    assert run_restore(lambda: spark, Control()).rows == 1
    assert list_restores()[-1] == (RunState.SUCCEEDED, f"backup {name}", {"files": 1, "rows": 1})
    with pytest.raises(NoSuchResultError):
        run_restore(lambda: spark, Control())
    assert list_restores()[-1][0] is RunState.FAILED


def test_paused_restore_does_not_add_rows_twice(create_table: CreateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process restores the backup while the first has written its files and is paused, without its claim."""
    table = create_table("restored_while_paused", "(day string, n int) USING iceberg PARTITIONED BY (day)")
    table.do("INSERT INTO THIS VALUES ('2020-01-01', 1), ('2099-01-01', 9)")
    table.set_policies(retention={"keep": 1, "column": "day", "pattern": "", "backup": True})
    name = table.job("retention").manifest.rpartition("/")[2]
    commit_once, checked = restore._commit_once, restore._count_restored_rows

    def pause(opened: IcebergTable, backup: str, files: list[Any]) -> None:
        monkeypatch.setattr(restore, "_commit_once", commit_once)

        def restore_after_the_check(opened: IcebergTable, backup: str) -> str | None:
            restored = checked(opened, backup)
            monkeypatch.setattr(restore, "_count_restored_rows", checked)
            assert restore.restore(table.spark, table.table, name).rows == 1
            return restored

        monkeypatch.setattr(restore, "_count_restored_rows", restore_after_the_check)
        commit_once(opened, backup, files)

    monkeypatch.setattr(restore, "_commit_once", pause)
    with pytest.raises(JobFailedError, match="was restored earlier"):
        restore.restore(table.spark, table.table, name)
    table.spark.catalog.refreshTable(table.sql)
    assert sorted(table.column("SELECT n FROM THIS")) == [1, 9]


def test_backup_of_a_run_without_commit_is_refused(create_table: CreateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of retention ends between the manifest and the commit. The next run backs up the same file.

    An object that is no manifest lies beside the backups.
    """
    table = create_table("restored_uncommitted", "(day string, n int) USING iceberg PARTITIONED BY (day)")
    table.do("INSERT INTO THIS VALUES ('2020-01-01', 1), ('2099-01-01', 9)")
    table.set_policies(retention={"keep": 1, "column": "day", "pattern": "", "backup": True})

    def end_the_run(opened: IcebergTable, change: Any) -> dict[str, str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "commit", end_the_run)
        with pytest.raises(KeyboardInterrupt):
            table.job("retention")
    (first,) = restore.list_backups(table.spark, table.table)
    with pytest.raises(JobFailedError, match=r"table results\.maintained\.\S+ has its data file s3://.*\.parquet, so"):
        restore.restore(table.spark, table.table, first)

    bucket, prefix = table.bucket_and_prefix
    s3(table.sandbox).put_object(Bucket=bucket, Key=f"{prefix}.backup/notes.txt", Body=b"restore the later backup")
    table.now += DAY
    assert table.job("retention").files == 1
    later = restore.list_backups(table.spark, table.table)[1]
    with pytest.raises(JobFailedError, match=f"the later backup .*/{later} has some of its data files"):
        restore.restore(table.spark, table.table, first)
    assert restore.restore(table.spark, table.table, later).rows == 1
    with pytest.raises(JobFailedError, match=rf"the later backup .*/{later}\.restored has some of its data files"):
        restore.restore(table.spark, table.table, first)
    table.spark.catalog.refreshTable(table.sql)
    assert sorted(table.column("SELECT n FROM THIS")) == [1, 9]


@pytest.mark.long
def test_backup_with_another_spelling_of_s3_remains(create_table: CreateTable) -> None:
    """The table's location begins with `s3://` and the addresses of its data files with `s3a://`."""
    table = create_table("restored_s3a", "(day string, n int) USING iceberg PARTITIONED BY (day)")
    table.do("INSERT INTO THIS VALUES ('2020-01-01', 1), ('2099-01-01', 9)")
    record_as_s3a(IcebergTable.open(table.spark, table.table))
    table.set_policies(
        retention={"keep": 1, "column": "day", "pattern": "", "backup": True},
        orphan_files={"older_than_days": 1},
        staged_files={"older_than_days": 1},
    )
    (backup_file,) = json.loads(body(table, table.job("retention").manifest))["files"]
    assert backup_file.startswith("s3a://")
    lost = table.create_lost_file("lost.parquet")
    table.now += 2 * DAY
    assert table.job("snapshot-expiration").snapshots == 2
    table.job("orphan-files")
    table.now += 2 * DAY
    table.job("staged-files")
    objects = table.objects()
    assert (backup_file.replace("s3a://", "s3://") in objects, lost in objects) == (True, False)
    (name,) = restore.list_backups(table.spark, table.table)
    assert restore.restore(table.spark, table.table, name).rows == 1


def record_as_s3a(opened: IcebergTable) -> None:
    """Change the addresses of the table's data files in its metadata, as a program that writes to `s3a://` does."""
    overwrite = opened.java.newOverwrite()
    files = opened.find_class("org.apache.iceberg.DataFiles")
    for task in iterate(opened.java.newScan().includeColumnStats().planFiles()):
        renamed_file = files.builder(opened.java.spec()).copy(task.file())
        renamed_file = renamed_file.withPath(task.file().location().replace("s3://", "s3a://")).build()
        overwrite = overwrite.deleteFile(task.file()).addFile(renamed_file)
    overwrite.commit()


def test_backup_without_delete_files_is_refused(create_table: CreateTable) -> None:
    table = create_table("restored_before", "(day string, n int) USING iceberg PARTITIONED BY (day)")
    bucket, prefix = table.bucket_and_prefix
    old = {"file_count": 1, "files": [f"s3://{bucket}/{prefix}data/a.parquet"]}
    s3(table.sandbox).put_object(
        Bucket=bucket, Key=f"{prefix}.backup/data_manifest_1.json", Body=json.dumps(old).encode()
    )
    with pytest.raises(JobFailedError, match="expected version 2, found none"):
        restore.restore(table.spark, table.table, "data_manifest_1.json")


def body(table: Maintained, address: str) -> Any:
    bucket, _, key = address.removeprefix("s3://").partition("/")
    return s3(table.sandbox).get_object(Bucket=bucket, Key=key)["Body"].read()
