"""Maintenance of a table with the metadata of many files, in its own process with a bounded heap.

Arguments: configuration, commits, files of a commit, listed paths. It prints a line of JSON for each step, with its
seconds and the largest memory of this process until then in MiB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.maintenance import job_runner
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.pyiceberg_client.usage import measure_usage
from lakewright_spark.scheduler.runner import MaintenanceRunner
from lakewright_spark.session import jars, own_jar
from lakewright_spark.session.builder import Workload, spark_session
from lakewright_spark.table_identifier import TableIdentifier
from pyspark.sql import SparkSession

PARTITIONS = 50
ORPHANS = 1000
SOURCE = Path(__file__).parent / "java" / "GeneratedFiles.java"


def main(config: CatalogConfig, commits: int, files: int, listed_paths: int) -> None:
    warehouse = config.warehouses[0].name
    table = TableIdentifier(warehouse, ("large",), "t")
    spark = spark_session(
        config,
        "large table",
        workload=Workload.MAINTENANCE,
        properties={"spark.driver.memory": "2g", **job_runner.session_properties(config, warehouse)},
    )
    session: Any = spark
    session._jsparkSession.sessionState().conf().setConfString("spark.testing", "true")
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {warehouse}.large")
    spark.sql(f"CREATE TABLE {table.sql} (part string, text string) USING iceberg PARTITIONED BY (part)")
    report("generate", lambda: generate(spark, table, commits, files))
    location = IcebergTable.open(spark, table).location
    # Each file is listed many times, so that the comparison has this number of rows.
    day = f"string(date_add(DATE '2020-01-01', int(floor(floor(id / {files}) * {PARTITIONS} / {commits}))))"
    spark.sql(
        f"SELECT format_string('%s/data/part=%s/%05d-%05d-0a1b2c3d4e5f.parquet', '{location}', {day}, "
        f"id % {files}, floor(id / {files})) AS file_path, TIMESTAMP '2020-01-01' AS last_modified "
        f"FROM (SELECT id % {commits * files + ORPHANS} AS id FROM range({listed_paths}))"
    ).createOrReplaceTempView("listing")
    policy = TablePolicies.model_validate(
        {
            "history": {"versions": 2},
            "orphan_files": {"listing": "listing"},
            "retention": {"keep": 1, "column": "part", "pattern": ""},
        }
    )
    now = datetime.now(UTC) + timedelta(days=30)

    def run(job: Any, at: datetime = now, *, dry_run: bool = False) -> Any:
        return asdict(job_runner.run_job(job, spark, table, policy, dry_run=dry_run, now=at))

    report("plan", lambda: len(MaintenanceRunner(config, clock=lambda: now).decide().plans))
    report("statistics", lambda: run("statistics"))
    report("usage", lambda: measure_files(config, table))
    report("orphan-files", lambda: run("orphan-files"))
    report("staged-files", lambda: run("staged-files", now + timedelta(days=10)))
    report("snapshot-expiration", lambda: run("snapshot-expiration"))
    report("usage again", lambda: measure_files(config, table))
    report("compaction", lambda: run("compaction", dry_run=True))
    report("rewrite-manifests", lambda: run("rewrite-manifests"))
    report("retention", lambda: run("retention"))
    spark.stop()


def measure_files(config: CatalogConfig, table: TableIdentifier) -> int:
    """Return the number of the table's current files. Its manifests are read if it changed since `statistics` ran."""
    (usage,) = measure_usage(config, datetime.now(UTC)).warehouses
    return next(one.size.files for one in usage.tables if one.table == table)


def generate(
    spark: SparkSession, table: TableIdentifier, commits: int, files: int, partitions: int = PARTITIONS
) -> int:
    """Commit files that do not exist."""
    session: Any = spark
    jvm, gateway = session._jvm, session.sparkContext._gateway
    with tempfile.TemporaryDirectory() as folder:
        classpath = ":".join(map(str, jars.fetch()))
        compiler = str(jars.fetch([own_jar.COMPILER])[0])
        command = ["java", "-jar", compiler, "-source", "17", "-target", "17", "-d", folder, "-classpath", classpath]
        subprocess.run([*command, str(SOURCE)], check=True, capture_output=True)
        urls = gateway.new_array(jvm.java.net.URL, 1)
        urls[0] = jvm.java.io.File(folder).toURI().toURL()
        loader = jvm.java.net.URLClassLoader(urls, session._jsparkSession.sharedState().jarClassLoader())
        constructor = loader.loadClass("GeneratedFiles").getConstructor(gateway.new_array(jvm.java.lang.Class, 0))
        numbers = gateway.new_array(gateway.jvm.int, 3)
        numbers[0], numbers[1], numbers[2] = commits, files, partitions
        generated = constructor.newInstance(gateway.new_array(jvm.java.lang.Object, 0))
        generated.accept(IcebergTable.open(spark, table).java, numbers)
    return commits * files


def report(step: str, work: Callable[[], Any]) -> None:
    began = time.monotonic()
    result = work()
    seconds = round(time.monotonic() - began, 1)
    line = {"step": step, "seconds": seconds, "python_mib": read_peak_mib(), "result": result}
    print(json.dumps(line, default=str), flush=True)


def read_peak_mib() -> int:
    """Return the largest memory of this process. `ru_maxrss` includes the memory of the process that started it."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024


if __name__ == "__main__":
    main(CatalogConfig.load(Path(sys.argv[1])), *map(int, sys.argv[2:5]))
