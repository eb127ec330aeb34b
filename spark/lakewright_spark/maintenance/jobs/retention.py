"""Job `retention`: delete rows that are older than the policy keeps, whole files only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from py4j.protocol import Py4JJavaError

from lakewright_spark.errors import JobFailedError, PolicyRefusedError
from lakewright_spark.maintenance.jobs.job import PAUSE, DueDecision, History, JobMetrics, MaintenanceJob, due_after
from lakewright_spark.maintenance.table.backups import build_manifest, manifest_path
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable, SqlSession, first_line, instant_sql, iterate
from lakewright_spark.policies.date_pattern import DEFAULT_PATTERN, date_expression, format_moment
from lakewright_spark.policies.model import RetentionPolicy, TablePolicies
from lakewright_spark.policies.retention_rules import cutoff, retention_mistakes
from lakewright_spark.table_identifier import literal, quote_name

_NAMED_FILES = 10
"""Number of kept files that a run names."""


@dataclass(frozen=True, kw_only=True)
class RetentionMetrics(JobMetrics):
    """Deleted data files with their rows and bytes."""

    before: str = ""
    """Limit of the deletion: rows with smaller values of the column."""
    files: int = 0
    rows: int = 0
    bytes: int = 0
    other_files: int = 0
    """Files that are kept because a smallest or largest text does not match the date pattern. `reason` names some."""
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
    conditions = _build_conditions(opened, retention, _sql_limit(retention, kind, before))
    old = _older_rows(opened, retention.column, _java_limit(retention, kind, before))
    if dry_run or retention.backup or retention.pattern is not None:
        plan = _plan(opened, retention, conditions, dry_run=dry_run)
        if dry_run or plan.files == 0:
            return plan
        return _delete_old_files(opened, retention, plan, conditions=conditions, old=old, now=now)
    if not any(_scan_tasks(opened, old)):  # an empty deletion would add a snapshot
        return RetentionMetrics(before=conditions.limit)
    try:
        summary = opened.commit(opened.java.newDelete().deleteFromRowFilter(old))
    except Py4JJavaError as error:
        if "some, but not all, rows match" in first_line(error):
            _plan(opened, retention, conditions)  # its error has the number of files
        raise
    return _add_counts(RetentionMetrics(before=conditions.limit), summary)


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether the last run is long enough ago: an hour for policies by hour."""
    if policies.retention is None:
        return DueDecision(is_due=False, reason="no retention policy")
    if facts.snapshot is None:
        return DueDecision(is_due=False, reason="no rows")
    pause = timedelta(hours=1) if policies.retention.unit == "hour" else PAUSE
    return due_after(pause, "retention", history, now)


JOB = MaintenanceJob(name="retention", run=run, is_due=is_due, primary_only=True)


def _add_counts(metrics: RetentionMetrics, summary: Mapping[str, str]) -> RetentionMetrics:
    """Return the metrics with the counts of a commit."""
    return replace(
        metrics,
        files=int(summary.get("deleted-data-files", 0)),
        rows=int(summary.get("deleted-records", 0)),
        bytes=int(summary.get("removed-files-size", 0)),
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
        return format_moment(before, retention.pattern or DEFAULT_PATTERN)
    if kind == "date":
        return f"{before:%Y-%m-%d}"
    return f"{before:%Y-%m-%dT%H:%M:%S}" + ("+00:00" if kind.startswith("timestamptz") else "")


def _sql_limit(retention: RetentionPolicy, kind: str, before: datetime) -> str:
    """Return the limit as a literal of Spark SQL."""
    if retention.pattern is not None:
        return literal(format_moment(before, retention.pattern or DEFAULT_PATTERN))
    if kind == "date":
        return f"DATE '{before:%Y-%m-%d}'"
    # Times without a zone count as UTC, as in partitions.
    return instant_sql(before) if kind.startswith("timestamptz") else f"TIMESTAMP_NTZ '{before:%Y-%m-%d %H:%M:%S}'"


class _FileConditions(NamedTuple):
    """Conditions of Spark SQL on the rows of `data_files`. Each is true or false, never null."""

    limit: str
    old: str
    """All rows of the file are before the limit."""
    mixed: str
    """The file may hold rows before the limit and later rows."""
    other: str
    """A smallest or largest text does not match the date pattern. Such a file is neither old nor mixed."""


def _build_conditions(opened: IcebergTable, retention: RetentionPolicy, limit: str) -> _FileConditions:
    """Return the conditions of the policy on the table's data files."""
    bounds = f"readable_metrics.{quote_name(retention.column)}"
    smallest, largest, nulls = f"{bounds}.lower_bound", f"{bounds}.upper_bound", f"{bounds}.null_value_count"
    has_nulls, only_nulls = f"coalesce({nulls}, 0) > 0", f"coalesce({nulls}, 0) = record_count"
    if value := _find_partition_value(opened, retention.column):
        # A partition's value is complete, while metrics may be switched off and cut long texts.
        in_partitions = f"spec_id = {opened.java.spec().specId()}"
        smallest, largest = (f"if({in_partitions}, {value}, {bound})" for bound in (smallest, largest))
        has_nulls, only_nulls = (f"if({in_partitions}, {value} IS NULL, {nulls})" for nulls in (has_nulls, only_nulls))
    other = "false"
    if retention.pattern is not None:
        expression = literal(f"^(?:{date_expression(retention.pattern or DEFAULT_PATTERN)})\\z")
        dates = f"({smallest} RLIKE {expression} AND {largest} RLIKE {expression})"
        # Text that is not a date sorts anywhere: an empty text is before every limit.
        other = f"coalesce(NOT {only_nulls} AND NOT {dates}, false)"
    old = f"(coalesce({largest} < {limit} AND NOT {has_nulls}, false) AND NOT {other})"
    later = f"coalesce({smallest} >= {limit} OR {only_nulls}, false)"
    return _FileConditions(limit, old, f"(NOT {old} AND NOT {later} AND NOT {other})", other)


def _find_partition_value(opened: IcebergTable, column: str) -> str | None:
    """Return the SQL of the partition value that is the column's own; None if there is none."""
    schema = opened.java.schema()
    for field in opened.java.spec().fields():
        if field.transform().isIdentity() and schema.findColumnName(field.sourceId()) == column:
            return f"partition.{quote_name(field.name())}"
    return None


def _plan(
    opened: IcebergTable, retention: RetentionPolicy, conditions: _FileConditions, *, dry_run: bool = False
) -> RetentionMetrics:
    """Return what would be deleted, and the files that the pattern does not describe.

    Raises:
        JobFailedError: A file holds rows on both sides of the limit.
    """
    limit, old, mixed, other = conditions
    session = cast(SqlSession, opened.spark)
    counts = session.sql(
        f"SELECT count_if({old}) AS files, count_if({mixed}) AS mixed, count_if({other}) AS other, "  # noqa: S608  # quoted parts alone
        f"coalesce(sum(record_count) FILTER (WHERE {old}), 0) AS rows, "
        f"coalesce(sum(file_size_in_bytes) FILTER (WHERE {old}), 0) AS bytes FROM {opened.metadata('data_files')}"
    ).collect()[0]
    if counts.mixed:
        raise JobFailedError(
            f"table {opened.table}: {counts.mixed} files hold rows before and after {limit}; retention deletes only "
            f"whole files: rewrite these files by the table's partitions first"
        )
    plan = RetentionMetrics(before=limit, files=counts.files, rows=counts["rows"], bytes=counts.bytes, dry_run=dry_run)
    if not counts.other:
        return plan
    rows = session.sql(
        f"SELECT file_path FROM {opened.metadata('data_files')} WHERE {other} "  # noqa: S608
        f"ORDER BY file_path LIMIT {_NAMED_FILES}"
    ).collect()
    names = ", ".join(row.file_path for row in rows)
    more = f" and {counts.other - len(rows)} more" if counts.other > len(rows) else ""
    reason = (
        f"{counts.other} files are kept: a smallest or largest `{retention.column}` is no date of "
        f"`{retention.pattern or DEFAULT_PATTERN}`: {names}{more}"
    )
    return replace(plan, other_files=counts.other, reason=reason)


def _delete_old_files(
    opened: IcebergTable,
    retention: RetentionPolicy,
    plan: RetentionMetrics,
    *,
    conditions: _FileConditions,
    old: Any,
    now: datetime,
) -> RetentionMetrics:
    """Delete exactly the files that the conditions select. Files that are added in the meantime are kept.

    A backup's manifest names the files. Without one, rows that another writer deletes in the meantime do not matter.
    """
    session = cast(SqlSession, opened.spark)
    rows = session.sql(f"SELECT file_path FROM {opened.metadata('data_files')} WHERE {conditions.old}").collect()  # noqa: S608
    old_files = {row.file_path for row in rows}
    tasks = [task for task in _scan_tasks(opened, old) if task.file().location() in old_files]
    if not retention.backup:
        deletion = opened.java.newDelete()
        for task in tasks:
            deletion.deleteFile(task.file())
        return _add_counts(plan, opened.commit(deletion))
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
    return _add_counts(replace(plan, manifest=manifest), summary)
