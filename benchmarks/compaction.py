"""Compaction of one partition: the job against Iceberg's bare procedure, in turn in one session."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median

from lakewright_spark.maintenance.job_runner import run_job
from lakewright_spark.policies.model import CompactionPolicy, TablePolicies
from lakewright_spark.table_identifier import TableIdentifier
from pyspark.sql import SparkSession

from benchmarks.ground import Ground
from benchmarks.maintenance import open_session
from benchmarks.measure import Row, measure_seconds

REPEATS = int(os.environ.get("LAKEWRIGHT_BENCH_REPEATS", "9"))
FILES = 40
ROWS = 4_000_000
"""Rows of the partition with a target: 160 MB, a third of a file of the usual size."""
FEW_ROWS = 400_000
"""Rows of a small partition, of whose time the steps around the rewriting are a larger share."""
TARGET = 1.05
POLICY = TablePolicies(compaction=CompactionPolicy(min_input_files=2))


def measure(ground: Ground) -> list[Row]:
    config = ground.catalog.select_warehouses([ground.catalog.warehouses[0].name])
    warehouse = config.warehouses[0].name
    with open_session(config) as spark:
        spark.sql(f"CREATE NAMESPACE `{warehouse}`.compacted")
        return [
            _measure_partition(spark, warehouse, "compaction of a small partition", FEW_ROWS, target=None),
            _measure_partition(spark, warehouse, "compaction of a partition", ROWS, TARGET),
        ]


def _measure_partition(spark: SparkSession, warehouse: str, name: str, rows: int, target: float | None) -> Row:
    """Measure job and procedure, each run on a new partition with these rows."""
    ours: list[float] = []
    bare: list[float] = []
    size = 0
    for number in range(REPEATS + 1):
        job = _create_partition(spark, TableIdentifier(warehouse, ("compacted",), f"ours{rows}_{number}"), rows)
        procedure = _create_partition(spark, TableIdentifier(warehouse, ("compacted",), f"bare{rows}_{number}"), rows)
        ((size,),) = spark.sql(f"SELECT sum(file_size_in_bytes) FROM {job.sql}.files").collect()
        pair: list[tuple[list[float], Callable[[], None]]] = [
            (ours, lambda table=job: _run_job(spark, table)),
            (bare, lambda table=procedure: _call_procedure(spark, table)),
        ]
        # Each is first in every other round, so that the machine's load changes for both.
        for seconds, action in pair if number % 2 else reversed(pair):
            seconds.append(measure_seconds(action))
        for table in (job, procedure):
            spark.sql(f"DROP TABLE {table.sql} PURGE")
    # The first round warms up the JVM.
    return Row(
        name,
        median(ours[1:]),
        median(bare[1:]),
        target,
        note=f"{FILES} files, {size / 1e6:.0f} MB, {rows:,} rows; median of {REPEATS} runs in turn; "
        "reference: rewrite_data_files",
    )


def _create_partition(spark: SparkSession, table: TableIdentifier, rows: int) -> TableIdentifier:
    """Create a table whose only partition has many small files."""
    spark.sql(f"CREATE TABLE {table.sql} (id bigint, text string, part int) USING iceberg PARTITIONED BY (part)")
    spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('write.distribution-mode' = 'none')")
    columns = "id, sha2(cast(id AS string), 256) AS text, 1 AS part"
    spark.sql(f"INSERT INTO {table.sql} SELECT {columns} FROM range(0, {rows}, 1, {FILES})")
    return table


def _run_job(spark: SparkSession, table: TableIdentifier) -> None:
    result = run_job("compaction", spark, table, POLICY, dry_run=False, now=datetime.now(UTC))
    if getattr(result, "rewritten", 0) != FILES:
        raise SystemExit(f"expected {FILES} rewritten files, found {result}")


def _call_procedure(spark: SparkSession, table: TableIdentifier) -> None:
    call = f"CALL `{table.warehouse}`.system.rewrite_data_files(table => {table.argument}"
    (row,) = spark.sql(f"{call}, options => map('min-input-files', '2'))").collect()
    if row.rewritten_data_files_count != FILES:
        raise SystemExit(f"expected {FILES} rewritten files, found {row}")
