"""Spark's result write through the generated configuration, against a configuration of the same catalog by hand."""

from __future__ import annotations

import statistics

from lakewright_spark.catalog import COMMIT_RETRIES
from lakewright_spark.results.uris import Execution, Port
from lakewright_spark.results.writer import ResultWriter
from lakewright_spark.session import spark_properties
from pyspark.sql import SparkSession

from benchmarks.ground import Ground
from benchmarks.measure import Row, timed

TIMES = 9
ROWS = 400_000
TARGET = 1.05
BY_HAND = "by_hand"


def measure(ground: Ground) -> list[Row]:
    config = ground.catalog
    warehouse = config.warehouses[0]
    by_hand = {
        f"spark.sql.catalog.{BY_HAND}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{BY_HAND}.type": "rest",
        f"spark.sql.catalog.{BY_HAND}.uri": config.uri,
        f"spark.sql.catalog.{BY_HAND}.warehouse": f"{config.project_id}/{warehouse.name}",
        f"spark.sql.catalog.{BY_HAND}.header.X-Iceberg-Access-Delegation": "vended-credentials",
    }
    builder = SparkSession.builder.master("local[2]").appName("spark-write")
    for key, value in {**spark_properties(config), **by_hand}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        frame = spark.range(ROWS).selectExpr("id", "id % 97 AS bucket", "cast(rand(7) AS string) AS text").cache()
        frame.count()
        writer = ResultWriter(spark, config, warehouse.name)
        namespace = warehouse.namespaces[0]

        def generated(number: int) -> None:
            writer.write(Execution(0, number).result(Port("bench")), frame)

        def hand_written(number: int) -> None:
            creation = frame.writeTo(f"{BY_HAND}.`{namespace}`.by_hand_{number}").using("iceberg")
            for key, value in COMMIT_RETRIES.items():
                creation = creation.tableProperty(key, value)
            creation.create()

        generated(0)
        hand_written(0)
        ours: list[float] = []
        theirs: list[float] = []
        for number in range(1, TIMES + 1):
            # In turns, and each first every other time: what warms up or slows down does so for both.
            pair = [(ours, generated), (theirs, hand_written)]
            for times, write in pair if number % 2 else reversed(pair):
                times.append(timed(lambda write=write, number=number: write(number)))
    finally:
        spark.stop()
    note = f"median of {TIMES} tables of {ROWS:,} rows, written in turns by one session"
    return [Row("Spark result write", statistics.median(ours), statistics.median(theirs), TARGET, note=note)]
