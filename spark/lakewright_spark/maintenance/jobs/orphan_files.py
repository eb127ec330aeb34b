"""`orphan-files`: find files that no snapshot refers to, and record them as candidates. It deletes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import functions as f

from lakewright_spark.maintenance.switches import Metrics
from lakewright_spark.maintenance.table.candidates import (
    CANDIDATES,
    age_limit,
    none_unreferenced,
    recorded,
    unreferenced,
)
from lakewright_spark.maintenance.table.iceberg import IcebergTable, instant
from lakewright_spark.policies.model import TablePolicies

MOST_KEPT = 1000
"""Files of a table that are kept in memory; Spark writes more of them itself."""


@dataclass(frozen=True, kw_only=True)
class OrphanFilesMetrics(Metrics):
    """Candidates now, and how many of them this run found."""

    candidates: int = 0
    new: int = 0


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> OrphanFilesMetrics:
    """Record what is unreferenced and older than the policy's age; the floor is a day, of a replica three."""
    if opened.keeps_garbage:
        return OrphanFilesMetrics(state="SKIPPED", reason="the table has gc.enabled=false", dry_run=dry_run)
    limit = age_limit(policy, now)
    if none_unreferenced(opened, limit):
        return OrphanFilesMetrics(dry_run=dry_run)
    found = unreferenced(opened, limit).cache()
    try:
        candidates = found.count()
        if dry_run:
            return OrphanFilesMetrics(candidates=candidates, new=candidates, dry_run=True)
        if not candidates:
            return OrphanFilesMetrics()
        fresh = found.join(recorded(opened), "file_path", "left_anti").cache()
        try:
            if (new := fresh.count()) and new <= MOST_KEPT:
                of = {"table_name": str(opened.table), "table_uuid": opened.uuid, "first_seen": now}
                CANDIDATES.keep(opened, [of | row.asDict() for row in fresh.select("file_path").collect()])
            elif new:
                fresh.select(
                    f.lit(str(opened.table)).alias("table_name"),
                    f.lit(opened.uuid).alias("table_uuid"),
                    "file_path",
                    f.expr(instant(now)).alias("first_seen"),
                ).coalesce(1).writeTo(CANDIDATES.make(opened.spark, opened.table.warehouse)).append()
        finally:
            fresh.unpersist()
        return OrphanFilesMetrics(candidates=candidates, new=new)
    finally:
        found.unpersist()
