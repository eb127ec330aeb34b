"""Job `orphan-files`: find files that no snapshot refers to, and record them as candidates. It deletes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import functions as f

from lakewright_spark.maintenance.jobs.job import WEEKLY, DueDecision, History, JobMetrics, MaintenanceJob, due_after
from lakewright_spark.maintenance.table.candidates import (
    CANDIDATES,
    age_limit,
    find_unreferenced_files,
    has_no_unreferenced_files,
    read_candidates,
)
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable, instant_sql
from lakewright_spark.maintenance.table.ops_tables import ensure_ops_table, keep_rows
from lakewright_spark.policies.model import TablePolicies

MAX_ROWS_IN_MEMORY = 1000
"""New candidates of a table that pass through this process. Spark writes larger numbers itself."""


@dataclass(frozen=True, kw_only=True)
class OrphanFilesMetrics(JobMetrics):
    """Current candidates, and how many of them this run found."""

    candidates: int = 0
    new: int = 0


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> OrphanFilesMetrics:
    """Record unreferenced files older than the policy's age, which is at least a day, or three for replicas."""
    if opened.keeps_garbage:
        return OrphanFilesMetrics(state="SKIPPED", reason="the table has gc.enabled=false", dry_run=dry_run)
    limit = age_limit(policy, now)
    if has_no_unreferenced_files(opened, limit):
        return OrphanFilesMetrics(dry_run=dry_run)
    unreferenced = find_unreferenced_files(opened, limit).cache()
    try:
        candidates = unreferenced.count()
        if dry_run:
            return OrphanFilesMetrics(candidates=candidates, new=candidates, dry_run=True)
        if not candidates:
            return OrphanFilesMetrics()
        fresh = unreferenced.join(read_candidates(opened), "file_path", "left_anti").cache()
        try:
            if (new := fresh.count()) and new <= MAX_ROWS_IN_MEMORY:
                table = {"table_name": str(opened.table), "table_uuid": opened.uuid, "first_seen": now}
                keep_rows(CANDIDATES, opened, [table | row.asDict() for row in fresh.select("file_path").collect()])
            elif new:
                fresh.select(
                    f.lit(str(opened.table)).alias("table_name"),
                    f.lit(opened.uuid).alias("table_uuid"),
                    "file_path",
                    f.expr(instant_sql(now)).alias("first_seen"),
                ).coalesce(1).writeTo(ensure_ops_table(CANDIDATES, opened.spark, opened.table.warehouse)).append()
        finally:
            fresh.unpersist()
        return OrphanFilesMetrics(candidates=candidates, new=new)
    finally:
        unreferenced.unpersist()


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether the last run is long enough ago."""
    if facts.keeps_garbage:
        return DueDecision(is_due=False, reason="gc.enabled=false")
    return due_after(WEEKLY, "orphan-files", policies, history, now)


JOB = MaintenanceJob(
    name="orphan-files",
    run=run,
    is_due=is_due,
    read_only=True,
    owns_location=True,
    needs_listing=True,
    deletes_files=True,
    ops_tables=(CANDIDATES,),
    every=WEEKLY,
)
