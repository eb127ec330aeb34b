"""Maintenance of both catalogs runs while tables are in both, and deletes no file."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from lakewright_spark.maintenance.job_runner import run_job, session_properties
from lakewright_spark.maintenance.registry import MAINTENANCE_JOBS
from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.maintenance.table.ops_tables import ensure_ops_table
from lakewright_spark.migration.actions import Action
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.table_identifier import TableIdentifier
from migration_catalogs import NEW, OLD, Catalogs, build_catalogs, build_rows, count_rows
from own_jvm import start_own_session
from projects import Project
from pyspark.sql import SparkSession

from tests.real_servers import leave_out

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(600),
]
LATER = datetime.now(UTC) + timedelta(days=60)
"""Every snapshot and every orphan file is old enough by then."""
FULL_ONLY = pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="the same with one more file: test-all")
JOBS: list[JobName] = [job.name for job in MAINTENANCE_JOBS if not job.read_only]


@pytest.fixture
def catalogs(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    return build_catalogs(project, tmp_path, monkeypatch)


def test_maintenance_of_both_catalogs_meanwhile(catalogs: Catalogs) -> None:
    if catalogs.target.auth.kind != "none":
        leave_out("reads a warehouse through a second Spark catalog, which has no credential")
    catalogs.add_table("sales.orders")
    with start_own_session(catalogs.source, "migration", catalogs.target.spark_properties()) as spark:
        catalogs.migrate()
        objects = catalogs.list_objects()
        for config, warehouse in ((catalogs.source, OLD), (catalogs.target, NEW)):
            table = TableIdentifier(warehouse, ("sales",), "orders")
            # A job whose plan is older than the fence meets the table with the policies of that time.
            _check_skipped(spark, table, TablePolicies(), ("snapshot-expiration", "orphan-files", "staged-files"))
            _check_skipped(spark, table, PolicyTables(config, warehouse).show(table).policies, JOBS)
        catalogs.migrate(Action.CUT_OVER)
        catalogs.open_target().load_table("sales.orders").append(build_rows(2))
        assert objects <= catalogs.list_objects()
        moved = TableIdentifier(OLD, ("sales",), "orders__moved")
        _check_skipped(spark, moved, TablePolicies(), ("snapshot-expiration", "orphan-files"))
        catalogs.migrate(Action.FINISH)
        assert objects <= catalogs.list_objects()
        metrics = run_job(
            "snapshot-expiration",
            spark,
            TableIdentifier(NEW, ("sales",), "orders"),
            TablePolicies(),
            dry_run=False,
            now=LATER,
        )
        assert metrics.state == "SUCCEEDED"
    assert count_rows(catalogs.open_target(), "sales.orders") == 8


@pytest.mark.parametrize("keeps_metadata", [pytest.param(True, marks=FULL_ONLY), False])
def test_maintenance_after_the_source_reused_the_location(catalogs: Catalogs, *, keeps_metadata: bool) -> None:
    """The source gives a new table of the old name its default location, where the migrated table has its files.

    Args:
        catalogs: The catalogs.
        keeps_metadata: Whether the new table keeps its first metadata file.
    """
    if catalogs.target.auth.kind != "none":
        leave_out("reads a warehouse through a second Spark catalog, which has no credential")
    source = catalogs.open_source()
    source.create_namespace("sales")
    location = f"{catalogs.source.warehouses[0].location}/sales.db/orders"
    source.create_table("sales.orders", build_rows(1).schema, location=location).append(build_rows(3))
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    catalogs.migrate(Action.FINISH)
    deletion = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    properties: dict[str, str] = {} if keeps_metadata else deletion
    earlier_objects = catalogs.list_objects()
    new_table = source.create_table("sales.orders", build_rows(1).schema, location=location, properties=properties)
    for _ in range(4):
        new_table.append(build_rows(1))
    objects = catalogs.list_objects()
    assert any("/metadata/00000-" in key for key in objects - earlier_objects) is keeps_metadata
    bucket = location.split("/")[2]
    files = [f"s3://{bucket}/{key}" for key in objects if "/sales.db/orders/data/" in key]
    assert len(files) >= 5
    expected = {OLD: "files of table sales.orders of warehouse results", NEW: "which the old catalog created"}
    session = {
        **catalogs.target.spark_properties(),
        **session_properties(catalogs.source, OLD),
        **session_properties(catalogs.target, NEW),
    }
    with start_own_session(catalogs.source, "migration", session) as spark:
        # Iceberg looks for orphans of the last day only in tests.
        cast(Any, spark)._jsparkSession.sessionState().conf().setConfString("spark.testing", "true")
        for warehouse, reason in expected.items():
            table = TableIdentifier(warehouse, ("sales",), "orders")
            # An earlier run, or an earlier version of this package, has taken the files for candidates.
            uuid = IcebergTable.open(spark, table).uuid
            rows = [(str(table), uuid, path, LATER) for path in files]
            cast(Any, spark).createDataFrame(rows, CANDIDATES.columns).writeTo(
                ensure_ops_table(CANDIDATES, spark, warehouse)
            ).append()
            runs: list[tuple[JobName, datetime]] = [
                ("orphan-files", LATER),
                ("staged-files", LATER + timedelta(days=60)),
            ]
            for job, now in runs:
                metrics = run_job(job, spark, table, TablePolicies(), dry_run=False, now=now)
                assert metrics.state == "SKIPPED", (job, warehouse)
                assert reason in metrics.reason
    assert objects <= catalogs.list_objects()
    assert count_rows(catalogs.open_target(), "sales.orders") == 3
    assert count_rows(source, "sales.orders") == 4


def _check_skipped(
    spark: SparkSession, table: TableIdentifier, policies: TablePolicies, jobs: list[JobName] | tuple[JobName, ...]
) -> None:
    for job in jobs:
        metrics = run_job(job, spark, table, policies, dry_run=False, now=LATER)
        assert metrics.state == "SKIPPED", (job, table)
        assert "gc.enabled=false" in metrics.reason or "with --finish" in metrics.reason
