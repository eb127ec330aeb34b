"""Listing of a table's location by one executor and by four, on a store whose pages take as long as on S3."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import boto3
import httpx
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.maintenance import job_runner
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.maintenance.table.location_listing import list_location
from lakewright_spark.session import jars
from lakewright_spark.session.builder import SMALL_JOB, SMALL_JVM, spark_properties
from lakewright_spark.session.own_classes import load_own_jar, replace_catalog_types
from lakewright_spark.table_identifier import TableIdentifier
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from benchmarks.ground import Ground
from benchmarks.measure import Row, measure_seconds
from benchmarks.slow_store import SlowStore
from tests.spark.maintenance.large_table import generate

PATHS = int(os.environ.get("LAKEWRIGHT_BENCH_LISTED_PATHS", "1000000"))
COMMITS = 100
FILES = PATHS // COMMITS
LATENCY = float(os.environ.get("LAKEWRIGHT_BENCH_LIST_LATENCY", "0.06"))
"""Seconds of a page of 1,000 keys; S3 takes 50 to 200 ms."""
EXECUTORS = 4
NAMESPACE = "listed"


def measure(ground: Ground) -> list[Row]:
    """Generate the table's metadata, and then list its location by one executor and by four."""
    store = SlowStore(ground.sandbox["aws"]["endpoint"], LATENCY)
    with serve(store) as endpoint:
        config = ground.catalog.model_copy(update={"warehouses": [_create_warehouse(ground, endpoint)]})
        _run(config, "local[2]", "generate")
        store.commits, store.files = COMMITS, FILES
        one = _run(config, "local-cluster[1,1,600]", "list")
        four = _run(config, f"local-cluster[{EXECUTORS},1,600]", "list")
    tasks = sorted(four["rows"])
    assert sum(tasks) == sum(one["rows"]) == PATHS, "each path once"
    note = (
        f"{PATHS:,} paths below one prefix, {LATENCY * 1000:g} ms for a page of 1,000; "
        f"{len(tasks)} tasks of {tasks[0]:,} to {tasks[-1]:,} paths; reference: one executor"
    )
    return [Row(f"listing by {EXECUTORS} executors", four["seconds"], one["seconds"], 1 / 3, note=note)]


def _create_warehouse(ground: Ground, endpoint: str) -> CatalogWarehouse:
    """Create a warehouse whose store is at this endpoint."""
    sandbox = Sandbox.model_validate(ground.sandbox)
    aws, key, secret = sandbox.aws, sandbox.admin.access_key_id, sandbox.admin.secret_access_key.get_secret_value()
    client = boto3.client(
        "s3",
        endpoint_url=aws.endpoint,
        region_name=aws.region,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
    )
    client.create_bucket(Bucket="listed-paths")
    body = {
        "warehouse-name": "listed",
        "project-id": ground.catalog.project_id,
        "storage-profile": {
            "type": "s3",
            "bucket": "listed-paths",
            "region": aws.region,
            "endpoint": endpoint,
            "path-style-access": True,
            "flavor": "s3-compat",
            "sts-enabled": True,
        },
        "storage-credential": {
            "type": "s3",
            "credential-type": "access-key",
            "access-key-id": key,
            "secret-access-key": secret,
        },
        "delete-profile": {"type": "hard"},
    }
    response = httpx.post(f"{sandbox.lakekeeper.endpoint}/management/v1/warehouse", json=body, timeout=60)
    response.raise_for_status()
    return CatalogWarehouse(name="listed", id=response.json()["warehouse-id"])


def _run(config: CatalogConfig, master: str, work: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.listing", master, work]
    finished = subprocess.run(command, input=config.to_json(), capture_output=True, text=True, check=False)
    if finished.returncode:
        raise SystemExit(f"listing: {finished.stdout[-2000:]}{finished.stderr[-4000:]}")
    return json.loads(finished.stdout.splitlines()[-1])


def main() -> None:
    config = CatalogConfig.from_json(sys.stdin.read())
    master, work = sys.argv[1:]
    properties = spark_properties(config, master="spark://cluster:7077") | dict(SMALL_JOB)
    properties |= job_runner.session_properties(config, "listed") | jars.spark_properties(jars.PACKAGES)
    properties["spark.executor.memory"], properties["spark.executor.extraJavaOptions"] = "600m", SMALL_JVM
    properties["spark.driver.memory"] = "1g"
    builder: Any = SparkSession.builder
    spark = builder.master(master).config(map=replace_catalog_types(properties)).getOrCreate()
    load_own_jar(spark)
    table = TableIdentifier("listed", (NAMESPACE,), "paths")
    if work == "generate":
        spark.sql(f"CREATE NAMESPACE `listed`.{NAMESPACE}")
        spark.sql(f"CREATE TABLE {table.sql} (part int, text string) USING iceberg PARTITIONED BY (part)")
        generate(spark, table, COMMITS, FILES, partitions=1)
        print("{}")
    else:
        rows: list[int] = []
        spark.range(100_000).repartition(EXECUTORS * 2).count()  # executors are registered and warm

        def list_paths() -> None:
            files = list_location(IcebergTable.open(spark, table)).groupBy(f.spark_partition_id()).count().collect()
            rows.extend(row["count"] for row in files)

        seconds = measure_seconds(list_paths)
        print(json.dumps({"seconds": seconds, "rows": rows}))
    spark.stop()


if __name__ == "__main__":
    main()
