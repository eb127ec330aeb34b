"""Every job by its name, run on one table after the switches, locks and markers of its policies have had their say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewright_spark.catalog_policies import Job, TablePolicies
from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance import (
    compaction,
    orphan_files,
    retention,
    rewrite_manifests,
    snapshot_expiration,
    staged_files,
    statistics,
)
from lakewright_spark.maintenance.iceberg import first_line
from lakewright_spark.maintenance.job import JobRun, Metrics, reason_to_skip
from lakewright_spark.table_identifier import TableIdentifier

RUNS: Mapping[Job, JobRun] = {
    "retention": retention.run,
    "snapshot-expiration": snapshot_expiration.run,
    "orphan-files": orphan_files.run,
    "staged-files": staged_files.run,
    "compaction": compaction.run,
    "rewrite-manifests": rewrite_manifests.run,
    "statistics": statistics.run,
}


def run(
    job: Job, spark: SparkSession, table: TableIdentifier, policy: TablePolicies, *, dry_run: bool, now: datetime
) -> Metrics:
    """Run a job on a table. Raises JobFailedError, NoSuchResultError, PolicyRefusedError; nothing is half done then."""
    if reason := reason_to_skip(job, policy, now):
        return Metrics(state="SKIPPED", reason=reason, dry_run=dry_run)
    try:
        return RUNS[job](spark, table, policy, dry_run=dry_run, now=now)
    except (PySparkException, Py4JJavaError) as error:
        raise JobFailedError(f"{job} of table {table} did not finish: {first_line(error)}") from error


def session_properties(warehouse: str) -> dict[str, str]:
    """Properties of a session for jobs on this warehouse.

    A catalog with soft delete tells clients not to delete files, so that a table that was dropped can be brought back.
    Jobs drop no tables: what they delete, no table has.
    """
    return {f"spark.sql.catalog.{warehouse}.s3.delete-enabled": "true"}
