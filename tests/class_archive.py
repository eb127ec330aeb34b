"""An archive of Spark's classes for the JVMs of tests, which otherwise parse and verify thousands of classes each.

Java maps the archive into memory (class-data sharing, JEP 350) if the archive was made by the same Java from the same
jars; otherwise, it reads the classes from the jars. The archive contains the paths of the jars, so each virtual
environment has its own archive. A JVM uses it if its class path begins with the jars of Iceberg and Spark, as in each
driver.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from lakewright_spark.session import jars

QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Java prints to standard output why it does not use an archive, for example because of another class path."""

TRAINING = """
import sys
from pathlib import Path

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.session.builder import spark_session

session = spark_session(CatalogConfig.from_json(Path(sys.argv[1]).read_text()), "training")
session.sql("CREATE NAMESPACE lake.n")
session.sql("CREATE TABLE lake.n.t (id bigint, day string) USING iceberg PARTITIONED BY (day)")
for number in range(2):
    session.sql(f"INSERT INTO lake.n.t VALUES ({number}, 'monday'), (7, 'friday')")
session.sql("SELECT day, count(*), sum(b.id) FROM lake.n.t a JOIN lake.n.t b USING (day) GROUP BY day").collect()
session.sql("CALL lake.system.rewrite_data_files(table => 'n.t', options => map('rewrite-all', 'true'))").collect()
session.table("lake.n.t.files").orderBy("file_path").collect()
session.sql("DROP TABLE lake.n.t PURGE")
java = session.sparkContext._gateway.proc
session.stop()
java.stdin.close()
java.wait()
"""
"""A small job, whose JVM writes the classes that it has loaded into the archive when it ends."""


@functools.cache
def archive_path() -> Path:
    """Return the path of the archive for this Java and these jars, whether it exists or not."""
    home = os.environ.get("JAVA_HOME")
    java = Path(shutil.which("java", path=f"{home}/bin" if home else None) or "java").resolve()
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    files = [java, *sorted((Path(spec.origin).parent / "jars").glob("*.jar")), *jars.jar_paths()]
    digest = hashlib.sha256(TRAINING.encode())
    for file in files:
        state = file.stat() if file.is_file() else None
        digest.update(f"{file} {state and (state.st_size, state.st_mtime_ns)}\n".encode())
    return Path(sys.prefix) / f"spark-classes-{digest.hexdigest()[:16]}.jsa"


def java_options() -> str:
    """Return the options with which a JVM uses the archive if it exists."""
    return f"-XX:SharedArchiveFile={archive_path()} {QUIET}"


@contextmanager
def create_catalog(folder: Path) -> Iterator[Path]:
    """Run a sandbox with the warehouse `lake`; return the file of its catalog configuration."""
    from lakewright_sandbox import lifecycle

    from tests.spark.projects import Project, post

    sandbox = lifecycle.up(folder / "sandbox")
    try:
        with httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60) as server:
            post(server, "/management/v1/bootstrap", {"accept-terms-of-use": True})
            project = Project(server, sandbox)
            file = folder / "catalog.json"
            file.write_text(project.config(project.warehouse("lake")).to_json())
        yield file
    finally:
        lifecycle.down(sandbox.dir)


SECONDS = 300
"""The job takes 20 seconds; nothing waits longer for it."""


def create_archive() -> bool:
    """Create the archive unless it exists; return whether it exists now. Without it, tests are only slower."""
    path = archive_path()
    if path.exists():
        return True
    partial = path.with_suffix(f".{os.getpid()}")
    options = f"-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={partial} {QUIET}"
    with tempfile.TemporaryDirectory() as folder, create_catalog(Path(folder)) as catalog_file:
        command = [sys.executable, "-c", TRAINING, str(catalog_file)]
        variables = {**os.environ, "SPARK_SUBMIT_OPTS": options}
        try:
            subprocess.run(
                command, env=variables, cwd=folder, capture_output=True, text=True, check=True, timeout=SECONDS
            )
        except subprocess.SubprocessError as error:
            reason = str(getattr(error, "stderr", "") or error)[-1000:]
            sys.stderr.write(f"no archive of Spark's classes for the tests, which need more time: {reason}\n")
            partial.unlink(missing_ok=True)
    if not partial.exists():
        return False
    for outdated in path.parent.glob("spark-classes-*.jsa"):
        outdated.unlink()
    partial.rename(path)
    return True


if __name__ == "__main__":
    create_archive()
