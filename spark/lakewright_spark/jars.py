"""The jars that Spark needs: fetched once by Spark's own Ivy, from then on used by their paths."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lakewright_spark.errors import JarsMissingError

PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
)
"""Maven coordinates. The runtime is tied to Spark's minor version, so the two change together."""

DRIVERS: Mapping[str, str] = {
    "postgresql": "org.postgresql:postgresql:42.7.8",
    "sqlite": "org.xerial:sqlite-jdbc:3.50.3.0",
}
"""Drivers of the databases that a `jdbc` catalog may be in, by the scheme of its address."""


def ivy_home() -> Path:
    """Where Ivy keeps what it fetched: $LAKEWRIGHT_IVY, else the directory that Spark 4.1 takes by default."""
    return Path(os.environ.get("LAKEWRIGHT_IVY") or Path.home() / ".ivy2.5.2")


def jar_paths(packages: Sequence[str] = PACKAGES) -> list[Path]:
    """The paths at which Ivy keeps the jars, whether they are there or not."""
    return [
        ivy_home() / "jars" / f"{'_'.join(package.split(':')[:2])}-{package.split(':')[2]}.jar" for package in packages
    ]


def present(packages: Sequence[str] = PACKAGES) -> bool:
    return all(path.is_file() for path in jar_paths(packages))


def spark_properties(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """What makes Spark load them: by their paths if they are there, else by Ivy."""
    if present(packages):
        return {"spark.jars": ",".join(str(path) for path in jar_paths(packages))}
    return {"spark.jars.packages": ",".join(packages), "spark.jars.ivy": str(ivy_home())}


def fetch(packages: Sequence[str] = PACKAGES) -> list[Path]:
    """Fetch the jars unless they are there, in a Spark that does nothing else; JarsMissingError if they don't come."""
    if not present(packages):
        program = (
            "import sys; from pyspark.sql import SparkSession; "
            "SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')"
            ".config('spark.jars.packages', sys.argv[1]).config('spark.jars.ivy', sys.argv[2]).getOrCreate().stop()"
        )
        command = [sys.executable, "-c", program, ",".join(packages), str(ivy_home())]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if not present(packages):
            last = "\n".join(run.stderr.strip().splitlines()[-15:])
            raise JarsMissingError(
                f"expected {', '.join(packages)} under {ivy_home()}, which Spark's Ivy did not fetch:\n{last}"
            )
    return jar_paths(packages)
