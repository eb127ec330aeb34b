"""`staged-files`: delete candidates of an earlier run that are still unreferenced after their time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lakewright_spark.catalog_policies import StagedFilesPolicy, TablePolicies
from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance.candidates import CANDIDATES, age_limit, recorded, unreferenced
from lakewright_spark.maintenance.iceberg import IcebergTable, instant
from lakewright_spark.maintenance.job import Metrics
from lakewright_spark.table_identifier import literal


@dataclass(frozen=True, kw_only=True)
class StagedFilesMetrics(Metrics):
    """Files deleted, and candidates that wait."""

    deleted: int = 0
    waiting: int = 0


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
        opened = IcebergTable.open(spark, table)
        old = f.expr(instant(limit - timedelta(seconds=1)))
        doomed.select("file_path", old.alias("last_modified")).createOrReplaceTempView(view)
        opened.call("remove_orphan_files", older_than=instant(limit), file_list_view=literal(view)).collect()
        # Those that are due and were not deleted are referenced again, or gone.
        spark.sql(
            f"DELETE FROM {CANDIDATES.make(spark, table.warehouse)} "  # noqa: S608
            f"WHERE table_uuid = {literal(opened.uuid)} AND first_seen <= {instant(now - ttl)}"
        )
        return StagedFilesMetrics(deleted=count, waiting=waiting)
    finally:
        spark.catalog.dropTempView(view)
        known.unpersist()
        if doomed is not None:
            doomed.unpersist()
