"""Job `retention`: delete rows that are older than the policy keeps, whole files only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Row
from pyspark.sql import functions as f

from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.jobs.job import NIGHTLY, DueDecision, History, JobMetrics, MaintenanceJob, due_after
from lakewright_spark.maintenance.table.backups import build_manifest, delete_manifests, manifest_path
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.file_conditions import FileConditions, build_conditions
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line, iterate
from lakewright_spark.maintenance.table.partition_sizes import MAX_FILES, has_few_files
from lakewright_spark.policies.date_pattern import DEFAULT_PATTERN, format_moment
from lakewright_spark.policies.model import PoliciesInForce, RetentionPolicy, TablePolicies
from lakewright_spark.policies.retention_rules import cutoff, retention_mistakes
from lakewright_spark.policies.server_queues import describe_lost_backups
from lakewright_spark.session.own_classes import call_own_class

FILES_AT_ONCE = 50_000
"""Data files that a commit deletes by their paths. The driver has only these in memory. Python has the paths of a table
with few files, or none."""
_PATH_DELETION = "lakewright.spark.PathDeletion"
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
    mixed_files: int = 0
    """Files that are kept because they may hold rows before and after the limit."""
    refs: tuple[str, ...] = ()
    """Branches and tags, besides `main`, whose files may still hold rows before the limit."""
    manifest: str | None = None
    """Path of the backup manifest that names the files."""
    expired_backups: int = 0
    """Manifests of backups that are older than the policy keeps them."""
    interruption: str = ""
    """Error that ended the run after a commit. `files`, `rows` and `bytes` count what the run deleted until then."""

    @property
    def failure(self) -> str | None:
        """Return why old rows remain, and how many files have them."""
        if self.interruption:
            return (
                f"{self.interruption}. This error came after the deletion of {self.files} files. The next run deletes "
                "the remaining old files"
            )
        if not self.mixed_files:
            return None
        return (
            f"{self.mixed_files} files hold rows before and after {self.before}; retention deletes only whole files: "
            "rewrite these files by the table's partitions first (`compaction.rewrite_old_partitions` rewrites files "
            "of earlier partitions); all other old files were deleted"
        )


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> RetentionMetrics:
    """Delete rows past the policy. The current unit and at least one whole unit before it are always kept.

    Rows of other branches and of tags remain; the result names them.

    Raises:
        PolicyRefusedError: The policy does not suit the table, or the server would delete files of the backup.
    """
    retention = policy.retention
    if retention is None:
        return RetentionMetrics(state="SKIPPED", reason="no retention policy", dry_run=dry_run)
    if retention.backup and isinstance(policy, PoliciesInForce) and policy.done_by_server:
        raise PolicyRefusedError(f"table {opened.table}: retention: {describe_lost_backups(policy.done_by_server)}")
    columns = opened.columns()
    if mistakes := retention_mistakes(retention, columns, opened.partitions()):
        raise PolicyRefusedError(f"table {opened.table}: {'; '.join(mistakes)}")
    kind, before = columns[retention.column], cutoff(retention, now)
    conditions = build_conditions(opened, retention, kind, before)
    old = _older_rows(opened, retention.column, _java_limit(retention, kind, before))
    metrics = _delete_rows(opened, retention, conditions, old, dry_run=dry_run, now=now)
    try:
        metrics = replace(metrics, refs=tuple(_find_refs_with_old_rows(opened, retention.column, old)))
        if metrics.refs:
            note = f"branches and tags that may still have rows before {conditions.limit}: {', '.join(metrics.refs)}"
            metrics = replace(metrics, reason="; ".join(filter(None, (metrics.reason, note))))
        if retention.backup_days is not None and opened.deletes_files:
            older_than = now - timedelta(days=retention.backup_days)
            metrics = replace(metrics, expired_backups=delete_manifests(opened, older_than, dry_run=dry_run))
    except (PySparkException, Py4JJavaError) as error:
        if dry_run or not metrics.files:
            raise
        return replace(metrics, interruption=metrics.interruption or first_line(error))
    return metrics


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether the last run is long enough ago: an hour for policies by hour."""
    if policies.retention is None:
        return DueDecision(is_due=False, reason="no retention policy")
    if facts.snapshot is None:
        return DueDecision(is_due=False, reason="no rows")
    every = timedelta(hours=1) if policies.retention.unit == "hour" else NIGHTLY
    return due_after(every, "retention", policies, history, now)


JOB = MaintenanceJob(name="retention", run=run, is_due=is_due, primary_only=True)


def _delete_rows(
    opened: IcebergTable,
    retention: RetentionPolicy,
    conditions: FileConditions,
    old: Any,
    *,
    dry_run: bool,
    now: datetime,
) -> RetentionMetrics:
    """Delete the old files of `main`, as Iceberg's filter `old` and the SQL conditions describe them."""
    if not (dry_run or retention.backup or retention.pattern is not None):
        if not any(_scan_tasks(opened, old)):  # an empty deletion would add a snapshot
            return RetentionMetrics(before=conditions.limit)
        try:
            summary = opened.commit(opened.java.newDelete().deleteFromRowFilter(old))
            return _add_counts(RetentionMetrics(before=conditions.limit), summary)
        except Py4JJavaError as error:
            if "some, but not all, rows match" not in first_line(error):
                raise  # otherwise, delete all other files
    selection = _select_files(opened, conditions)
    plan = _plan(selection, retention, conditions.limit, dry_run=dry_run)
    if dry_run or plan.files == 0:
        return plan
    if retention.backup:
        return _delete_with_backup(opened, plan, _list_old_paths(opened, conditions, selection), old, now)
    return _delete_in_parts(opened, plan, _iterate_over_old_paths(opened, conditions, selection))


def _find_refs_with_old_rows(opened: IcebergTable, column: str, old: Any) -> Iterator[str]:
    """Yield the branches and tags, besides `main`, that have files which may hold such rows.

    A tag from before the column got its name cannot be checked, so it is included.
    """
    refs = opened.java.refs()
    snapshots = {name: refs[name].snapshotId() for name in opened.to_strings(refs.keySet()) if name != "main"}
    may_have_rows: dict[int, bool] = {}
    for name, snapshot in sorted(snapshots.items()):
        if snapshot not in may_have_rows:
            has_column = opened.java.newScan().useRef(name).schema().findField(column) is not None
            may_have_rows[snapshot] = not has_column or any(_scan_tasks(opened, old, name))
        if may_have_rows[snapshot]:
            yield name


def _add_counts(metrics: RetentionMetrics, summary: Mapping[str, str]) -> RetentionMetrics:
    """Return the metrics with the counts of a further commit."""
    return replace(
        metrics,
        files=metrics.files + int(summary.get("deleted-data-files", 0)),
        rows=metrics.rows + int(summary.get("deleted-records", 0)),
        bytes=metrics.bytes + int(summary.get("removed-files-size", 0)),
    )


def _older_rows(opened: IcebergTable, column: str, limit: str) -> Any:
    """Return Iceberg's filter for the rows to delete."""
    expressions = opened.find_class("org.apache.iceberg.expressions.Expressions")
    # Without notNull, Iceberg drops partitions of null, which it sorts before every value.
    return getattr(expressions, "and")(expressions.notNull(column), expressions.lessThan(column, limit))


def _scan_tasks(opened: IcebergTable, rows: Any, ref: str = "main") -> Iterator[Any]:
    """Yield the scan tasks of data files of a branch or tag that may hold such rows, each with its delete files."""
    scan = opened.java.newScan()
    if ref != "main":  # which does not exist before the first commit
        scan = scan.useRef(ref)
    tasks = scan.filter(rows).ignoreResiduals().planFiles()
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


class _Selection(NamedTuple):
    """Files that the conditions select."""

    files: int
    """Number of old files."""
    rows: int
    bytes: int
    mixed: int
    """Number of files with old and later rows."""
    other: int
    """Number of files whose age is unknown."""
    examples: Sequence[str]
    """Paths of some files whose age is unknown."""
    paths: Sequence[str] | None = None
    """Paths of the old files, if the table has few files."""


def _select_files(opened: IcebergTable, conditions: FileConditions) -> _Selection:
    """Return the files that the conditions select. The driver has the rows of a table with few files."""
    files = opened.read_metadata("data_files")
    columns = ("old", "mixed", "other")
    terms = [f"{condition} AS {name}" for name, condition in zip(columns, conditions[1:], strict=True)]
    if has_few_files(opened):
        selected = files.selectExpr("file_path", "record_count", "file_size_in_bytes", *terms)
        rows = selected.where("old OR mixed OR other").limit(MAX_FILES + 1).collect()
        if len(rows) <= MAX_FILES:  # the summary of a commit may be wrong
            return _sum_rows(rows)
    counts = files.selectExpr("record_count", "file_size_in_bytes", *terms).selectExpr(
        *(f"count_if({name}) AS {name}" for name in columns),
        "coalesce(sum(record_count) FILTER (WHERE old), 0) AS rows",
        "coalesce(sum(file_size_in_bytes) FILTER (WHERE old), 0) AS bytes",
    )
    counted = counts.collect()[0]
    examples = files.where(conditions.other).select("file_path").orderBy("file_path").limit(_NAMED_FILES)
    names = [row.file_path for row in examples.collect()] if counted.other else []
    return _Selection(counted.old, counted["rows"], counted.bytes, counted.mixed, counted.other, names)


def _sum_rows(rows: Sequence[Row]) -> _Selection:
    """Sum up the selected files."""
    old = [row for row in rows if row.old]
    other_paths = sorted(row.file_path for row in rows if row.other)
    return _Selection(
        files=len(old),
        rows=sum(row.record_count for row in old),
        bytes=sum(row.file_size_in_bytes for row in old),
        mixed=sum(row.mixed for row in rows),
        other=len(other_paths),
        examples=other_paths[:_NAMED_FILES],
        paths=[row.file_path for row in old],
    )


def _plan(selection: _Selection, retention: RetentionPolicy, limit: str, *, dry_run: bool) -> RetentionMetrics:
    """Return what would be deleted, and the files that are kept."""
    plan = RetentionMetrics(
        before=limit,
        files=selection.files,
        rows=selection.rows,
        bytes=selection.bytes,
        mixed_files=selection.mixed,
        dry_run=dry_run,
    )
    if not selection.other:
        return plan
    more = f" and {selection.other - len(selection.examples)} more" if selection.other > len(selection.examples) else ""
    reason = (
        f"{selection.other} files are kept: a smallest or largest `{retention.column}` is no date of "
        f"`{retention.pattern or DEFAULT_PATTERN}`: {', '.join(selection.examples)}{more}"
    )
    return replace(plan, other_files=selection.other, reason=reason)


def _delete_in_parts(opened: IcebergTable, plan: RetentionMetrics, paths: Any) -> RetentionMetrics:
    """Delete exactly the files of a Java iterator over paths, a part of them in each commit.

    Files that are added in the meantime are kept. Rows that another writer deletes in the meantime do not matter.

    Raises:
        PySparkException, Py4JJavaError: Spark or Iceberg failed before a commit.
    """
    metrics = replace(plan, files=0, rows=0, bytes=0)
    try:
        while True:
            deletion = opened.java.newDelete()
            if not call_own_class(opened.spark, _PATH_DELETION, "addFiles", deletion, paths, FILES_AT_ONCE):
                return metrics
            metrics = _add_counts(metrics, opened.commit(deletion))
    except (PySparkException, Py4JJavaError) as error:
        if not metrics.files:
            raise
        return replace(metrics, interruption=first_line(error))


def _list_old_paths(opened: IcebergTable, conditions: FileConditions, selection: _Selection) -> Sequence[str]:
    """Return the paths of the old files."""
    if selection.paths is not None:
        return selection.paths
    rows = opened.read_metadata("data_files").where(conditions.old).select("file_path").collect()
    return [row.file_path for row in rows]


def _iterate_over_old_paths(opened: IcebergTable, conditions: FileConditions, selection: _Selection) -> Any:
    """Return a Java iterator over the paths of the old files. Spark has about `FILES_AT_ONCE` of them in the driver.

    The files of a manifest come together, since each commit writes the manifests of its files again.
    """
    if selection.paths is not None:
        return opened.to_stream(selection.paths).iterator()
    files = opened.read_metadata("data_files").where(conditions.old)
    # A task reads whole manifests, one after the other.
    numbered_files = files.select("file_path", f.monotonically_increasing_id().alias("number"))
    # Spark returns a partition at a time.
    parts = numbered_files.repartitionByRange(-(-selection.files // FILES_AT_ONCE), "number").select("file_path")
    return cast(Any, parts)._jdf.toLocalIterator()


def _delete_with_backup(
    opened: IcebergTable, plan: RetentionMetrics, paths: Sequence[str], old: Any, now: datetime
) -> RetentionMetrics:
    """Delete exactly the files with these paths, which a backup's manifest names.

    Files that are added in the meantime are kept.
    """
    old_files = set(paths)
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
    return _add_counts(replace(plan, files=0, rows=0, bytes=0, manifest=manifest), summary)
