"""TPC-H through the life of its tables: migrate, run, maintain, read, standby, promote, with equal contents.

LAKEWRIGHT_FULL=1 makes it scale 1 instead of 0.01, and maintains all tables.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from jdbc_catalog import jdbc_catalog_config
from lakewright_spark.maintenance.job_runner import run_job, session_properties
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.verify import Depth
from lakewright_spark.policies.model import JOBS, TablePolicies
from lakewright_spark.standby.actions import Standby, State
from lakewright_spark.table_identifier import TableIdentifier
from migration_catalogs import NEW, OLD, build_catalogs
from own_jvm import start_own_session
from projects import Project

from benchmarks.tpch import CHANGED, TABLES, Tpch
from tests.real_servers import leave_out

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
SCALE = 1 if FULL else 0.01
STANDBY = "copies"
MAINTAINED = TABLES if FULL else ("lineitem", "nation")
"""A changed table, and a table that is written once."""
LATER = timedelta(days=10)
"""Snapshots and orphan files are old enough by then."""

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(7200 if FULL else 1800)]


def test_contents_are_equal_at_every_step(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    if catalogs.target.auth.kind != "none":
        leave_out("reads a warehouse through a second Spark catalog, which has no credential")
    (old,) = catalogs.source.warehouses
    (new,) = catalogs.target.warehouses
    keys = {"s3": old.s3, "s3_keys": old.s3_keys}
    target = catalogs.target.model_copy(update={"warehouses": [new.model_copy(update=keys)]})
    database = jdbc_catalog_config(project.sandbox, f"sqlite:///{tmp_path}/standby.db", monkeypatch)
    copies = database.warehouses[0].model_copy(update={"name": STANDBY})
    standby_config = database.model_copy(update={"warehouses": [copies]})
    properties = {
        **catalogs.target.spark_properties(),
        **session_properties(catalogs.target, NEW),
        **standby_config.spark_properties(),
        **standby_config.spark_secrets(),
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

        tpch.change()
        tpch.check("run")

        for name in MAINTAINED:
            table = TableIdentifier(NEW, ("tpch",), name)
            for job in JOBS:
                run_job(job, spark, table, TablePolicies(), dry_run=False, now=datetime.now(UTC) + LATER)
        tpch.check("maintain", TABLES)
        rows = catalogs.open_target().load_table("tpch.lineitem").scan(selected_fields=("l_orderkey",)).to_arrow()
        assert tpch.database.table("lineitem").count("*").fetchall() == [(rows.num_rows,)], "read"

        standby = Standby.open(target, NEW, standby_config, STANDBY, "tpch.*")
        standby.copy(Depth.FULL, datetime.now(UTC))
        tpch.change()
        standby.copy(Depth.METADATA, datetime.now(UTC))
        tpch.namespace = f"{STANDBY}.tpch"
        tpch.check("standby", TABLES)

        statuses = standby.promote(datetime.now(UTC), is_source_lost=False)
        assert {status.state for status in statuses} == {State.PROMOTED}
        tpch.check("promote", TABLES)
        tpch.change()
        tpch.check("run after the promotion", CHANGED)
