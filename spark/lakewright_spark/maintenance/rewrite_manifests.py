"""`rewrite-manifests`: group the table's manifests by partition, so that a reader opens fewer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from lakewright_spark.catalog_policies import TablePolicies
from lakewright_spark.maintenance.iceberg import IcebergTable
from lakewright_spark.maintenance.job import Metrics
from lakewright_spark.table_identifier import TableIdentifier

FEWEST = 2
"""One manifest cannot be grouped any better."""


@dataclass(frozen=True, kw_only=True)
class RewriteManifestsMetrics(Metrics):
    """Manifests before and after."""

    rewritten: int = 0
    added: int = 0


def run(
    spark: SparkSession, table: TableIdentifier, policy: TablePolicies, *, dry_run: bool, now: datetime
) -> RewriteManifestsMetrics:
    """Rewrite the manifests of the current snapshot; older snapshots keep theirs."""
    del policy, now  # No policy says anything of manifests.
    opened = IcebergTable.open(spark, table)
    manifests = spark.table(opened.metadata("manifests")).count()
    if manifests < FEWEST:
        return RewriteManifestsMetrics(dry_run=dry_run)
    if dry_run:
        return RewriteManifestsMetrics(rewritten=manifests, dry_run=True)
    row = opened.call("rewrite_manifests", use_caching="false").collect()[0]
    return RewriteManifestsMetrics(rewritten=row.rewritten_manifests_count, added=row.added_manifests_count)
