"""A namespace for one test of the scheduler, and a job that never ends."""

from __future__ import annotations

import dataclasses
import re
from datetime import datetime
from typing import Any

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.maintenance.jobs.job import JobMetrics
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.policies.model import JOBS, TablePolicies
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.records import RunRecord
from lakewright_spark.scheduler.runner import MaintenanceRunner
from lakewright_spark.scheduler.table_discovery import Filters
from pyspark.sql import SparkSession


@dataclasses.dataclass
class ScheduledNamespace:
    """Namespaces of one test, and the scheduler on them."""

    config: CatalogConfig
    spark: SparkSession
    name: str
    warehouse: str = "results"

    def table(self, name: str, files: int = 6, clauses: str = "") -> str:
        """Create a table with this number of files, one row each; return its SQL name."""
        sql = f"{self.warehouse}.{self.name}.{name}"
        self.spark.sql(f"CREATE TABLE {sql} (n int) USING iceberg {clauses}")
        for number in range(files):
            self.spark.sql(f"INSERT INTO {sql} VALUES ({number})")
        return sql

    def maintenance(self, **more: Any) -> MaintenanceRunner:
        filters = Filters(re.compile(rf"{self.name}(\..*)?"), more.pop("table", None), more.pop("jobs", JOBS))
        return MaintenanceRunner(self.config, filters, session=self.spark, **more)

    def list_recorded_runs(self) -> list[RunRecord]:
        runs = job_runs.list_runs(open_catalog(self.config, self.warehouse), self.warehouse)
        return [run for run in runs if run.table.namespace[0] == self.name]


def endless(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> JobMetrics:
    """Run Spark jobs of about a minute each, forever."""
    del policy, now
    while True:
        opened.spark.range(20_000_000_000).selectExpr("sum(id * 3 % 7)").collect()
    return JobMetrics(dry_run=dry_run)
