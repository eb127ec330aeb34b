"""Four picks of the matrix of backend, delegation and design: Spark writes and reads as the unit that was deployed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lakewright_sandbox import lifecycle
from lakewright_spark.catalog import CatalogConfig

from tests.matrix_tenant import ALL, BOUND, CHOSEN, Combination, MatrixTenant, name_warehouse
from tests.tenant_project import create_project

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.stand_in("makes roles and buckets on AWS")]

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
import sys
from pathlib import Path

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.session.builder import spark_session

config, table = Path(sys.argv[1]), sys.argv[2]
session = spark_session(CatalogConfig.from_json(config.read_text()), "matrix")
session.sql(f"CREATE TABLE {table} (n BIGINT, word STRING) USING iceberg")
session.sql(f"INSERT INTO {table} VALUES (1, 'one'), (2, 'two')")
rows = [row.n for row in session.sql(f"SELECT n FROM {table} ORDER BY n").collect()]
files = session.sql(f"SELECT count(*) AS files FROM {table}.files").first().files
session.sql(f"DROP TABLE {table} PURGE")
print("rows", rows, "files", files)
"""


@pytest.mark.parametrize("pick", CHECKED, ids="-".join)
def test_unit_writes_and_reads_with_spark(
    units: dict[Combination, CatalogConfig], pick: Combination, tmp_path: Path
) -> None:
    """The job has its own process: a JVM keeps the first session's settings, and this sandbox ends."""
    (tmp_path / "catalog.json").write_text(units[pick].to_json())
    (tmp_path / "job.py").write_text(JOB)
    table = "results.picks" if pick[2] == BOUND else f"`{name_warehouse(pick)}`.results.picks_of_chosen"

    done = subprocess.run(
        [sys.executable, str(tmp_path / "job.py"), str(tmp_path / "catalog.json"), table],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    rows, files = re.fullmatch(r"rows (.*) files (\d+)", done.stdout.strip().splitlines()[-1]).groups()
    assert (rows, int(files) >= 1) == ("[1, 2]", True)
