"""Restore rows that `retention` deleted with a backup. Rows that were deleted earlier remain deleted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions

from lakewright_spark.commit_conflicts import is_outdated
from lakewright_spark.errors import JobFailedError, NoSuchResultError
from lakewright_spark.maintenance.table.backups import find_later_manifest, list_manifests, scan_tasks
from lakewright_spark.maintenance.table.iceberg import IcebergTable, SqlSession, first_line, iterate
from lakewright_spark.table_identifier import TableIdentifier, quote_name

RESTORED = "lakewright.restored"
"""Key in the summary of a restore's snapshot: the name of the backup."""
COMMIT_ATTEMPTS = 20
"""Attempts at a commit that conflicts with commits that add rows."""
_VALIDATION = "ValidationException"
_ROW_LINEAGE = ("_row_id", "_last_updated_sequence_number")
"""Columns that format version 3 adds."""
DONE = ".restored"
"""Suffix of a restored backup. Its files are unused from then on, and `orphan-files` finds them."""


@dataclass(frozen=True)
class RestoreResult:
    """Result of a restore."""

    backup: str
    """Name of the manifest."""
    files: int
    """Number of data files read."""
    rows: int


def list_backups(spark: SparkSession, table: TableIdentifier) -> list[str]:
    """Return the names of the table's backups, oldest first.

    Raises:
        NoSuchResultError: The table does not exist.
        JobFailedError: The catalog failed.
    """
    return [path.rpartition("/")[2] for path in list_manifests(IcebergTable.open(spark, table))]


def restore(spark: SparkSession, table: TableIdentifier, backup: str) -> RestoreResult:
    """Append the rows of a backup to the table in one commit, once: the commit fails if an earlier commit has them.

    The files are read with the position deletes, equality deletes and deletion vectors that applied when retention
    deleted them. The rows are written to new files: an equality delete that is committed again would apply to later
    rows as well.

    Raises:
        NoSuchResultError: The table or the backup does not exist.
        JobFailedError: The backup was restored before or belongs to another table, the table or a later backup has some
            of its files, or Spark failed.
    """
    opened = IcebergTable.open(spark, table)
    paths = {path.rpartition("/")[2]: path for path in list_manifests(opened)}
    if backup not in paths:
        raise NoSuchResultError(f"table {table} has no backup {backup}; it has: {', '.join(paths) or 'none'}")
    path = paths[backup]
    text = opened.read(path)
    if _count_restored_rows(opened, backup) is not None:
        _finish(opened, path, text)
        raise _build_restored_error(table, backup)
    tasks = list(scan_tasks(opened, path, json.loads(text)))
    group = uuid4().hex
    names = ("SparkTableCache", "ScanTaskSetManager", "FileRewriteCoordinator")
    tables, staged, written = (opened.find_class(f"org.apache.iceberg.spark.{name}").get() for name in names)
    try:
        _check_deleted(opened, path, [task.file().location() for task in tasks])
        # Spark reads the tasks that are staged under this name, as in Iceberg's compaction.
        tables.add(group, opened.java)
        staged.stageTasks(opened.java, group, tasks)
        rows = spark.read.format("iceberg").load(group).select([quote_name(name) for name in opened.columns()])
        for name in _ROW_LINEAGE if _has_row_lineage(opened) else ():
            rows = rows.withColumn(name, functions.lit(None).cast("long"))  # the new rows get their own
        # As in compaction: the files are written and not committed.
        rows.write.format("iceberg").mode("append").save(group)
        _commit_once(opened, backup, list(iterate(written.fetchNewFiles(opened.java, group))))
    except (PySparkException, Py4JJavaError) as error:
        raise JobFailedError(f"backup {backup} of table {table} was not restored: {first_line(error)}") from error
    finally:
        tables.remove(group)
        staged.removeTasks(opened.java, group)
        written.clearRewrite(opened.java, group)
    reopened = IcebergTable.open(spark, table)
    added = _count_restored_rows(reopened, backup)
    _finish(reopened, path, text)
    return RestoreResult(backup, len(tasks), int(added or 0))


def _has_row_lineage(opened: IcebergTable) -> bool:
    return bool(opened.find_class("org.apache.iceberg.TableUtil").supportsRowLineage(opened.java))


def _build_restored_error(table: TableIdentifier, backup: str) -> JobFailedError:
    return JobFailedError(f"backup {backup} of table {table} was restored earlier; its rows are in the table")


def _check_deleted(opened: IcebergTable, path: str, data_files: Sequence[str]) -> None:
    """Refuse a backup unless the table has lost its data files, and no later backup has them.

    A run of `retention` that ends before its commit leaves a manifest of live files. The next run writes another
    manifest.

    Raises:
        JobFailedError: The rows of some file would be in the table twice.
    """
    files = cast(SqlSession, opened.spark).createDataFrame([(file,) for file in data_files], "file_path string")
    live_files = opened.read_metadata("data_files").join(files, "file_path", "left_semi").select("file_path")
    if live_file := live_files.first():
        raise JobFailedError(
            f"backup {path} was not restored: table {opened.table} has its data file {live_file.file_path}, so rows "
            "would be in the table twice. Retention did not delete the file, or a rollback brought it back. Delete "
            "the backup if the table has all its rows"
        )
    if later := find_later_manifest(opened, path, data_files):
        raise JobFailedError(
            f"backup {path} was not restored: the later backup {later} has some of its data files, so rows would be "
            f"in table {opened.table} twice if both were restored. Restore the later backup instead, unless it ends "
            f"with {DONE}: then its rows are in the table"
        )


def _commit_once(opened: IcebergTable, backup: str, files: list[Any]) -> None:
    """Commit the new files unless another process restored the backup since they were written.

    A process may pause for longer than its claim is valid. Iceberg refuses the commit if files were added since the
    snapshot that was checked, so the check and the commit are one step.

    Raises:
        JobFailedError: Another process restored the backup, or others committed all the time.
        Py4JJavaError: The commit failed.
    """
    every_row = opened.find_class("org.apache.iceberg.expressions.Expressions").alwaysTrue()
    for _ in range(COMMIT_ATTEMPTS):
        opened.java.refresh()
        if _count_restored_rows(opened, backup) is not None:
            opened.delete_files([file.location() for file in files])
            raise _build_restored_error(opened.table, backup)
        change = opened.java.newOverwrite().conflictDetectionFilter(every_row).validateNoConflictingData()
        if (current := opened.java.currentSnapshot()) is not None:
            change = change.validateFromSnapshot(current.snapshotId())
        for file in files:
            change = change.addFile(file)
        try:
            change.set(RESTORED, backup).commit()
        except Py4JJavaError as error:
            is_refused = _VALIDATION in str(error.java_exception.getClass().getName())
            if not (is_refused or is_outdated(first_line(error))):
                raise
        else:
            return
    opened.delete_files([file.location() for file in files])
    raise JobFailedError(
        f"backup {backup} of table {opened.table} was not restored: other commits added rows at each of "
        f"{COMMIT_ATTEMPTS} attempts. Try again"
    )


def _count_restored_rows(opened: IcebergTable, backup: str) -> str | None:
    """Return the rows of the snapshot that restored the backup; None if there is none."""
    for snapshot in iterate(opened.java.snapshots()):
        if snapshot.summary().get(RESTORED) == backup:
            return snapshot.summary().get("added-records") or "0"
    return None


def _finish(opened: IcebergTable, path: str, text: str) -> None:
    """Rename the manifest, so that the backup is not restored again."""
    try:
        opened.write(f"{path}{DONE}", text)
        opened.java.io().deleteFile(path)
    except Py4JJavaError as error:
        raise JobFailedError(
            f"backup {path}: its rows are in table {opened.table} again, but the store refused to rename it to "
            f"{path}{DONE}: {first_line(error)}"
        ) from error
