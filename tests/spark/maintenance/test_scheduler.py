"""The scheduler on real tables: what is due is done, in order, by one runner, and every run is on record."""

from __future__ import annotations

import dataclasses
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog_policies import JOBS
from lakewright_spark.pyiceberg_catalog import open_catalog
from lakewright_spark.scheduler import job_runs
from lakewright_spark.scheduler.application import Maintenance
from lakewright_spark.scheduler.filters import Filters
from lakewright_spark.scheduler.records import RunRecord, RunState
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclasses.dataclass
class Place:
    """Namespaces of one test, and the scheduler on them."""

    config: CatalogConfig
    spark: SparkSession
    name: str

    def table(self, name: str, files: int = 6, rest: str = "") -> str:
        sql = f"results.{self.name}.{name}"
        self.spark.sql(f"CREATE TABLE {sql} (n int) USING iceberg {rest}")
        for number in range(files):
            self.spark.sql(f"INSERT INTO {sql} VALUES ({number})")
        return sql

    def maintenance(self, **more: Any) -> Maintenance:
        wanted = Filters(re.compile(rf"{self.name}(\..*)?"), more.pop("table", None), more.pop("jobs", JOBS))
        return Maintenance(self.config, wanted, session=self.spark, **more)

    def recorded(self) -> list[RunRecord]:
        runs = job_runs.runs(open_catalog(self.config, "results"), "results")
        return [run for run in runs if run.table.namespace[0] == self.name]


@pytest.fixture
def place(tenant: CatalogConfig, spark: SparkSession) -> Iterator[Place]:
    name = f"sched_{uuid.uuid4().hex[:8]}"
    for namespace in (name, f"{name}.deep"):
        spark.sql(f"CREATE NAMESPACE results.{namespace}")
    yield Place(tenant.for_warehouses(["results"]), spark, name)
    for namespace in (f"{name}.deep", name):
        for row in spark.sql(f"SHOW TABLES IN results.{namespace}").collect():
            spark.sql(f"DROP TABLE results.{namespace}.{row.tableName}")
        spark.sql(f"DROP NAMESPACE results.{namespace}")


def test_what_is_due_is_done_once_and_recorded(place: Place) -> None:
    place.table("small")
    place.table("deep.inner", files=1)
    seen: list[RunRecord] = []
    dry = place.maintenance(dry_run=True).run()
    assert dry.error() is None
    assert {run.state for run in dry.runs.values()} == {RunState.SUCCEEDED}
    assert place.recorded() == [], "a dry run leaves nothing"
    outcome = place.maintenance(observers=[seen.append]).run()
    assert outcome.error() is None
    done = {(run.table.name, run.job) for run in outcome.in_state(RunState.SUCCEEDED)}
    always = {"orphan-files", "rewrite-manifests", "statistics"}
    assert done == {("small", job) for job in {*always, "compaction"}} | {("inner", job) for job in always}
    assert {run.id: run.state for run in place.recorded()} == {run.id: run.state for run in outcome.runs.values()}
    for name in ("small", "inner"):
        began = [run.job for run in seen if run.table.name == name and run.state is RunState.RUNNING]
        assert began == sorted(began, key=JOBS.index), "each table's jobs in their order"
    compacted = next(run for run in place.recorded() if run.job == "compaction")
    assert (compacted.metrics["rewritten"], compacted.metrics["added"]) == (6, 1)
    again = place.maintenance(clock=lambda: datetime.now(UTC) + timedelta(minutes=1)).run()
    assert again.runs == {}, "and nothing of it is due again"
