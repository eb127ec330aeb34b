"""A SparkSession from a CatalogConfig: its warehouses as named catalogs, S3 only through what the catalog vends."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from lakewright_spark import jars
from lakewright_spark.catalog import CatalogConfig

SMALL_JOB: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # A minute's work is over before the optimising compiler and the parallel collector pay: they double its CPU time.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""For one JVM on one machine: Spark's default of 200 shuffle partitions costs such a job more than its work."""

ALWAYS: Mapping[str, str] = {
    # Instants are compared and stored as UTC, whatever zone the machine is in.
    "spark.sql.session.timeZone": "UTC",
}


def spark_properties(config: CatalogConfig, *, event_log: Path | None = None) -> dict[str, str]:
    """Every property of a local session: the catalogs', the jars', and those of a small job."""
    properties = {**ALWAYS, **SMALL_JOB, **config.spark_properties()}
    if jars.present():
        properties["spark.jars"] = ",".join(str(path) for path in jars.jar_paths())
    else:
        properties |= {"spark.jars.packages": ",".join(jars.PACKAGES), "spark.jars.ivy": str(jars.ivy_home())}
    if event_log:
        # Plain text: who keeps a log wants to search it, for secrets too.
        properties |= {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
        properties["spark.eventLog.dir"] = event_log.resolve().as_uri()
    return properties


def spark_session(config: CatalogConfig, app: str, *, event_log: Path | None = None) -> SparkSession:
    """The session of a job: local, but under spark-submit, which has its own say on master, memory and jars."""
    builder = SparkSession.builder.appName(app)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        properties = {**ALWAYS, **config.spark_properties()}
    else:
        properties = spark_properties(config, event_log=event_log)
        builder = builder.master("local[*]")
    for key, value in properties.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
