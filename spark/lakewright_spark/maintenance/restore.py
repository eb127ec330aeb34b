"""Bring back the rows that `retention` deleted with a backup, without those that had been deleted before."""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewright_spark.errors import JobFailedError, NoSuchResultError
from lakewright_spark.maintenance.table.backups import manifests, tasks_of
from lakewright_spark.maintenance.table.iceberg import IcebergTable, each, first_line
from lakewright_spark.table_identifier import TableIdentifier, quoted

RESTORED = "lakewright.restored"
"""In the summary of the snapshot that a restore makes: the name of the backup."""
DONE = ".restored"
"""Suffix of a backup that was restored; its files are unused from then on, and orphan-files finds them in time."""


@dataclass(frozen=True)
class Restored:
    """What came back."""

    backup: str
    """Name of the manifest."""
    files: int
    """Data files that were read."""
    rows: int


def backups(spark: SparkSession, table: TableIdentifier) -> list[str]:
    """Return the names of the table's backups, the oldest first. Raises NoSuchResultError, JobFailedError."""
    return [path.rpartition("/")[2] for path in manifests(IcebergTable.open(spark, table))]


def restore(spark: SparkSession, table: TableIdentifier, backup: str) -> Restored:
    """Append the rows of a backup to the table in one commit.

    The files are read as they were when retention deleted them: with their position deletes, equality deletes and
    deletion vectors. The rows are written to new files, since an equality delete that is committed again would apply to
    rows that came later.

    Raises:
        NoSuchResultError: There is no such table or backup.
        JobFailedError: The backup was restored before, is of another table, or Spark failed.
    """
    opened = IcebergTable.open(spark, table)
    known = {path.rpartition("/")[2]: path for path in manifests(opened)}
    if backup not in known:
        raise NoSuchResultError(f"table {table} has no backup {backup}; it has: {', '.join(known) or 'none'}")
    path = known[backup]
    text = opened.read(path)
    if _restored(opened, backup) is not None:
        _finish(opened, path, text)
        raise JobFailedError(f"backup {backup} of table {table} was restored before; its rows are in the table")
    tasks = list(tasks_of(opened, path, json.loads(text)))
    group = uuid4().hex
    tables, staged = (
        getattr(opened.jvm.org.apache.iceberg.spark, name).get() for name in ("SparkTableCache", "ScanTaskSetManager")
    )
    try:
        # As Iceberg's compaction reads files: Spark takes the tasks that are staged under this name.
        tables.add(group, opened.java)
        staged.stageTasks(opened.java, group, tasks)
        # Tables of format version 3 are read with their row ids, which the rows get anew.
        rows = spark.read.format("iceberg").load(group).select([quoted(name) for name in opened.columns()])
        rows.writeTo(table.sql).option(f"snapshot-property.{RESTORED}", backup).append()
    except (PySparkException, Py4JJavaError) as error:
        raise JobFailedError(f"backup {backup} of table {table} was not restored: {first_line(error)}") from error
    finally:
        tables.remove(group)
        staged.removeTasks(opened.java, group)
    again = IcebergTable.open(spark, table)
    added = _restored(again, backup)
    _finish(again, path, text)
    return Restored(backup, len(tasks), int(added or 0))


def _restored(opened: IcebergTable, backup: str) -> str | None:
    """Rows of the snapshot by which the backup was restored; None if there is none."""
    for snapshot in each(opened.java.snapshots()):
        if snapshot.summary().get(RESTORED) == backup:
            return snapshot.summary().get("added-records") or "0"
    return None


def _finish(opened: IcebergTable, path: str, text: str) -> None:
    """Rename the manifest, so that nobody restores it again."""
    try:
        opened.write(f"{path}{DONE}", text)
        opened.java.io().deleteFile(path)
    except Py4JJavaError as error:
        raise JobFailedError(
            f"backup {path}: its rows are back in table {opened.table}, but the store refused to rename it to "
            f"{path}{DONE}: {first_line(error)}"
        ) from error
