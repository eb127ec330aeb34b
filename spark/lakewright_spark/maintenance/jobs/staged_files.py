"""Job `staged-files`: delete candidates of earlier runs of `orphan-files` that are still unreferenced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lakewright_spark.errors import JobFailedError, LakewrightSparkError, SharedLocationError
from lakewright_spark.maintenance.jobs.job import DueDecision, History, JobMetrics, MaintenanceJob
from lakewright_spark.maintenance.table.candidates import (
    CANDIDATES,
    age_limit,
    compare_with_metadata,
    compute_once,
    find_unreferenced_files,
    mark_handled,
    read_candidates,
    record_candidates,
)
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line, instant_sql
from lakewright_spark.maintenance.table.ops_tables import keep_rows
from lakewright_spark.policies.model import StagedFilesPolicy, TablePolicies
from lakewright_spark.times import format_time

FILES_AT_ONCE = 10_000
"""Addresses of files to delete that are in this process at a time, in one request of `IcebergTable.delete_files`."""


@dataclass(frozen=True, kw_only=True)
class StagedFilesMetrics(JobMetrics):
    """Deleted files and remaining candidates."""

    deleted: int = 0
    waiting: int = 0
    """Candidates that are not old enough."""
    refused: int = 0
    """Files that the store did not delete. They remain candidates for the next run."""
    interruption: str = ""
    """Error that ended the run after deletions. `deleted` counts the files of these deletions, refused or not."""

    @property
    def failure(self) -> str | None:
        """Return why some files were not deleted."""
        if self.interruption:
            return (
                f"{self.interruption}. This error came after the deletion of {self.deleted} files. The files that "
                "the store has not deleted are candidates for the next run"
            )
        if not self.refused:
            return None
        return (
            f"the store refused to delete {self.refused} of {self.refused + self.deleted} files. They remain "
            "candidates for the next run. Grant the right to delete objects (s3:DeleteObject) under the table's "
            "location"
        )


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> StagedFilesMetrics:
    """Delete candidates that are older than the policy's age and that a new listing still finds unreferenced.

    Raises:
        JobFailedError: The session must not delete files, which a catalog with soft delete demands by default.
    """
    if opened.keeps_garbage:
        return StagedFilesMetrics(state="SKIPPED", reason="the table has gc.enabled=false", dry_run=dry_run)
    try:
        return _delete_candidates(opened, policy, dry_run=dry_run, now=now)
    except SharedLocationError as error:
        return StagedFilesMetrics(state="SKIPPED", reason=str(error), dry_run=dry_run)


def _delete_candidates(
    opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime
) -> StagedFilesMetrics:
    ttl = timedelta(days=(policy.staged_files or StagedFilesPolicy()).older_than_days)
    with compute_once(read_candidates(opened)) as candidates:
        total = candidates.count()
        due = candidates.where(f.col("first_seen") <= f.expr(instant_sql(now - ttl)))
        metrics = StagedFilesMetrics(waiting=total - due.count(), dry_run=dry_run)
        if metrics.waiting == total:
            return metrics
        limit = age_limit(policy, now)
        with find_unreferenced_files(opened, limit) as unreferenced:
            due_files = due.select("file_path").distinct().join(unreferenced, "file_path", "left_semi").cache()
            try:
                return _delete_due_files(opened, due_files, limit, now - ttl, metrics)
            finally:
                due_files.unpersist()


def _delete_due_files(
    opened: IcebergTable, due_files: DataFrame, limit: datetime, found_until: datetime, metrics: StagedFilesMetrics
) -> StagedFilesMetrics:
    """Delete the due candidates that are unreferenced.

    Args:
        opened: The table.
        due_files: Column `file_path`.
        limit: Instant (UTC) from which on changed files are too young to be orphans.
        found_until: Instant (UTC) up to which candidates of earlier runs are due.
        metrics: Metrics without deleted files.
    """
    table, count = opened.table, due_files.count()
    if metrics.dry_run:
        return replace(metrics, deleted=count)
    if not opened.deletes_files:
        raise JobFailedError(
            f"table {table}: {count} files are due. The catalog has soft delete, so it does not let clients delete "
            "files. Set s3.delete-enabled=true for this job's catalog, as `lakewright-spark job` does"
        )
    # The listing has checked their age; Iceberg checks again for references.
    opened.refresh()
    old = f.expr(instant_sql(limit - timedelta(seconds=1)))
    old_files = due_files.select("file_path", old.alias("last_modified"))
    with compare_with_metadata(opened, old_files, limit) as unused_files:
        deleted, interruption = _delete_files(opened, unused_files)
        if interruption:
            return replace(metrics, deleted=deleted, interruption=interruption)
        # The store's response to a deletion is not reliable, so a new listing shows which files remain.
        try:
            refused = _record_remaining_files(opened, unused_files, limit, found_until)
        except (PySparkException, Py4JJavaError, LakewrightSparkError) as error:
            if not deleted:
                raise
            return replace(metrics, deleted=deleted, interruption=first_line(error))
    # Due candidates that were neither deleted nor refused are referenced again, or no longer exist. If this row is
    # lost, the next run finds that the files no longer exist.
    handled_until = found_until - timedelta(milliseconds=1)
    keep_rows(CANDIDATES, opened, [mark_handled(str(table), opened.uuid, handled_until)])
    return replace(metrics, deleted=deleted - refused, refused=refused)


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether the oldest candidate has waited for the policy's age."""
    if facts.keeps_garbage:
        return DueDecision(is_due=False, reason="gc.enabled=false")
    if history.oldest_candidate is None:
        return DueDecision(is_due=False, reason="no candidates")
    days = (policies.staged_files or StagedFilesPolicy()).older_than_days
    return DueDecision(
        history.oldest_candidate <= now - timedelta(days=days),
        f"the oldest candidate was found {format_time(history.oldest_candidate)}; candidates wait {days} days",
    )


JOB = MaintenanceJob(
    name="staged-files", run=run, is_due=is_due, owns_location=True, deletes_files=True, ops_tables=(CANDIDATES,)
)


def _record_remaining_files(opened: IcebergTable, files: DataFrame, limit: datetime, found_until: datetime) -> int:
    """Make the files that a new listing finds candidates again; return their number."""
    with find_unreferenced_files(opened, limit) as unreferenced:
        remaining = files.join(unreferenced, "file_path", "left_semi").cache()
        try:
            return record_candidates(opened, remaining, found_until)
        finally:
            remaining.unpersist()


def _delete_files(opened: IcebergTable, files: DataFrame) -> tuple[int, str]:
    """Delete the files of column `file_path`, a part of them at a time.

    Returns:
        Their number, and the error that came after a deletion, if any.

    Raises:
        PySparkException, Py4JJavaError: Spark or Iceberg failed before a part was deleted.
    """
    number, parts = 0, -(-files.count() // FILES_AT_ONCE)
    # Spark returns a partition at a time, and a session has few partitions.
    rows = files.repartition(parts) if parts > 1 else files
    addresses = (str(row.file_path) for row in rows.toLocalIterator())
    try:
        while paths := list(islice(addresses, FILES_AT_ONCE)):
            opened.delete_files(paths)
            number += len(paths)
    except (PySparkException, Py4JJavaError) as error:
        if not number:
            raise
        return number, first_line(error)
    return number, ""
