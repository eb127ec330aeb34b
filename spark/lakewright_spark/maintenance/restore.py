"""Restore rows that `retention` deleted with a backup. Rows that were deleted earlier remain deleted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewright_spark.errors import JobFailedError, NoSuchResultError
from lakewright_spark.maintenance.table.backups import list_manifests, scan_tasks
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line, iterate
from lakewright_spark.table_identifier import TableIdentifier, quote_name

RESTORED = "lakewright.restored"
"""Key in the summary of a restore's snapshot: the name of the backup."""
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
    """Append the rows of a backup to the table in one commit.

    The files are read with the position deletes, equality deletes and deletion vectors that applied when retention
    deleted them. The rows are written to new files: an equality delete that is committed again would apply to later
    rows as well.

    Raises:
        NoSuchResultError: The table or the backup does not exist.
        JobFailedError: The backup was restored before or belongs to another table, or Spark failed.
    """
    opened = IcebergTable.open(spark, table)
    paths = {path.rpartition("/")[2]: path for path in list_manifests(opened)}
    if backup not in paths:
        raise NoSuchResultError(f"table {table} has no backup {backup}; it has: {', '.join(paths) or 'none'}")
    path = paths[backup]
    text = opened.read(path)
    if _count_restored_rows(opened, backup) is not None:
        _finish(opened, path, text)
        raise JobFailedError(f"backup {backup} of table {table} was restored earlier; its rows are in the table")
    tasks = list(scan_tasks(opened, path, json.loads(text)))
    group = uuid4().hex
    tables, staged = (
        getattr(opened.jvm.org.apache.iceberg.spark, name).get() for name in ("SparkTableCache", "ScanTaskSetManager")
    )
    try:
        # Spark reads the tasks that are staged under this name, as in Iceberg's compaction.
        tables.add(group, opened.java)
        staged.stageTasks(opened.java, group, tasks)
        # Select columns: format version 3 adds row IDs, which the new rows receive again.
        rows = spark.read.format("iceberg").load(group).select([quote_name(name) for name in opened.columns()])
        rows.writeTo(table.sql).option(f"snapshot-property.{RESTORED}", backup).append()
    except (PySparkException, Py4JJavaError) as error:
        raise JobFailedError(f"backup {backup} of table {table} was not restored: {first_line(error)}") from error
    finally:
        tables.remove(group)
        staged.removeTasks(opened.java, group)
    reopened = IcebergTable.open(spark, table)
    added = _count_restored_rows(reopened, backup)
    _finish(reopened, path, text)
    return RestoreResult(backup, len(tasks), int(added or 0))


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
