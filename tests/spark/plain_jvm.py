"""A JVM with jars, without Spark."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway


@contextmanager
def run_jvm(classpath: Iterable[Path]) -> Generator[JavaGateway]:
    """Run a JVM with these jars during the block."""
    conf = SparkConf(loadDefaults=False).set("spark.driver.extraClassPath", ":".join(map(str, classpath)))
    gateway: JavaGateway = launch_gateway(conf)
    try:
        yield gateway
    finally:
        # Without a JVM, no request of the gateway can wait for a response.
        gateway.proc.kill()  # type: ignore[attr-defined]  # PySpark's own
        gateway.proc.wait()  # type: ignore[attr-defined]
        gateway.shutdown()
