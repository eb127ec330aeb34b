"""Job `retention`: delete rows that are older than the policy keeps, whole files only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from py4j.protocol import Py4JJavaError

from lakewright_spark.errors import JobFailedError, PolicyRefusedError
from lakewright_spark.maintenance.jobs.job import PAUSE, DueDecision, History, JobMetrics, MaintenanceJob, due_after
from lakewright_spark.maintenance.table.backups import build_manifest, manifest_path
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line, instant_sql, iterate
from lakewright_spark.maintenance.table.sql_session import SqlSession
from lakewright_spark.policies.date_pattern import DEFAULT_PATTERN, formatted
from lakewright_spark.policies.model import RetentionPolicy, TablePolicies
from lakewright_spark.policies.retention_rules import cutoff, retention_mistakes
from lakewright_spark.table_identifier import literal, quoted


@dataclass(frozen=True, kw_only=True)
class RetentionMetrics(JobMetrics):
    """Deleted data files with their rows and bytes."""

    before: str = ""
    """Limit of the deletion: rows with smaller values of the column."""
    files: int = 0
    rows: int = 0
    bytes: int = 0
    manifest: str | None = None
    """Path of the backup manifest that names the files."""


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> RetentionMetrics:
    """Delete rows past the policy. The current unit and at least one whole unit before it are always kept.

    Raises:
        PolicyRefusedError: The policy does not suit the table.
        JobFailedError: A file holds rows on both sides of the limit and would have to be rewritten. Nothing is deleted.
    """
    retention = policy.retention
    if retention is None:
        return RetentionMetrics(state="SKIPPED", reason="no retention policy", dry_run=dry_run)
    columns = opened.columns()
    if mistakes := retention_mistakes(retention, columns, opened.partitions()):
        raise PolicyRefusedError(f"table {opened.table}: {'; '.join(mistakes)}")
    kind, before = columns[retention.column], cutoff(retention, now)
    limit = _sql_limit(retention, kind, before)
    old = _older_rows(opened, retention.column, _java_limit(retention, kind, before))
    if dry_run or retention.backup:
        found = _plan(opened, retention.column, limit, dry_run=dry_run)
        return found if dry_run or found.files == 0 else _delete_with_backup(opened, retention.column, limit, old, now)
    if not any(_scan_tasks(opened, old)):  # an empty deletion would add a snapshot
        return RetentionMetrics(before=limit)
    try:
        summary = opened.commit(opened.java.newDelete().deleteFromRowFilter(old))
    except Py4JJavaError as error:
        if "some, but not all, rows match" in first_line(error):
            _plan(opened, retention.column, limit)  # its error has the number of files
        raise
    return _metrics(limit, summary)


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether the last run is long enough ago: an hour for policies by hour."""
    if policies.retention is None:
        return DueDecision(is_due=False, reason="no retention policy")
    if facts.snapshot is None:
        return DueDecision(is_due=False, reason="no rows")
    pause = timedelta(hours=1) if policies.retention.unit == "hour" else PAUSE
    return due_after(pause, "retention", history, now)


JOB = MaintenanceJob(name="retention", run=run, is_due=is_due, primary_only=True)


def _metrics(limit: str, summary: Mapping[str, str], manifest: str | None = None) -> RetentionMetrics:
    return RetentionMetrics(
        before=limit,
        files=int(summary.get("deleted-data-files", 0)),
        rows=int(summary.get("deleted-records", 0)),
        bytes=int(summary.get("removed-files-size", 0)),
        manifest=manifest,
    )


def _older_rows(opened: IcebergTable, column: str, limit: str) -> Any:
    """Return Iceberg's filter for the rows to delete."""
    expressions = opened.jvm.org.apache.iceberg.expressions.Expressions
    # Without notNull, Iceberg drops partitions of null, which it sorts before every value.
    return getattr(expressions, "and")(expressions.notNull(column), expressions.lessThan(column, limit))


def _scan_tasks(opened: IcebergTable, rows: Any) -> Iterator[Any]:
    """Yield the scan tasks of data files that may hold such rows, each with its delete files."""
    tasks = opened.java.newScan().filter(rows).ignoreResiduals().planFiles()
    try:
        yield from iterate(tasks)
    finally:
        tasks.close()


def _java_limit(retention: RetentionPolicy, kind: str, before: datetime) -> str:
    """Return the limit as Iceberg parses a literal of the column's type."""
    if retention.pattern is not None:
        return formatted(before, retention.pattern or DEFAULT_PATTERN)
    if kind == "date":
        return f"{before:%Y-%m-%d}"
    return f"{before:%Y-%m-%dT%H:%M:%S}" + ("+00:00" if kind.startswith("timestamptz") else "")


def _sql_limit(retention: RetentionPolicy, kind: str, before: datetime) -> str:
    """Return the limit as a literal of Spark SQL."""
    if retention.pattern is not None:
        return literal(formatted(before, retention.pattern or DEFAULT_PATTERN))
    if kind == "date":
        return f"DATE '{before:%Y-%m-%d}'"
    # Times without a zone count as UTC, as in partitions.
    return instant_sql(before) if kind.startswith("timestamptz") else f"TIMESTAMP_NTZ '{before:%Y-%m-%d %H:%M:%S}'"


def _file_conditions(column: str, limit: str) -> tuple[str, str]:
    """Return the conditions that all rows of a data file are before the limit, and that only some are."""
    bounds = f"readable_metrics.{quoted(column)}"
    nulls, rows = f"coalesce({bounds}.null_value_count, 0)", "record_count"
    whole = f"({bounds}.upper_bound < {limit} AND {nulls} = 0)"
    none = f"({bounds}.lower_bound >= {limit} OR {nulls} = {rows})"
    return f"coalesce({whole}, false)", f"NOT coalesce({whole}, false) AND NOT coalesce({none}, false)"


def _plan(opened: IcebergTable, column: str, limit: str, *, dry_run: bool = False) -> RetentionMetrics:
    """Return what would be deleted.

    Raises:
        JobFailedError: A file holds rows on both sides of the limit.
    """
    whole, mixed = _file_conditions(column, limit)
    session = cast(SqlSession, opened.spark)
    found = session.sql(
        f"SELECT count_if({whole}) AS files, count_if({mixed}) AS mixed, "  # noqa: S608  # quoted parts alone
        f"coalesce(sum(record_count) FILTER (WHERE {whole}), 0) AS rows, "
        f"coalesce(sum(file_size_in_bytes) FILTER (WHERE {whole}), 0) AS bytes FROM {opened.metadata('data_files')}"
    ).collect()[0]
    if found.mixed:
        raise JobFailedError(
            f"table {opened.table}: {found.mixed} files hold rows before and after {limit}; retention deletes only "
            f"whole files: rewrite these files by the table's partitions first"
        )
    return RetentionMetrics(before=limit, files=found.files, rows=found["rows"], bytes=found.bytes, dry_run=dry_run)


def _delete_with_backup(opened: IcebergTable, column: str, limit: str, old: Any, now: datetime) -> RetentionMetrics:
    """Delete exactly the files that a manifest names. Files that are added in the meantime stay."""
    whole, _ = _file_conditions(column, limit)
    session = cast(SqlSession, opened.spark)
    rows = session.sql(f"SELECT file_path FROM {opened.metadata('data_files')} WHERE {whole}").collect()  # noqa: S608
    old_files = {row.file_path for row in rows}
    tasks = [task for task in _scan_tasks(opened, old) if task.file().location() in old_files]
    manifest = manifest_path(opened.location, now)
    opened.write(manifest, json.dumps(build_manifest(opened, tasks)))
    # Fail if rows were deleted in the meantime: the backup does not have the new delete files.
    deletion = opened.java.newOverwrite().validateNoConflictingDeletes().conflictDetectionFilter(old)
    if snapshot := opened.java.currentSnapshot():
        deletion = deletion.validateFromSnapshot(snapshot.snapshotId())
    for task in tasks:
        deletion.deleteFile(task.file())
    try:
        summary = opened.commit(deletion)
    except Py4JJavaError as error:
        if "CommitStateUnknown" not in first_line(error):  # otherwise the commit may have succeeded
            opened.java.io().deleteFile(manifest)
        raise
    return _metrics(limit, summary, manifest)
