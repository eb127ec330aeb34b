"""Run one maintenance job on one table, after a check of the table's current policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.kinds import NO_CREDENTIALS
from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance.jobs.job import JobMetrics
from lakewright_spark.maintenance.registry import JOBS_BY_NAME
from lakewright_spark.maintenance.switches import reason_to_skip
from lakewright_spark.maintenance.table.facts import format_unreadable
from lakewright_spark.maintenance.table.iceberg import SharedTable, first_line
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.session.own_classes import MAINTENANCE_CATALOG
from lakewright_spark.table_identifier import TableIdentifier

UNSUPPORTED_TYPE = "Cannot convert unsupported type to Spark"
"""Iceberg's message for a table with a column that Spark has no type for, such as times in nanoseconds."""


def _no_reason() -> str | None:
    return None


@dataclass(frozen=True)
class PlannedTable:
    """The table that a run was planned for. The job checks it again before it begins, since it may have waited."""

    uuid: str
    resolve_policies: Callable[[Mapping[str, str]], TablePolicies]
    """Returns the table's policies, given its properties. Raises PolicyRefusedError."""
    reason_to_wait: Callable[[], str | None] = _no_reason
    """Returns why a running execution holds the job back."""


def run_job(
    name: JobName,
    spark: SparkSession,
    table: TableIdentifier,
    policy: TablePolicies,
    *,
    dry_run: bool,
    now: datetime,
    planned: PlannedTable | None = None,
    shared: SharedTable | None = None,
) -> JobMetrics:
    """Run a job on a table.

    Args:
        name: Name of the job.
        spark: Session with the properties of `session_properties`.
        table: The table.
        policy: The table's policies. With `planned`, the table's current policies replace them.
        dry_run: Whether to report what the job would do, and change nothing.
        now: Instant (UTC) that ages are counted from.
        planned: Skips the job if the table was locked or replaced since it was planned.
        shared: Opens the table for several jobs. Default: the job opens it, and commits its rows in `ops` itself.

    Raises:
        JobFailedError: Spark or Iceberg failed. No change is half done.
        NoSuchResultError: The table does not exist.
        PolicyRefusedError: A policy does not suit the table.
    """
    if reason := reason_to_skip(name, policy, now):
        return JobMetrics(state="SKIPPED", reason=reason, dry_run=dry_run)
    opened = (shared or SharedTable(spark, table)).open()
    if planned is not None:
        if opened.uuid != planned.uuid:
            reason = f"the table was replaced: expected UUID {planned.uuid}, found {opened.uuid}"
            return JobMetrics(state="SKIPPED", reason=reason, dry_run=dry_run)
        policy = planned.resolve_policies(opened.to_dict(opened.java.properties()))
        if reason := reason_to_skip(name, policy, now) or planned.reason_to_wait():
            return JobMetrics(state="SKIPPED", reason=reason, dry_run=dry_run)
    try:
        return JOBS_BY_NAME[name].run(opened, policy, dry_run=dry_run, now=now)
    except (PySparkException, Py4JJavaError) as error:
        if JOBS_BY_NAME[name].reads_columns and UNSUPPORTED_TYPE in first_line(error):
            reason = format_unreadable([first_line(error).rpartition(": ")[2]])
            return JobMetrics(state="SKIPPED", reason=reason, dry_run=dry_run)
        raise JobFailedError(f"{name} of table {table} failed: {first_line(error)}") from error


def session_properties(config: CatalogConfig, warehouse: str) -> dict[str, str]:
    """Return the Spark properties of a session for jobs on this warehouse.

    A catalog with soft delete tells clients not to delete files, so that a dropped table can be restored. Jobs drop no
    tables and delete only files that no table refers to.
    """
    # The jobs of a table share a loaded table until `SharedTable.close`. By default, Spark's catalog forgets it 30
    # seconds after its last use by name.
    options = {"s3.delete-enabled": "true", "cache.expiration-interval-ms": "-1"}
    if config.kind in ("lakekeeper", "rest"):
        options["catalog-impl"] = MAINTENANCE_CATALOG
    if config.kind == "lakekeeper":
        options["lakewright.refresh-delegation"] = NO_CREDENTIALS
    return {f"spark.sql.catalog.{warehouse}.{name}": value for name, value in options.items()}
