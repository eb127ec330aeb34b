"""`staged-files`: delete candidates of an earlier run that are still unreferenced after their time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance.switches import Metrics
from lakewright_spark.maintenance.table.candidates import CANDIDATES, age_limit, recorded, unreferenced
from lakewright_spark.maintenance.table.iceberg import IcebergTable, instant
from lakewright_spark.policies.model import StagedFilesPolicy, TablePolicies
from lakewright_spark.table_identifier import literal


@dataclass(frozen=True, kw_only=True)
class StagedFilesMetrics(Metrics):
    """Files deleted, and candidates that stay."""

    deleted: int = 0
    waiting: int = 0
    """Candidates whose time has not come."""
    refused: int = 0
    """Files that the store did not delete: they stay candidates for the next run."""

    @property
    def failure(self) -> str | None:
        if not self.refused:
            return None
        return (
            f"the store refused to delete {self.refused} of {self.refused + self.deleted} files: they stay candidates "
            "for the next run; expected the right to delete objects (s3:DeleteObject) under the table's location"
        )


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> StagedFilesMetrics:
    """Delete candidates that were first seen before the policy's age, and that a new listing still finds unreferenced.

    JobFailedError if the session's storage may not be deleted from, as where a catalog with soft delete says so.
    """
    if opened.keeps_garbage:
        return StagedFilesMetrics(state="SKIPPED", reason="the table has gc.enabled=false", dry_run=dry_run)
    spark, table = opened.spark, opened.table
    ttl = timedelta(days=(policy.staged_files or StagedFilesPolicy()).older_than_days)
    known = recorded(opened).cache()
    doomed: DataFrame | None = None
    view = f"doomed_{uuid4().hex}"
    try:
        total = known.count()
        due = known.where(f.col("first_seen") <= f.expr(instant(now - ttl)))
        waiting = total - due.count()
        if waiting == total:
            return StagedFilesMetrics(waiting=total, dry_run=dry_run)
        limit = age_limit(policy, now)
        doomed = due.join(unreferenced(opened, limit), "file_path", "left_semi").cache()
        count = doomed.count()
        if dry_run:
            return StagedFilesMetrics(deleted=count, waiting=waiting, dry_run=True)
        if not opened.deletes_files:
            raise JobFailedError(
                f"table {table}: {count} files are due, and the catalog tells clients not to delete (soft delete): "
                f"set s3.delete-enabled=true for this job's catalog, as `lakewright-spark job` does"
            )
        # The listing has seen how old they are; Iceberg looks once more for whoever refers to them.
        again = IcebergTable.open(spark, table)
        if again.uuid != opened.uuid:
            raise JobFailedError(f"table {table}: another table has this name by now; no file was deleted")
        old = f.expr(instant(limit - timedelta(seconds=1)))
        doomed.select("file_path", old.alias("last_modified")).createOrReplaceTempView(view)
        still = again.call(
            "remove_orphan_files", older_than=instant(limit), file_list_view=literal(view), dry_run="true"
        )
        paths = [row.orphan_file_location for row in still.collect()]
        again.delete_files(paths)
        refused = _left(again, paths, limit)
        if not refused and opened.buffer is not None:
            # Where this is lost, the next run finds that the files are gone.
            opened.buffer.forget_candidates(table.warehouse, again.uuid, now - ttl)
            return StagedFilesMetrics(deleted=len(paths), waiting=waiting)
        # Those that are due, were not deleted and were not refused are referenced again, or gone.
        spark.createDataFrame([(path,) for path in refused], "file_path string").createOrReplaceTempView(view)
        spark.sql(
            f"DELETE FROM {CANDIDATES.make(spark, table.warehouse)} "  # noqa: S608
            f"WHERE table_uuid = {literal(again.uuid)} AND first_seen <= {instant(now - ttl)}"
            + (f" AND file_path NOT IN (SELECT file_path FROM {view})" if refused else "")  # noqa: S608
        )
        return StagedFilesMetrics(deleted=len(paths) - len(refused), waiting=waiting, refused=len(refused))
    finally:
        spark.catalog.dropTempView(view)
        known.unpersist()
        if doomed is not None:
            doomed.unpersist()


def _left(opened: IcebergTable, paths: Sequence[str], limit: datetime) -> list[str]:
    """The files of these that are still there: what a store answers to a deletion does not say it for certain."""
    if not paths:
        return []
    known = opened.spark.createDataFrame([(path,) for path in paths], "file_path string")
    return [row.file_path for row in known.join(unreferenced(opened, limit), "file_path", "left_semi").collect()]
