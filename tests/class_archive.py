"""An archive of Spark's classes for the JVMs of tests, which otherwise parse and verify thousands of classes each.

Java maps the archive into memory (class-data sharing, JEP 350) if the archive was made by the same Java from the same
jars; otherwise, it reads the classes from the jars. The archive contains the paths of the jars, so each virtual
environment has its own archive.
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
from pathlib import Path

QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Java prints to standard output why it does not use an archive, for example because of another class path."""

TRAINING = """
import sys
from lakewright_spark.catalog.config import ICEBERG_EXTENSIONS
from lakewright_spark.session import jars
from lakewright_spark.session.builder import SMALL_JOB
from pyspark.sql import SparkSession

properties = {
    **SMALL_JOB,
    **jars.spark_properties(),
    "spark.sql.extensions": ICEBERG_EXTENSIONS,
    "spark.sql.catalog.local": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.local.type": "hadoop",
    "spark.sql.catalog.local.warehouse": sys.argv[1],
}
builder = SparkSession.builder.master("local[2]")
for key, value in properties.items():
    builder = builder.config(key, value)
session = builder.getOrCreate()
session.sql("CREATE TABLE local.n.t (id bigint, day string) USING iceberg PARTITIONED BY (day)")
for number in range(2):
    session.sql(f"INSERT INTO local.n.t VALUES ({number}, 'monday'), (7, 'friday')")
session.sql("SELECT day, count(*), sum(b.id) FROM local.n.t a JOIN local.n.t b USING (day) GROUP BY day").collect()
session.sql("CALL local.system.rewrite_data_files(table => 'n.t', options => map('rewrite-all', 'true'))").collect()
session.table("local.n.t.files").orderBy("file_path").collect()
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
    files = [java, *sorted((Path(spec.origin).parent / "jars").glob("*.jar"))]
    digest = hashlib.sha256()
    for file in files:
        state = file.stat() if file.is_file() else None
        digest.update(f"{file} {state and (state.st_size, state.st_mtime_ns)}\n".encode())
    return Path(sys.prefix) / f"spark-classes-{digest.hexdigest()[:16]}.jsa"


def java_options() -> str:
    """Return the options with which a JVM uses the archive if it exists."""
    return f"-XX:SharedArchiveFile={archive_path()} {QUIET}"


def create_archive() -> bool:
    """Create the archive unless it exists; return whether it exists now. Without it, tests are only slower."""
    path = archive_path()
    if path.exists():
        return True
    partial = path.with_suffix(f".{os.getpid()}")
    options = f"-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={partial} {QUIET}"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", TRAINING, folder],
            env={**os.environ, "SPARK_SUBMIT_OPTS": options},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode or not partial.exists():
        sys.stderr.write(f"no archive of Spark's classes for the tests, which need more time: {done.stderr[-1000:]}\n")
        return False
    for outdated in path.parent.glob("spark-classes-*.jsa"):
        outdated.unlink()
    partial.rename(path)
    return True


if __name__ == "__main__":
    create_archive()
