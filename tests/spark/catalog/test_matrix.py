"""Four picks of the matrix of backend, delegation and design: Spark writes and reads as the unit that was deployed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from lakewright_sandbox import lifecycle
from lakewright_spark.catalog import CatalogConfig

from tests.matrix_tenant import ALL, BOUND, CHOSEN, Combination, MatrixTenant, name_warehouse
from tests.tenant_project import create_project

pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.stand_in("makes roles and buckets on AWS"),
]

PICKS: list[Combination] = [
    ("aws", "vended", BOUND),
    ("s3", "vended", CHOSEN),
    ("existing", "remote-signing", BOUND),
    ("aws", "remote-signing", CHOSEN),
]
"""Each backend, each pair of delegation and design."""
CHECKED = ALL if os.environ.get("LAKEWRIGHT_FULL") else PICKS


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Combination, CatalogConfig]]:
    """The configuration of each unit of a tenant, on a sandbox that enforces rights at the catalog and at S3."""
    directory = tmp_path_factory.mktemp("enforcing")
    sandbox = lifecycle.up(directory, authz="openfga")
    folder = tmp_path_factory.mktemp("projects") / "project"
    create_project(folder, {"sandbox": str(sandbox.dir), "kubernetes": {"render_to": str(folder / "rendered")}})
    matrix = MatrixTenant(folder, sandbox, "matrix", CHECKED)
    matrix.tenant.up()
    yield matrix.units()
    lifecycle.down(directory, purge=True)


JOB = """
import json
import sys
import traceback
from pathlib import Path

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.session import jars
from lakewright_spark.session.builder import SMALL_JOB, spark_session
from pyspark import SparkConf, SparkContext


def run_job(config, table):
    session = spark_session(config, "matrix")
    try:
        session.sql(f"CREATE TABLE {table} (n BIGINT, word STRING) USING iceberg")
        session.sql(f"INSERT INTO {table} VALUES (1, 'one'), (2, 'two')")
        rows = [row.n for row in session.sql(f"SELECT n FROM {table} ORDER BY n").collect()]
        files = session.sql(f"SELECT count(*) AS files FROM {table}.files").first().files
        session.sql(f"DROP TABLE {table} PURGE")
        return {"rows": rows, "files": files}
    finally:
        session.stop()


conf = SparkConf(loadDefaults=False).setAll([*SMALL_JOB.items(), *jars.driver_properties().items()])
SparkContext._ensure_initialized(conf=conf)
results = []
for name, table in json.loads(sys.argv[1]):
    try:
        results.append(run_job(CatalogConfig.from_json(Path(name).read_text()), table))
    except Exception:
        results.append({"error": traceback.format_exc()})
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(
    units: dict[Combination, CatalogConfig], tmp_path_factory: pytest.TempPathFactory
) -> dict[Combination, dict[str, Any]]:
    """The result of a job of each unit.

    The jobs have a process of their own: a JVM keeps the settings with which it starts, and this sandbox ends. The JVM
    starts without settings of a unit, so that each job has the settings of its own unit only.
    """
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "job.py").write_text(JOB)
    jobs: list[tuple[str, str]] = []
    for number, pick in enumerate(CHECKED):
        file = folder / f"catalog-{number}.json"
        file.write_text(units[pick].to_json())
        table = "results.picks" if pick[2] == BOUND else f"`{name_warehouse(pick)}`.results.picks_of_chosen"
        jobs.append((str(file), table))

    command = [sys.executable, str(folder / "job.py"), json.dumps(jobs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(CHECKED, json.loads(done.stdout.strip().splitlines()[-1]), strict=True))


@pytest.mark.parametrize("pick", CHECKED, ids="-".join)
def test_unit_writes_and_reads_with_spark(results: dict[Combination, dict[str, Any]], pick: Combination) -> None:
    result = results[pick]

    assert "error" not in result, result["error"]
    assert (result["rows"], result["files"] >= 1) == ([1, 2], True)
