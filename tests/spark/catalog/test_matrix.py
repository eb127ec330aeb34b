"""Four picks of the matrix of backend, delegation and design: Spark writes and reads as the unit that was deployed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from lakewright_sandbox import lifecycle
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.session.builder import spark_session
from pyspark.sql import SparkSession

from ...matrix_tenant import ALL, BOUND, CHOSEN, Combination, MatrixTenant, warehouse_of
from ...tenant_project import create_project

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


@pytest.fixture
def session(units: dict[Combination, CatalogConfig], pick: Combination) -> Iterator[SparkSession]:
    """A session with the configuration of the pick's unit, and no other."""
    made = spark_session(units[pick], "matrix")
    yield made
    made.stop()


@pytest.mark.parametrize("pick", CHECKED, ids="-".join)
def test_unit_writes_and_reads_with_spark(session: SparkSession, pick: Combination) -> None:
    table = "results.picks" if pick[2] == BOUND else f"`{warehouse_of(pick)}`.results.picks_of_chosen"
    session.sql(f"CREATE TABLE {table} (n BIGINT, backend STRING) USING iceberg")
    session.sql(f"INSERT INTO {table} VALUES (1, '{pick[0]}'), (2, '{pick[1]}')")

    assert [row.n for row in session.sql(f"SELECT n FROM {table} ORDER BY n").collect()] == [1, 2]
    assert session.sql(f"SELECT count(*) AS files FROM {table}.files").first().files >= 1
    session.sql(f"DROP TABLE {table} PURGE")
