"""`retention`: delete the rows that are older than the policy keeps, whole files at a time, never a part of one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from py4j.protocol import Py4JJavaError

from lakewright_spark.errors import JobFailedError, PolicyRefusedError
from lakewright_spark.maintenance.switches import Metrics
from lakewright_spark.maintenance.table.backups import describe, manifest_path
from lakewright_spark.maintenance.table.iceberg import IcebergTable, each, first_line, instant
from lakewright_spark.policies.date_pattern import DEFAULT_PATTERN, formatted
from lakewright_spark.policies.model import RetentionPolicy, TablePolicies
from lakewright_spark.policies.retention_rules import cutoff, retention_mistakes
from lakewright_spark.table_identifier import literal, quoted


@dataclass(frozen=True, kw_only=True)
class RetentionMetrics(Metrics):
    """What was deleted: data files with their rows and bytes."""

    before: str = ""
    """Rows whose column is less than this."""
    files: int = 0
    rows: int = 0
    bytes: int = 0
    manifest: str | None = None
    """Where the files that stay as a backup are named."""


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> RetentionMetrics:
    """Delete what is past the policy. The floor: the unit that has begun and at least one whole unit before it stay.

    PolicyRefusedError if the policy does not suit the table; JobFailedError if a file holds rows of both sides, since
    that would have to be written anew: nothing is deleted then.
    """
    retention = policy.retention
    if retention is None:
        return RetentionMetrics(state="SKIPPED", reason="no retention policy", dry_run=dry_run)
    columns = opened.columns()
    if mistakes := retention_mistakes(retention, columns, opened.partitions()):
        raise PolicyRefusedError(f"table {opened.table}: {'; '.join(mistakes)}")
    kind, before = columns[retention.column], cutoff(retention, now)
    limit = _limit(retention, kind, before)
    old = _older(opened, retention.column, _java_limit(retention, kind, before))
    if dry_run or retention.backup:
        found = _planned(opened, retention.column, limit, dry_run=dry_run)
        return found if dry_run or found.files == 0 else _with_backup(opened, retention.column, limit, old, now)
    if not any(_tasks(opened, old)):  # to delete none would make a snapshot, too
        return RetentionMetrics(before=limit)
    try:
        done = opened.commit(opened.java.newDelete().deleteFromRowFilter(old))
    except Py4JJavaError as error:
        if "some, but not all, rows match" in first_line(error):
            _planned(opened, retention.column, limit)  # says how many
        raise
    return _deleted(limit, done)


def _deleted(limit: str, summary: Mapping[str, str], manifest: str | None = None) -> RetentionMetrics:
    return RetentionMetrics(
        before=limit,
        files=int(summary.get("deleted-data-files", 0)),
        rows=int(summary.get("deleted-records", 0)),
        bytes=int(summary.get("removed-files-size", 0)),
        manifest=manifest,
    )


def _older(opened: IcebergTable, column: str, limit: str) -> Any:
    """What the rows have in common that go, as Iceberg has it."""
    make = opened.jvm.org.apache.iceberg.expressions.Expressions
    # Without notNull, Iceberg takes a partition of null for one that is less than anything, and drops it.
    return getattr(make, "and")(make.notNull(column), make.lessThan(column, limit))


def _tasks(opened: IcebergTable, rows: Any) -> Iterator[Any]:
    """Iceberg's scan tasks of the data files that may hold such rows: each file with its delete files."""
    tasks = opened.java.newScan().filter(rows).ignoreResiduals().planFiles()
    try:
        yield from each(tasks)
    finally:
        tasks.close()


def _java_limit(retention: RetentionPolicy, kind: str, before: datetime) -> str:
    """The limit as Iceberg reads a literal of the column's type."""
    if retention.pattern is not None:
        return formatted(before, retention.pattern or DEFAULT_PATTERN)
    if kind == "date":
        return f"{before:%Y-%m-%d}"
    return f"{before:%Y-%m-%dT%H:%M:%S}" + ("+00:00" if kind.startswith("timestamptz") else "")


def _limit(retention: RetentionPolicy, kind: str, before: datetime) -> str:
    """The same as Spark SQL has it."""
    if retention.pattern is not None:
        return literal(formatted(before, retention.pattern or DEFAULT_PATTERN))
    if kind == "date":
        return f"DATE '{before:%Y-%m-%d}'"
    # Without a zone, times are taken for UTC, as partitions take them.
    return instant(before) if kind.startswith("timestamptz") else f"TIMESTAMP_NTZ '{before:%Y-%m-%d %H:%M:%S}'"


def _old(column: str, limit: str) -> tuple[str, str]:
    """Conditions on a data file: that all of its rows are before the limit, and that some are and others are not."""
    bounds = f"readable_metrics.{quoted(column)}"
    nulls, rows = f"coalesce({bounds}.null_value_count, 0)", "record_count"
    whole = f"({bounds}.upper_bound < {limit} AND {nulls} = 0)"
    none = f"({bounds}.lower_bound >= {limit} OR {nulls} = {rows})"
    return f"coalesce({whole}, false)", f"NOT coalesce({whole}, false) AND NOT coalesce({none}, false)"


def _planned(opened: IcebergTable, column: str, limit: str, *, dry_run: bool = False) -> RetentionMetrics:
    """What would go. JobFailedError if a file holds rows of both sides."""
    whole, mixed = _old(column, limit)
    found = opened.spark.sql(
        f"SELECT count_if({whole}) AS files, count_if({mixed}) AS mixed, "  # noqa: S608  # quoted parts alone
        f"coalesce(sum(record_count) FILTER (WHERE {whole}), 0) AS rows, "
        f"coalesce(sum(file_size_in_bytes) FILTER (WHERE {whole}), 0) AS bytes FROM {opened.metadata('data_files')}"
    ).collect()[0]
    if found.mixed:
        raise JobFailedError(
            f"table {opened.table}: {found.mixed} files hold rows before and after {limit}; retention deletes whole "
            f"files alone: rewrite these by the table's partitions first"
        )
    return RetentionMetrics(before=limit, files=found.files, rows=found["rows"], bytes=found.bytes, dry_run=dry_run)


def _with_backup(opened: IcebergTable, column: str, limit: str, old: Any, now: datetime) -> RetentionMetrics:
    """Delete the files that a manifest names, and no others: what others add meanwhile is in no backup yet."""
    whole, _ = _old(column, limit)
    rows = opened.spark.sql(f"SELECT file_path FROM {opened.metadata('data_files')} WHERE {whole}").collect()  # noqa: S608
    known = {row.file_path for row in rows}
    tasks = [task for task in _tasks(opened, old) if task.file().location() in known]
    manifest = manifest_path(opened.location, now)
    opened.write(manifest, json.dumps(describe(opened, tasks)))
    # A row that others delete meanwhile is deleted by a file that the backup does not have: then this commit fails.
    deletion = opened.java.newOverwrite().validateNoConflictingDeletes().conflictDetectionFilter(old)
    if snapshot := opened.java.currentSnapshot():
        deletion = deletion.validateFromSnapshot(snapshot.snapshotId())
    for task in tasks:
        deletion.deleteFile(task.file())
    try:
        done = opened.commit(deletion)
    except Py4JJavaError as error:
        if "CommitStateUnknown" not in first_line(error):  # else the rows may be gone, and their backup is needed
            opened.java.io().deleteFile(manifest)
        raise
    return _deleted(limit, done, manifest)
