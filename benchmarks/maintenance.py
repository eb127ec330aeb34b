"""Every maintenance job on many small tables: in one application, by `spark-submit`, and in a plain loop."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.maintenance.job_runner import session_properties
from lakewright_spark.maintenance.jobs.rewrite_manifests import WORTHWHILE_MANIFESTS
from lakewright_spark.policies.model import JOBS, CompactionPolicy, JobName, RetentionPolicy, TablePolicies
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.outcome import MaintenanceOutcome
from lakewright_spark.scheduler.runner import FAIR, MaintenanceRunner
from lakewright_spark.scheduler.supervisor import Limits
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.session import jars
from lakewright_spark.session.builder import spark_session
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.sql import SparkSession

from benchmarks.ground import Ground
from benchmarks.measure import Row, measure_seconds

TABLES = int(os.environ.get("LAKEWRIGHT_BENCH_TABLES", "200"))
SUBMITTED = min(5, TABLES)
"""Tables measured with `spark-submit`; the time for all tables is scaled from them."""
PARALLEL = 4
FEW, MANY = 3, WORTHWHILE_MANIFESTS
"""Files of a table. `rewrite-manifests` is due on tables with the larger number of files."""
TARGET, LOOP_TARGET = 1 / 20, 0.3
"""Most of the time of the reference that the jobs may take."""
AHEAD = timedelta(days=10)
"""Time between the writes and the jobs, so that retention and expiration have work."""
PROCEDURES: tuple[JobName, ...] = (
    "retention",
    "snapshot-expiration",
    "orphan-files",
    "compaction",
    "rewrite-manifests",
)
"""Jobs that Iceberg's procedures can do without this package."""
SMALL = CompactionPolicy(min_input_files=2)
POLICY = TablePolicies(retention=RetentionPolicy(keep=20, column="day", pattern=""), compaction=SMALL)
SCHEMA = Schema(NestedField(1, "day", StringType()), NestedField(2, "number", LongType()))
PARTITIONS = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))


def measure(ground: Ground) -> list[Row]:
    config = ground.catalog.select_warehouses([ground.catalog.warehouses[0].name])
    catalog = open_catalog(config, config.warehouses[0].name)
    file = ground.stage.folder / "maintained.json"
    file.write_text(config.to_json())
    tables = f"{TABLES} tables, {PARALLEL} at once in one application, the start of the JVM included"
    rows: list[Row] = []
    for files in (FEW, MANY):
        for way in ("ours", "loop"):
            _fill(catalog, f"{way}_{files}", TABLES, files)
        ours, loop = (_process(config, way, files) for way in ("ours", "loop"))
        rows.append(
            Row(
                f"maintenance of tables with {files} files, against a plain loop",
                ours.procedures,
                loop.procedures,
                LOOP_TARGET,
                note=f"{tables}; both: {', '.join(_list_due(files))}, which are due; the jobs without a procedure of "
                "Iceberg's are left out; reference: a DELETE and the bare procedures, table by table",
            )
        )
    _fill(catalog, "submitted", SUBMITTED, MANY)
    submitted = measure_seconds(lambda: _submit_each(file)) * TABLES / SUBMITTED
    note = (
        f"{tables}; all jobs that are due; reference: one spark-submit for each of {len(JOBS)} jobs and each table, "
        f"measured on {SUBMITTED} tables and scaled"
    )
    return [Row("maintenance, against spark-submit", ours.whole, submitted, TARGET, note=note), *rows]


def _list_due(files: int) -> list[JobName]:
    """Return the jobs with procedures that are due on a table with this number of files."""
    return [job for job in PROCEDURES if job != "rewrite-manifests" or files >= MANY]


def _fill(catalog: Catalog, namespace: str, tables: int, files: int) -> None:
    """Create tables with a file of long ago and the other files of today, each with a commit."""
    catalog.create_namespace(namespace)
    today, old = f"{datetime.now(UTC):%Y-%m-%d}", f"{datetime.now(UTC) - timedelta(days=90):%Y-%m-%d}"

    def make(number: int) -> None:
        properties = POLICY.properties()
        table = catalog.create_table(
            (namespace, f"t{number}"), SCHEMA, partition_spec=PARTITIONS, properties=properties
        )
        for day in (old, *[today] * (files - 1)):
            table.append(pa.table({"day": [day] * 10, "number": list(range(10))}, table.schema().as_arrow()))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(tables)))


@dataclass(frozen=True)
class Seconds:
    """Seconds of a process, and its seconds without the jobs that have no procedure."""

    whole: float
    procedures: float


def _process(config: CatalogConfig, way: str, files: int) -> Seconds:
    command = [sys.executable, "-m", "benchmarks.maintenance", way, str(files)]
    began = time.perf_counter()
    done = subprocess.run(command, input=config.to_json(), capture_output=True, text=True, check=False)
    whole = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{way}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return Seconds(whole, whole - float(done.stdout.split()[-1]))


def _submit_each(config: Path) -> None:
    import lakewright_spark.cli.__main__ as program  # noqa: PLC0415  # only where it lies is wanted

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", **jars.spark_properties(jars.PACKAGES)}
    confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    for number in range(SUBMITTED):
        for job in JOBS:
            arguments = ["job", job, "--table", f"submitted.t{number}", "--config", str(config), "--json"]
            command = [str(submit), "--master", "local[*]", *confs, str(program.__file__), *arguments]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode or json.loads(done.stdout.splitlines()[-1])["state"] != "SUCCEEDED":
                raise SystemExit(f"{job}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


@contextmanager
def open_session(config: CatalogConfig) -> Iterator[SparkSession]:
    """Yield a session with the properties of maintenance jobs on the first warehouse."""
    name = config.warehouses[0].name
    spark = spark_session(config, "benchmark", properties={**FAIR, **session_properties(config, name)})
    # Iceberg looks for orphans of the last day only where this says so.
    java: Any = spark._jsparkSession
    java.sessionState().conf().setConfString("spark.testing", "true")
    yield spark
    spark.stop()


def _ours(config: CatalogConfig, files: int) -> float:
    """Run the jobs with procedures, then the other jobs; return the seconds of the latter."""

    def run(jobs: Sequence[JobName]) -> MaintenanceOutcome:
        return MaintenanceRunner(
            config,
            Filters(re.compile(f"ours_{files}"), jobs=jobs),
            Limits(PARALLEL),
            session=spark,
            clock=lambda: datetime.now(UTC) + AHEAD,
        ).run()

    with open_session(config) as spark:
        outcomes = [run(PROCEDURES)]
        taken = measure_seconds(lambda: outcomes.append(run([job for job in JOBS if job not in PROCEDURES])))
    for outcome, jobs in zip(outcomes, (len(_list_due(files)), 1), strict=True):
        if outcome.error() or outcome.counts() != {"SUCCEEDED": TABLES * jobs}:
            expected = f"expected {jobs} jobs on every table, and no candidates for staged-files"
            raise SystemExit(f"{expected}; found {outcome.counts()}, {outcome.error()}")
    return taken


def _loop(config: CatalogConfig, files: int) -> float:
    name, namespace = config.warehouses[0].name, f"loop_{files}"
    day = f"{datetime.now(UTC) + AHEAD - timedelta(days=20):%Y-%m-%d}"
    moment = datetime.now(UTC) + AHEAD
    with open_session(config) as spark:
        for number in range(TABLES):
            table, system = f"`{name}`.{namespace}.t{number}", f"CALL `{name}`.system."
            table_argument = f"table => '{namespace}.t{number}'"
            spark.sql(f"DELETE FROM {table} WHERE day < '{day}'")
            older = f"older_than => TIMESTAMP '{moment - timedelta(days=3):%Y-%m-%d %H:%M:%S}'"
            spark.sql(f"{system}expire_snapshots({table_argument}, {older})").collect()
            older = f"older_than => TIMESTAMP '{moment - timedelta(days=7):%Y-%m-%d %H:%M:%S}'"
            spark.sql(f"{system}remove_orphan_files({table_argument}, {older}, prefix_listing => true)").collect()
            spark.sql(f"{system}rewrite_data_files({table_argument}, options => map('min-input-files', '2'))").collect()
            if "rewrite-manifests" in _list_due(files):
                spark.sql(f"{system}rewrite_manifests({table_argument})").collect()
    return 0.0


if __name__ == "__main__":
    way, files = sys.argv[1:]
    print({"ours": _ours, "loop": _loop}[way](CatalogConfig.from_json(sys.stdin.read()), int(files)))
