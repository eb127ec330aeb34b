"""TPC-H through the life of its tables: migrate, run, maintain, read, standby, promote, with equal contents.

`orders` gets format version 3 after the migration, so that its deletions are deletion vectors and its rows have ids.
LAKEWRIGHT_FULL=1 makes the scale 1.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from lakewright_spark.maintenance.job_runner import run_job, session_properties
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.verify import Depth
from lakewright_spark.policies.model import JOBS, TablePolicies
from lakewright_spark.standby.actions import Standby, State
from lakewright_spark.table_identifier import TableIdentifier
from migration_catalogs import NEW, OLD, build_catalogs
from own_jvm import start_own_session
from projects import Project
from pyspark.sql import SparkSession

from benchmarks.tpch import CHANGED, TABLES, Tpch
from tests.real_servers import leave_out

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
SCALE = 1 if FULL else 0.01
pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(7200 if FULL else 1800)]
STANDBY = "copies"
LATER = timedelta(days=10)
"""Snapshots and orphan files are old enough by then."""


def test_contents_are_equal_at_every_step(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    if catalogs.target.auth.kind != "none":
        leave_out("reads a warehouse through a second Spark catalog, which has no credential")
    (old,) = catalogs.source.warehouses
    (new,) = catalogs.target.warehouses
    keys = {"s3": old.s3, "s3_keys": old.s3_keys}
    target = catalogs.target.model_copy(update={"warehouses": [new.model_copy(update=keys)]})
    other_project = Project(project.server, project.sandbox, project.real)
    standby_config = other_project.config(other_project.warehouse(STANDBY))
    properties = {
        **catalogs.target.spark_properties(),
        **session_properties(catalogs.target, NEW),
        **standby_config.spark_properties(),
    }
    with start_own_session(catalogs.source, "tpch", properties) as spark:
        tpch = Tpch(spark, f"{OLD}.tpch", tmp_path, SCALE, version=2)
        tpch.load()
        tpch.change()
        tpch.check("load", TABLES)

        catalogs.migrate()
        catalogs.migrate(Action.CUT_OVER)
        catalogs.migrate(Action.FINISH)
        tpch.namespace = f"{NEW}.tpch"
        tpch.check("migrate", TABLES)

        spark.sql(f"ALTER TABLE {NEW}.tpch.orders SET TBLPROPERTIES ('format-version' = '3')")
        tpch.change()
        tpch.check("run")

        for name in TABLES:
            table = TableIdentifier(NEW, ("tpch",), name)
            for job in JOBS:
                run_job(job, spark, table, TablePolicies(), dry_run=False, now=datetime.now(UTC) + LATER)
        tpch.check("maintain", TABLES)
        for name in CHANGED:
            tpch.check_batches(name, catalogs.open_target().load_table(f"tpch.{name}").scan().to_arrow_batch_reader())

        standby = Standby.open(target, NEW, standby_config, STANDBY, "tpch.*")
        standby.copy(Depth.FULL, datetime.now(UTC))
        tpch.change()
        statuses = standby.copy(Depth.FULL, datetime.now(UTC))
        assert [status for status in statuses if status.state is not State.CURRENT] == []
        assert count_deletion_vectors(spark, f"{STANDBY}.tpch.orders") > 0
        assert read_lineage(spark, f"{STANDBY}.tpch.orders") == read_lineage(spark, f"{NEW}.tpch.orders")
        tpch.namespace = f"{STANDBY}.tpch"
        tpch.check("standby", TABLES)

        statuses = standby.promote(datetime.now(UTC), is_source_lost=False)
        assert {status.state for status in statuses} == {State.PROMOTED}
        tpch.check("promote", TABLES)
        tpch.change()
        tpch.check("run after the promotion", CHANGED)


def count_deletion_vectors(spark: SparkSession, table: str) -> int:
    return spark.sql(f"SELECT 1 FROM {table}.delete_files WHERE file_format = 'PUFFIN'").count()


def read_lineage(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    """Return number and checksum of the keys with their row ids and the sequence numbers of their last change."""
    spark.catalog.refreshTable(table)
    rows = spark.sql(
        f"SELECT count(_row_id), count(DISTINCT _row_id), sum(crc32(concat_ws('|', o_orderkey, _row_id, "
        f"_last_updated_sequence_number))) FROM {table}"
    ).collect()
    assert rows[0][0] == rows[0][1] > 0
    return [tuple(row) for row in rows]
