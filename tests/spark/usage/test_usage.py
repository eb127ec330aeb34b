"""`lakewright-spark usage` on real tables: the counts match the objects in S3. No JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.cli import app
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.pyiceberg_client.table_details import TableDetails
from lakewright_spark.pyiceberg_client.usage import TableSize, UsageReport, WarehouseUsage, measure_usage, total
from lakewright_spark.table_identifier import TableIdentifier
from projects import Project
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from typer.testing import CliRunner

ROWS = pa.table({"n": pa.array(range(1000), pa.int64())})
NAMESPACES = ["usage", "usage.deep"]
STATISTICS = "ops.table_statistics"
DETAILS = TableDetails(
    uuid="",
    location="",
    metadata_location="",
    format_version=2,
    schema_id=0,
    columns=1,
    updated_at=datetime(2026, 11, 1, tzinfo=UTC),
)


@pytest.fixture
def catalog(catalog_config: CatalogConfig) -> Iterator[Catalog]:
    """Return the warehouse's catalog with namespaces of two levels; drop the test's tables afterwards."""
    catalog = open_catalog(catalog_config, "results")
    for name in (*NAMESPACES, "ops"):
        catalog.create_namespace_if_not_exists(name)
    _drop_statistics(catalog)  # of other tests
    yield catalog
    _drop_statistics(catalog)
    for name in reversed(NAMESPACES):
        for table in catalog.list_tables(name):
            catalog.drop_table(table)
        for view in catalog.list_views(name):
            catalog.drop_view(view)
        catalog.drop_namespace(name)


def create_table(catalog: Catalog, name: str, appends: int = 1) -> Table:
    table = catalog.create_table(name, schema=ROWS.schema)
    for _ in range(appends):
        table.append(ROWS)
    return table


def files(table: Table) -> dict[str, int]:
    """Return bytes by address of the data files under the table's location, as S3 lists them."""
    from pyarrow.fs import FileSelector

    io = table.io
    location = table.location().removeprefix("s3://")
    file_infos = io.fs_by_scheme("s3", None).get_file_info(FileSelector(f"{location}/data", recursive=True))
    return {f"s3://{file.path}": file.size for file in file_infos if file.is_file}


def measure(config: CatalogConfig, name: str, now: datetime | None = None) -> Any:
    (warehouse,) = measure_usage(config, now or datetime.now(UTC)).warehouses
    return next(table for table in warehouse.tables if table.table.within == tuple(name.split(".")))


def test_counts_match_the_objects_in_s3(catalog: Catalog, catalog_config: CatalogConfig) -> None:
    table = create_table(catalog, "usage.deep.grown", appends=3)
    before = files(table)
    assert len(before) == 3
    assert measure(catalog_config, "usage.deep.grown").size == TableSize(
        bytes_live=sum(before.values()),
        bytes_current=sum(before.values()),
        bytes_reclaimable=0,
        files=3,
        snapshots=3,
    )
    table.overwrite(ROWS.slice(0, 10))
    new = {path: size for path, size in files(table).items() if path not in before}
    size = measure(catalog_config, "usage.deep.grown").size
    assert (size.bytes_live, size.files) == (sum(new.values()), 1)
    assert size.bytes_reclaimable == sum(before.values())


def test_files_of_tags_are_not_reclaimable(catalog: Catalog, catalog_config: CatalogConfig) -> None:
    table = create_table(catalog, "usage.tagged")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_tag(snapshot.snapshot_id, "first").commit()
    tagged_bytes = sum(files(table).values())
    table.overwrite(ROWS)
    size = measure(catalog_config, "usage.tagged").size
    assert (size.bytes_reclaimable, size.files) == (0, 2)
    assert size.bytes_live == tagged_bytes + size.bytes_current == sum(files(table).values())


def test_table_without_snapshots(catalog: Catalog, catalog_config: CatalogConfig) -> None:
    create_table(catalog, "usage.empty", appends=0)
    assert measure(catalog_config, "usage.empty").size == TableSize()


@pytest.mark.long
def test_growth_since_the_first_statistics_in_the_window(catalog: Catalog, catalog_config: CatalogConfig) -> None:
    table = create_table(catalog, "usage.growing", appends=2)
    create_table(catalog, "usage.unknown")
    now, uuid = datetime.now(UTC), str(table.metadata.table_uuid)
    ages = {60: 7, 20: 100, 5: 200}  # bytes by days
    at = [now - timedelta(days=days) for days in ages]
    statistics = {
        "table_uuid": pa.array([uuid] * 3),
        "collected_at": pa.array(at, pa.timestamp("us", "UTC")),
        "data_bytes": pa.array([size - 1 for size in ages.values()], pa.int64()),
        "delete_bytes": pa.array([1, 1, 1], pa.int64()),
        **{
            name: pa.nulls(3, pa.int64())
            for name in ("snapshot_id", "snapshots", "data_files", "delete_files", "all_bytes")
        },
    }
    rows = pa.table(statistics)
    catalog.create_table_if_not_exists(STATISTICS, schema=rows.schema).append(rows)

    usage_of_table = measure(catalog_config, "usage.growing", now)
    assert usage_of_table.growth.bytes == sum(files(table).values()) - 100
    assert usage_of_table.growth.since == at[1]
    assert measure(catalog_config, "usage.unknown", now).growth is None
    (warehouse,) = measure_usage(catalog_config, now).warehouses
    usage_tables = tuple(table for table in warehouse.tables if table.table.namespace == ("usage",))
    assert total([replace(warehouse, tables=usage_tables)]).growth == usage_of_table.growth, (
        "only tables with statistics count"
    )


def test_views_and_totals_by_owner(
    catalog: Catalog, project: Project, catalog_config: CatalogConfig, tmp_path: Path
) -> None:
    create_table(catalog, "usage.seen")
    _create_view(project.server, catalog_config, "usage", "seeing")
    (results,) = catalog_config.warehouses
    owned = catalog_config.model_copy(update={"warehouses": [results.model_copy(update={"owner": "user:oidc~ann"})]})
    path = tmp_path / "catalog.json"
    path.write_text(owned.to_json())

    report = json.loads(_command("usage", "--json", "--config", str(path)))
    (warehouse,) = report["warehouses"]
    assert warehouse["owner"] == "user:oidc~ann"
    assert "results.usage.seeing" in warehouse["each_view"]
    (table_report,) = [table for table in warehouse["each_table"] if table["table"] == "results.usage.seen"]
    assert table_report["files"] == 1
    created, updated = (datetime.fromisoformat(table_report["details"][key]) for key in ("created_at", "updated_at"))
    assert created <= updated
    assert (table_report["details"]["format_version"], table_report["details"]["columns"]) == (2, 1)
    summed = sum(table["bytes_live"] for table in warehouse["each_table"])
    assert report["total"]["bytes_live"] == warehouse["bytes_live"] == summed
    (owner,) = report["owners"]
    assert (owner["owner"], owner["bytes_live"], owner["views"]) == ("user:oidc~ann", summed, warehouse["views"])

    output = _command("usage", "--tables", "--details", "--config", str(path))
    assert "partitioned by" in output
    assert "results.usage.seen" in output
    assert "all of user:oidc~ann" in output
    assert "tenant spark-tests" in output


def test_limits_warn_from_80_percent_on(catalog: Catalog, catalog_config: CatalogConfig, tmp_path: Path) -> None:
    table = create_table(catalog, "usage.deep.limited", appends=4)
    size = sum(files(table).values())
    (results,) = catalog_config.warehouses
    limits = {"namespaces": {"usage": {"bytes": size, "files": 5, "tables": 100}}}
    limited = results.model_validate({**results.model_dump(), "limits": limits})
    path = tmp_path / "catalog.json"
    path.write_text(catalog_config.model_copy(update={"warehouses": [limited]}).to_json())

    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["usage", "--json", "--config", str(path)])
    uses = [(use["namespace"], use["used"], use["state"]) for use in json.loads(done.stdout)["limits"]]
    assert uses == [("usage", size, "reached"), ("usage", 4, "near"), ("usage", 1, "below")]
    assert "namespace results.usage is near its limit: 4 of 5 files (80.0 %)" in done.stderr
    assert "namespace results.usage has reached its limit: " in done.stderr
    assert "limit of" in _command("usage", "--config", str(path))


def test_table_with_missing_files(catalog: Catalog, catalog_config: CatalogConfig, tmp_path: Path) -> None:
    broken = create_table(catalog, "usage.broken")
    create_table(catalog, "usage.sound")
    snapshot = broken.current_snapshot()
    assert snapshot is not None
    broken.io.delete(snapshot.manifest_list)
    path = tmp_path / "catalog.json"
    path.write_text(catalog_config.to_json())

    done = CliRunner().invoke(app, ["usage", "--json", "--config", str(path)])
    assert "results.usage.broken" in str(done.exception)
    (warehouse,) = json.loads(done.stdout)["warehouses"]
    assert list(warehouse["unread"]) == ["results.usage.broken"]
    assert "results.usage.sound" in {table["table"] for table in warehouse["each_table"]}


def test_totals_by_owner_over_warehouses() -> None:
    def warehouse(name: str, owner: str | None, *sizes: int) -> WarehouseUsage:
        from lakewright_spark.pyiceberg_client.usage import TableUsage

        tables = [
            TableUsage(TableIdentifier(name, ("n",), str(at)), TableSize(files=n), DETAILS)
            for at, n in enumerate(sizes)
        ]
        return WarehouseUsage(name, owner, tuple(tables), ())

    parts = (warehouse("a", "ann", 1, 2), warehouse("b", None, 4), warehouse("c", "ann", 8))
    report = UsageReport("acme", datetime.now(UTC), parts)

    assert {owner: size.files for owner, size in report.owners.items()} == {"ann": 11, None: 4}
    assert (report.total.files, report.total.tables) == (15, 4)


def _command(*arguments: str) -> str:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def _create_view(server: httpx.Client, config: CatalogConfig, namespace: str, name: str) -> None:
    """Create a view with the request that Spark sends; PyIceberg creates none."""
    (warehouse,) = config.warehouses
    body = {
        "name": name,
        "schema": {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 0, "name": "n", "required": False, "type": "long"}],
        },
        "view-version": {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "default-namespace": [namespace],
            "representations": [{"type": "sql", "sql": "SELECT n FROM seen", "dialect": "spark"}],
        },
        "properties": {},
    }
    response = server.post(f"/catalog/v1/{warehouse.id}/namespaces/{namespace}/views", json=body)
    assert response.status_code == 200, response.text


def _drop_statistics(catalog: Catalog) -> None:
    if catalog.table_exists(STATISTICS):
        catalog.drop_table(STATISTICS)
