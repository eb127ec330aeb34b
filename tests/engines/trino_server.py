"""A Trino server with the Iceberg connector, from the jars of Maven Central."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
from lakewright_sandbox.runtime.processes import free_port
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway  # pyright: ignore[reportUnknownVariableType]

VERSION = "483"
_OPTIONS = ["-Xmx1G", "-XX:+UseG1GC", "--add-modules=jdk.incubator.vector", "-Dconfig=config.properties"]
_CONFIG = """\
node.environment=test
node.internal-address=127.0.0.1
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://127.0.0.1:{port}
plugin.dir=plugin
catalog.config-dir=catalog
"""


@dataclass(frozen=True)
class TrinoServer:
    """A server that runs."""

    client: httpx.Client

    def execute(self, statement: str) -> list[list[Any]]:
        """Execute a statement, and return its rows. An error fails the test."""
        result = self.client.post("/v1/statement", content=statement).raise_for_status().json()
        rows: list[list[Any]] = list(result.get("data", ()))
        while "nextUri" in result:
            result = self.client.get(result["nextUri"]).raise_for_status().json()
            rows += result.get("data", ())
        assert "error" not in result, result["error"]["message"]
        return rows


@contextmanager
def start_server(directory: Path, *, jars: Path, java: Path) -> Iterator[TrinoServer]:
    """Start a server whose catalogs are the files of the folder `catalog` of `directory`.

    Maven Central has the classes of the server, and not the archive with its start script: py4j calls
    `io.trino.server.Server.start`, as the script's program does.

    Args:
        directory: Folder of the server.
        jars: Folder with the folders `lib` and `iceberg`.
        java: Program `java` of Java 25 or newer, with the module of the Vector API.
    """
    port = free_port()
    (directory / "config.properties").write_text(_CONFIG.format(port=port))
    plugin = directory / "plugin" / "iceberg"
    plugin.mkdir(parents=True)
    for jar in (jars / "iceberg").iterdir():
        (plugin / jar.name).symlink_to(jar)
    with zipfile.ZipFile(plugin / "services.jar", "w") as archive:  # the archive of the server has such a jar
        archive.writestr("META-INF/services/io.trino.spi.Plugin", "io.trino.plugin.iceberg.IcebergPlugin\n")
    with (directory / "server.log").open("w") as log:
        gateway_port, process = cast("Any", launch_gateway)(
            classpath=f"{jars / 'lib'}/*",
            javaopts=_OPTIONS,
            java_path=str(java),
            die_on_exit=True,
            redirect_stdout=log,
            redirect_stderr=log,
            cwd=str(directory),
            return_proc=True,
        )
        try:
            gateway = JavaGateway(gateway_parameters=GatewayParameters(port=gateway_port))
            cast("Any", gateway.jvm).io.trino.server.Server().start(VERSION)
            headers = {"X-Trino-User": "jobs"}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
                wait_for_start(client)
                yield TrinoServer(client)
        finally:
            process.kill()
            process.wait()


def wait_for_start(client: httpx.Client) -> None:
    """Wait until the server accepts statements."""
    deadline = time.monotonic() + 60
    while client.get("/v1/info").raise_for_status().json()["starting"]:
        assert time.monotonic() < deadline, "the server does not start"
        time.sleep(0.2)
