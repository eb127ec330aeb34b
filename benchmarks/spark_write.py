"""Spark's result write through the generated configuration, against a configuration of the same catalog by hand."""

from __future__ import annotations

import statistics

from lakewright_spark.catalog import COMMIT_RETRIES
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.session.builder import spark_properties
from pyspark.sql import SparkSession

from benchmarks.ground import Ground
from benchmarks.measure import Row, timed

WARM_UP = 3
TIMES = 15
ROWS = 400_000
TARGET = 1.05
BY_HAND = "by-hand"


def measure(ground: Ground) -> list[Row]:
    config = ground.catalog
    warehouse = config.warehouses[0]
    settings = {
        f"spark.sql.catalog.{BY_HAND}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{BY_HAND}.type": "rest",
        f"spark.sql.catalog.{BY_HAND}.uri": config.uri,
        f"spark.sql.catalog.{BY_HAND}.warehouse": f"{config.project_id}/{warehouse.name}",
        f"spark.sql.catalog.{BY_HAND}.header.X-Iceberg-Access-Delegation": "vended-credentials",
    }
    builder = SparkSession.builder.master("local[2]").appName("spark-write")
    for key, value in {**spark_properties(config), **settings}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        frame = spark.range(ROWS).selectExpr("id", "id % 97 AS bucket", "cast(rand(7) AS string) AS text").cache()
        frame.count()
        namespace = warehouse.namespaces[0]

        def write(catalog: str, number: int) -> None:
            table = Execution(0, number).result(Port(f"bench-{catalog}")).table
            creation = frame.writeTo(f"`{catalog}`.`{namespace}`.`{table}`").using("iceberg")
            for key, value in COMMIT_RETRIES.items():
                creation = creation.tableProperty(key, value)
            creation.create()

        seconds: dict[str, list[float]] = {warehouse.name: [], BY_HAND: []}
        for number in range(WARM_UP + TIMES):
            # In turns, and each first every other time: what warms up or slows down does so for both.
            for catalog in sorted(seconds, reverse=bool(number % 2)):
                taken = timed(lambda catalog=catalog, number=number: write(catalog, number))
                if number >= WARM_UP:
                    seconds[catalog].append(taken)
    finally:
        spark.stop()
    note = f"median of {TIMES} tables of {ROWS:,} rows, written in turns by one session"
    ours, by_hand = (statistics.median(seconds[catalog]) for catalog in (warehouse.name, BY_HAND))
    return [Row("Spark result write", ours, by_hand, TARGET, note=note)]
