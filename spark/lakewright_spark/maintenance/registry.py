"""Every job by its name, run on one table after the switches, locks and markers of its policies have had their say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance.jobs import (
    compaction,
    orphan_files,
    retention,
    rewrite_manifests,
    snapshot_expiration,
    staged_files,
    statistics,
)
from lakewright_spark.maintenance.switches import JobRun, Metrics, reason_to_skip
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line
from lakewright_spark.maintenance.table.ops_tables import RowBuffer
from lakewright_spark.policies.model import Job, TablePolicies
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


@dataclass(frozen=True)
class Planned:
    """The table that a run was planned for. The job looks at it again before it begins, since it may have waited."""

    uuid: str
    policies_of: Callable[[Mapping[str, str]], TablePolicies]
    """The policies of the table, given its properties. Raises PolicyRefusedError."""
    reason_to_wait: Callable[[], str | None] = lambda: None
    """Why an execution that still runs keeps the job away."""


def run(
    job: Job,
    spark: SparkSession,
    table: TableIdentifier,
    policy: TablePolicies,
    *,
    dry_run: bool,
    now: datetime,
    planned: Planned | None = None,
    buffer: RowBuffer | None = None,
) -> Metrics:
    """Run a job on a table.

    With `planned`, the policies that the table has by now hold in place of `policy`, and the job is skipped if the
    table has been locked since, or if another table has its name. What the job keeps in `ops` goes to `buffer`.

    Raises:
        JobFailedError, NoSuchResultError, PolicyRefusedError: Nothing is half done then.
    """
    if reason := reason_to_skip(job, policy, now):
        return Metrics(state="SKIPPED", reason=reason, dry_run=dry_run)
    opened = IcebergTable.open(spark, table, buffer)
    if planned is not None:
        if opened.uuid != planned.uuid:
            reason = f"another table has this name by now: expected UUID {planned.uuid}, found {opened.uuid}"
            return Metrics(state="SKIPPED", reason=reason, dry_run=dry_run)
        policy = planned.policies_of(dict(opened.java.properties()))
        if reason := reason_to_skip(job, policy, now) or planned.reason_to_wait():
            return Metrics(state="SKIPPED", reason=reason, dry_run=dry_run)
    try:
        return RUNS[job](opened, policy, dry_run=dry_run, now=now)
    except (PySparkException, Py4JJavaError) as error:
        raise JobFailedError(f"{job} of table {table} did not finish: {first_line(error)}") from error


def session_properties(warehouse: str) -> dict[str, str]:
    """Properties of a session for jobs on this warehouse.

    A catalog with soft delete tells clients not to delete files, so that a table that was dropped can be brought back.
    Jobs drop no tables: what they delete, no table has.
    """
    return {f"spark.sql.catalog.{warehouse}.s3.delete-enabled": "true"}
