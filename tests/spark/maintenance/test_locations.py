"""Tables with overlapping locations: none of their files counts as an orphan."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from jdbc_catalog import jdbc_catalog_config
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.outcome import MaintenanceOutcome
from lakewright_spark.scheduler.plan import History, WarehousePlan, plan, plan_requested_job
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.catalog import Catalog

ROWS = pa.table({"n": [1, 2, 3]})
NOW = datetime.now(UTC)


@pytest.fixture
def config(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogConfig:
    return jdbc_catalog_config(sandbox, f"sqlite:///{tmp_path}/catalog.db", monkeypatch)


@pytest.fixture
def catalog(config: CatalogConfig) -> Catalog:
    catalog = open_catalog(config, "texera_iceberg")
    catalog.create_namespace("sales")
    catalog.create_namespace("other")
    return catalog


def plan_due_jobs(config: CatalogConfig, catalog: Catalog, namespace: str = ".*") -> WarehousePlan:
    """Plan jobs on tables that were checked long ago and have a due candidate each."""
    histories = {
        str(catalog.load_table(name).metadata.table_uuid): History({}, NOW - timedelta(days=9))
        for space in catalog.list_namespaces()
        for name in catalog.list_tables(space)
    }
    filters = Filters(re.compile(namespace))
    return plan(
        config, "texera_iceberg", catalog, filters=filters, histories=histories, now=NOW, stop=threading.Event()
    )


def deletions(warehouse_plan: WarehousePlan) -> dict[str, set[str]]:
    """Return the decisions on jobs that depend on locations, by table."""
    return {
        table.facts.table.name: {
            decision.verdict for decision in table.decisions if decision.job in {"orphan-files", "staged-files"}
        }
        for table in warehouse_plan.tables
    }


def test_renamed_table_and_its_successor(config: CatalogConfig, catalog: Catalog) -> None:
    first = catalog.create_table("sales.orders", ROWS.schema, location=f"{config.warehouses[0].location}/sales/orders")
    catalog.rename_table("sales.orders", "other.archive")
    catalog.create_table("sales.orders", ROWS.schema, location=first.location())
    catalog.create_table("sales.nested", ROWS.schema, location=f"{first.location()}/data/nested")
    catalog.create_table("sales.alone", ROWS.schema)
    warehouse_plan = plan_due_jobs(config, catalog)
    assert deletions(warehouse_plan) == {
        "orders": {"held"},
        "archive": {"held"},
        "nested": {"held"},
        "alone": {"due"},
    }
    assert {
        decision.verdict
        for table in warehouse_plan.tables
        for decision in table.decisions
        if decision.job == "statistics"
    } == {"due"}
    only = plan_due_jobs(config, catalog, "sales")
    outcome = MaintenanceOutcome("runner", plans=[only])
    assert {table.name for table in outcome.shared} == {"orders", "nested"}, "the other table is in another namespace"
    orders = TableIdentifier("texera_iceberg", ("sales",), "orders")
    assert "texera_iceberg.other.archive" in outcome.shared[orders]
    assert str(orders) in outcome.to_json()["shared"]
    table_plan = plan_requested_job(config, orders, "staged-files", registry=None, now=NOW)
    assert (table_plan.decisions[0].verdict, table_plan.decisions[0].reason) == ("held", outcome.shared[orders])


def test_table_inside_the_folder_of_another(config: CatalogConfig, catalog: Catalog) -> None:
    first = catalog.create_table("sales.orders", ROWS.schema)
    elsewhere = {"write.data.path": f"{first.location()}/imported"}
    catalog.create_table("sales.imported", ROWS.schema, properties=elsewhere)
    moved = catalog.create_table("sales.moved", ROWS.schema)
    moved.append(ROWS)
    catalog.create_table("sales.heir", ROWS.schema, location=f"{moved.location()}")
    catalog.drop_table("sales.moved")
    verdicts = deletions(plan_due_jobs(config, catalog))
    assert verdicts == {"orders": {"held"}, "imported": {"due"}, "heir": {"due"}}


def test_names_with_a_common_prefix_do_not_overlap(config: CatalogConfig, catalog: Catalog) -> None:
    warehouse_location = config.warehouses[0].location
    catalog.create_table("sales.a", ROWS.schema, location=f"{warehouse_location}/a")
    catalog.create_table("sales.ab", ROWS.schema, location=f"{warehouse_location}/ab")
    catalog.create_table("sales.b", ROWS.schema, location=f"{warehouse_location}/b".replace("s3://", "s3a://"))
    catalog.create_table("sales.c", ROWS.schema, location=f"{warehouse_location}/b/")
    assert deletions(plan_due_jobs(config, catalog)) == {"a": {"due"}, "ab": {"due"}, "b": {"held"}, "c": {"held"}}


def test_new_tables_get_unique_locations(config: CatalogConfig, catalog: Catalog) -> None:
    first = catalog.create_table("sales.orders", ROWS.schema)
    first.append(ROWS)
    catalog.rename_table("sales.orders", "sales.archive")
    second = catalog.create_table("sales.orders", ROWS.schema)
    assert second.location() != first.location()
    assert config.spark_properties()["spark.sql.catalog.texera_iceberg.unique-table-location"] == "true"
