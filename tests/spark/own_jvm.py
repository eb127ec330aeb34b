"""A Spark session in a JVM of its own, for tests that need another class path than the JVM of the worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.session.builder import spark_session
from pyspark import SparkContext
from pyspark.sql import SparkSession


@contextmanager
def start_own_session(config: CatalogConfig, app: str, properties: Mapping[str, str]) -> Iterator[SparkSession]:
    """Start a JVM and a session in it, and end both afterwards. The worker's JVM and its session remain.

    A running JVM cannot load the driver of a database: Java finds drivers on the class path of its start only.
    """
    context: Any = SparkContext
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_gateway", "_jvm", "_active_spark_context"):
            patch.setattr(SparkContext, name, None)
        for name in ("_instantiatedSession", "_activeSession"):
            patch.setattr(SparkSession, name, None)
        session = spark_session(config, app, properties=properties)
        gateway = context._gateway
        try:
            yield session
        finally:
            session.stop()
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait()
