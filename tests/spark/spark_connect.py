"""A Spark Connect server as a computing unit runs it."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from lakewright_sandbox.runtime.processes import free_port
from lakewright_spark.catalog.config import ICEBERG_EXTENSIONS
from lakewright_spark.session import jars
from lakewright_spark.session.builder import SMALL_JOB
from waiting import wait_until

from tests.child_processes import stop_process


@contextmanager
def connect_server(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a Spark Connect server as a computing unit does; yield its address."""
    port = free_port()
    properties = {**SMALL_JOB, **jars.driver_properties(), "spark.sql.extensions": ICEBERG_EXTENSIONS, **(more or {})}
    properties["spark.connect.grpc.binding.port"] = str(port)
    (folder / "server.properties").write_text("".join(f"{key} {value}\n" for key, value in properties.items()))
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--properties-file", str(folder / "server.properties")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait_until(lambda: server.poll() is not None or _accepts(port))
            assert server.poll() is None, (folder / "server.log").read_text()[-3000:]
            yield f"sc://127.0.0.1:{port}"
        finally:
            stop_process(server)


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
