"""Real data is written, read, maintained, measured and swept; rows and sums remain equal to the source."""

from __future__ import annotations

import os
import re
import resource
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.execution_registry.records import ExecutionRecord, ExecutionStatus
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.policies.model import JOBS
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.pyiceberg_client.usage import TableUsage, measure_usage
from lakewright_spark.result_uris import Execution, Port, ResultUri
from lakewright_spark.results.cleanup import Cleaner
from lakewright_spark.results.frames import ResultFrames
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.scheduler.outcome import MaintenanceOutcome
from lakewright_spark.scheduler.runner import MaintenanceRunner
from lakewright_spark.scheduler.table_discovery import Filters
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from demo import nycflights
from demo.flights import join_flights
from tests.spark.maintenance.conftest import DAY, Maintained, s3

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
PARTS = 6 if FULL else 2
"""Number of commits that create a table."""

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1800 if FULL else 240)]


@dataclass(frozen=True)
class DataSet:
    """A data frame with the time column `ts`, the columns to sum, and the start of its retention."""

    frame: DataFrame
    amounts: tuple[str, ...]
    cut: datetime

    def sums(self, rows: DataFrame) -> dict[str, Any]:
        columns = [f.count("*").alias("rows"), *(f.sum(name).alias(name) for name in self.amounts)]
        return rows.agg(*columns).collect()[0].asDict()

    @property
    def kept(self) -> DataFrame:
        return self.frame.where(f.col("ts") >= f.lit(self.cut))


def flights(spark: SparkSession, folder: Path) -> DataSet:
    """Return 336,776 flights of 2013, each with its airline, plane and weather."""
    files = nycflights.unpack(nycflights.find_installed_files(), folder)
    frame = join_flights(spark, files).withColumnRenamed("time_hour", "ts").cache()
    return DataSet(frame, ("distance", "arr_delay", "air_time"), datetime(2013, 7, 1, tzinfo=UTC))


def readings(spark: SparkSession, folder: Path) -> DataSet:
    """Return 6,000,000 readings of 2025; fixed seeds and partitions make them reproducible."""
    del folder
    frame = spark.range(0, 6_000_000, 1, 8).select(
        "id",
        f.timestamp_seconds(f.lit(1_735_689_600) + f.expr("id * 5")).alias("ts"),
        (f.rand(11) * 1000).cast("int").alias("sensor"),
        (f.randn(12) * 10_000).cast("bigint").alias("reading"),
        f.when(f.rand(13) > 0.01, f.concat(f.lit("batch "), (f.rand(14) * 50).cast("int"))).alias("note"),
    )
    return DataSet(frame, ("id", "sensor", "reading"), datetime(2025, 4, 1, tzinfo=UTC))


MILLIONS = pytest.param(readings, marks=pytest.mark.skipif(not FULL, reason="minutes: test-all"))


@pytest.mark.parametrize("source", [flights, MILLIONS])
def test_rows_and_sums_match_the_source_at_every_step(
    create_table: Callable[..., Maintained],
    spark: SparkSession,
    tenant: CatalogConfig,
    tmp_path: Path,
    source: Callable[[SparkSession, Path], DataSet],
) -> None:
    began, data = time.monotonic(), source(spark, tmp_path)
    expected = data.sums(data.frame)
    config = tenant.select_warehouses(["results"])
    registry = ExecutionRegistry("real", f"sqlite:///{tmp_path}/executions.db")
    cleaner, workflow = Cleaner(config, registry), uuid.uuid4().int % 10**9

    _execution(cleaner, spark, workflow, 1, spark.range(1000))
    second, uri = _execution(cleaner, spark, workflow, 2, data.frame)
    replaced = cleaner.replace_previous(second, stale_before=datetime.now(UTC) - timedelta(hours=1))
    assert [record.execution for record in replaced.executions] == [1]
    _read_back(ResultReader(config), uri, expected)

    table = create_table(source.__name__, f"({_columns(data.frame)}) USING iceberg PARTITIONED BY (months(ts))")
    result = ResultFrames(spark, config, "results").read(uri)
    for part in range(PARTS):
        result.where(f"pmod(hash(ts), {PARTS}) = {part}").writeTo(table.sql).append()
    assert data.sums(spark.table(table.sql)) == expected
    _check_maintenance(table, config, data, expected)

    registry.finish(workflow, 2, ExecutionStatus.COMPLETED, now=datetime.now(UTC) - 2 * DAY)
    assert [record.execution for record in cleaner.sweep(datetime.now(UTC) - DAY).executions] == [2]
    assert [(record.execution, record.tables) for record in registry.all()] == [(1, ())], "replaced, not a day ago"
    assert not [uri for uri in cleaner.find_orphans().tables if uri.execution.workflow == workflow]
    registry.close()
    print(f"{source.__name__}: {expected['rows']:,} rows, {time.monotonic() - began:.0f} s, {_memory(spark)}")


def _execution(
    cleaner: Cleaner, spark: SparkSession, workflow: int, number: int, frame: DataFrame
) -> tuple[ExecutionRecord, ResultUri]:
    record = cleaner.registry.begin(workflow, number, computing_unit="cu", warehouse="results")
    uri = Execution(workflow, number, "results").result(Port("Source-1"))
    ResultFrames(spark, cleaner.config, "results").write(uri, frame)
    cleaner.registry.record_tables(workflow, number, cleaner.list_written_tables(record))
    cleaner.registry.finish(workflow, number, ExecutionStatus.COMPLETED)
    return record, uri


def _read_back(reader: ResultReader, uri: ResultUri, expected: dict[str, Any]) -> None:
    """Read all rows, a page and the rows after a cursor, without a JVM."""
    assert reader.count(uri) == expected["rows"]
    names = [name for name in expected if name != "rows"]
    added = reader.read_all(uri).select(names).group_by([]).aggregate([(name, "sum") for name in names])
    assert {name: added[f"{name}_sum"][0].as_py() for name in names} == {name: expected[name] for name in names}
    page = reader.range(uri, expected["rows"] // 2, 100)
    assert page.num_rows == 100
    assert reader.range(uri, expected["rows"] // 2 + 50, 50).equals(page.slice(50))
    first = reader.read_after(uri, limit=expected["rows"] - 10)
    assert reader.read_after(uri, first.cursor).rows.num_rows == 10


def _check_maintenance(table: Maintained, config: CatalogConfig, data: DataSet, expected: dict[str, Any]) -> None:
    remaining_sums = data.sums(data.kept)
    assert 0 < remaining_sums["rows"] < expected["rows"]
    months = (table.now.year - data.cut.year) * 12 + table.now.month - data.cut.month
    policies = PolicyTables(config, "results")
    policies.set(table.table, "retention", f'{{"keep": {months}, "unit": "month", "column": "ts"}}')
    for name in ("orphan-files", "staged-files"):
        policies.set(table.table, name, '{"older_than_days": 1}')
    policies.set(table.table, "compaction", '{"strategy": "sort", "columns": ["ts"], "min_input_files": 2}')
    lost = table.create_lost_file("lost.parquet")
    before = _usage(table, config)
    assert (before.size.bytes_live, before.size.bytes_reclaimable) == (_count_stored_bytes(table) - len(b"lost"), 0)

    def maintain(*, dry_run: bool = False) -> MaintenanceOutcome:
        filters = Filters(re.compile("maintained"), re.compile(table.table.name))
        outcome = MaintenanceRunner(
            config, filters, dry_run=dry_run, session=table.spark, clock=lambda: table.now
        ).run()
        assert outcome.error() is None
        return outcome

    def effect(outcome: MaintenanceOutcome, job: str, number: str) -> int:
        return next(run.metrics[number] for run in outcome.runs.values() if run.job == job)

    if FULL:  # takes half of the time
        assert effect(maintain(dry_run=True), "retention", "rows") == expected["rows"] - remaining_sums["rows"]
        assert data.sums(table.spark.table(table.sql)) == expected
    first = maintain()
    assert effect(first, "retention", "rows") == expected["rows"] - remaining_sums["rows"]
    done = {run.job for run in first.runs.values()}
    assert done == {*JOBS} - {"staged-files", "refs", "engine-statistics"}, "the other jobs need a policy"
    table.spark.catalog.refreshTable(table.sql)
    assert data.sums(table.spark.table(table.sql)) == remaining_sums
    partitions = table.column("SELECT count(*) FROM THIS.partitions")
    assert table.column("SELECT count(*) FROM THIS.files") == partitions, "one file a month"
    between = _usage(table, config)
    assert (between.size.bytes_live, between.growth and between.growth.bytes) == (between.size.bytes_current, 0)
    assert between.size.bytes_reclaimable > 0, "files that compaction replaced"
    if not FULL:
        return
    table.now += 2 * DAY
    assert effect(maintain(), "staged-files", "deleted") >= 1
    table.spark.catalog.refreshTable(table.sql)
    assert data.sums(table.spark.table(table.sql)) == remaining_sums
    assert lost not in table.objects()
    after = _usage(table, config)
    assert (after.size.bytes_live, after.size.bytes_reclaimable) == (_count_stored_bytes(table), 0), "only live files"


def _usage(table: Maintained, config: CatalogConfig) -> TableUsage:
    (warehouse,) = measure_usage(config, table.now).warehouses
    return next(table_usage for table_usage in warehouse.tables if table_usage.table == table.table)


def _count_stored_bytes(table: Maintained) -> int:
    """Return the bytes of data files under the table's location, as S3 lists them."""
    bucket, prefix = table.bucket_and_prefix
    pages = s3(table.sandbox).get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}data/")
    return sum(item["Size"] for page in pages for item in page.get("Contents", []))


def _columns(frame: DataFrame) -> str:
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in frame.schema)


def _memory(spark: SparkSession) -> str:
    """Return the peak memory of each process."""
    jvm = spark._jvm.java.lang.ProcessHandle.current().toString()  # pyright: ignore
    peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{jvm}/status").read_text())
    python = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return f"JVM {int(peak[1]) // 1024 if peak else '?'} MiB, Python {python} MiB"
