"""A standalone Spark cluster on loopback: a master and workers, each in its own process group."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
from lakewright_spark.session import jars
from lakewright_spark.session.builder import SMALL_JVM
from waiting import wait_until

from tests import class_archive

JVM_OPTIONS = f"{SMALL_JVM} {class_archive.java_options()}"

SMALL: dict[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JVM_OPTIONS,
    "spark.executor.memory": "600m",
    "spark.executor.extraJavaOptions": JVM_OPTIONS,
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.cores.max": "2",
    # A fetch of shuffle data from a dead executor fails within seconds.
    "spark.shuffle.io.retryWait": "500ms",
    # A job starts only when both executors are registered.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}
"""Spark properties of a job on such a cluster: small machines, and no host names."""


@dataclass(frozen=True)
class StandaloneCluster:
    """The address of the master, and the process group of each worker and its executors."""

    master: str
    workers: tuple[int, ...]


ENCRYPTED: dict[str, str] = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "a secret of tests that cluster and driver share",
    "spark.network.crypto.enabled": "true",
}
"""Spark properties that a cluster and its drivers need before secrets go to executors."""


def write_spark_conf(folder: Path, properties: Mapping[str, str]) -> Path:
    """Write a private spark-defaults.conf; return its folder, for SPARK_CONF_DIR."""
    conf = folder / "conf"
    conf.mkdir(mode=0o700)
    file = conf / "spark-defaults.conf"
    file.touch(mode=0o600)
    file.write_text("".join(f"{key} {value}\n" for key, value in properties.items()))
    return conf


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2, conf: Path | None = None) -> Iterator[StandaloneCluster]:
    """Run a cluster without keys, catalogs and Iceberg jars. `conf` is its SPARK_CONF_DIR."""
    with ExitStack() as stack:
        arguments = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master, log = _start_daemon(stack, arguments, folder / "master.log", conf)
        address = _wait_for_log(master, log, r"Starting Spark master at (spark://\S+)")
        common = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        common += ["--cores", "1", "--memory", "700m"]
        started = [
            _start_daemon(
                stack, [*common, "--work-dir", str(folder / f"worker-{n}"), address], folder / f"worker-{n}.log", conf
            )
            for n in range(workers)
        ]
        for process, log in started:
            _wait_for_log(process, log, r"(Successfully registered with master)")
        yield StandaloneCluster(address, tuple(process.pid for process, _ in started))


def environment_without_credentials() -> dict[str, str]:
    """Return this process's environment without variables that may open a store or a catalog."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYICEBERG_", "SPARK_"))}


def _start_daemon(
    stack: ExitStack, arguments: list[str], log: Path, conf: Path | None
) -> tuple[subprocess.Popen[bytes], Path]:
    home = Path(pyspark.__file__).parent
    options = {"SPARK_DAEMON_MEMORY": "200m", "SPARK_DAEMON_JAVA_OPTS": JVM_OPTIONS}
    # The archive of classes needs it; executors have another class path.
    options |= {"SPARK_DAEMON_CLASSPATH": jars.driver_properties()[jars.DRIVER_CLASS_PATH]}
    environment = {"PATH": os.environ["PATH"], "SPARK_HOME": str(home), **options}
    environment |= {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
    environment |= {"SPARK_CONF_DIR": str(conf)} if conf else {}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments],
            env=environment,
            cwd=log.parent,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    stack.callback(_end, process)
    return process, log


def _wait_for_log(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """Wait until the log matches and return the first group."""
    wait_until(lambda: process.poll() is not None or re.search(pattern, log.read_text()))
    match = re.search(pattern, log.read_text())
    assert match, log.read_text()[-3000:]
    return match[1]


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # a test may have killed it
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
