"""Daily usage over simulated months: the rows match the objects in S3 to the byte. No JVM."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import httpx
import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.limits import DataLimits, TenantLimits, WarehouseLimits
from lakewright_spark.cli import app
from lakewright_spark.maintenance.jobs.statistics import TABLES
from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.pyiceberg_client.limit_checks import LimitUse
from lakewright_spark.pyiceberg_client.usage import measure
from lakewright_spark.scheduler.run_log.compute_usage import PodDay, write_pod_days
from lakewright_spark.scheduler.run_log.daily_usage import DailyUsage, list_days
from lakewright_spark.scheduler.run_log.ops_tables import append
from lakewright_spark.scheduler.runner import MaintenanceRunner
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.scheduler.usage_recording import record_usage
from projects import Project
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from typer.testing import CliRunner

START = datetime.now(UTC).replace(hour=3, minute=0, second=0, microsecond=0) - timedelta(days=92)
ROWS = pa.table({"n": pa.array(range(1000), pa.int64())})
SOFT = {"delete-profile": {"type": "soft", "expiration-seconds": 86_400}}


@pytest.fixture
def config(project: Project) -> CatalogConfig:
    """Return a configuration with a warehouse of Ann's, in which dropped tables can be restored."""
    warehouse = project.warehouse(f"daily-{uuid4().hex[:6]}").model_copy(update={"owner": "user:oidc~ann"})
    response = project.server.post(f"/management/v1/warehouse/{warehouse.id}/delete-profile", json=SOFT)
    assert response.is_success, response.text
    return project.config(warehouse)


@pytest.fixture
def catalog(config: CatalogConfig) -> Catalog:
    return open_catalog(config, config.warehouses[0].name)


def list_data_bytes(catalog: Catalog, *names: tuple[str, ...]) -> int:
    """Return the bytes of all data files of these tables, as S3 lists them."""
    from pyarrow.fs import FileSelector

    total = 0
    for name in names:
        table = catalog.load_table(name)
        folder = f"{table.location().removeprefix('s3://')}/data"
        selector = FileSelector(folder, recursive=True, allow_not_found=True)
        total += sum(file.size for file in table.io.fs_by_scheme("s3", None).get_file_info(selector) if file.is_file)
    return total


def record_statistics(catalog: Catalog, table: Table) -> int:
    """Record the size of a table, as job `statistics` does, and return its bytes."""
    size = measure(table)
    row = {column.split()[0]: None for column in TABLES.columns.split(",")}
    all_bytes = size.bytes_live + size.bytes_reclaimable
    uuid = str(table.metadata.table_uuid)
    append(catalog, TABLES, [{**row, "table_uuid": uuid, "collected_at": START, "all_bytes": all_bytes}])
    return all_bytes


def test_rows_of_three_months_are_exact(catalog: Catalog, config: CatalogConfig, tmp_path: Path) -> None:
    table = catalog.create_table("operator-port-result.growing", schema=ROWS.schema)
    expected: dict[str, int] = {}
    for age in range(0, 92, 23):
        table.overwrite(ROWS) if age % 2 else table.append(ROWS)
        now = START + timedelta(days=age)
        names = [name for space in catalog.list_namespaces() for name in catalog.list_tables(space)]
        expected[f"{now:%F}"] = list_data_bytes(catalog, *names)
        usages, problems = record_usage(config, {catalog.name: catalog}, now)
        assert problems == []
        assert [usage.owner for usage in usages] == ["user:oidc~ann"]

    days = list_days(catalog)
    assert {usage.day: usage.bytes_live + usage.bytes_reclaimable for usage in days} == expected
    assert all(usage.bytes_reclaimable > 0 for usage in days[1:])
    assert {(usage.requests, usage.cu_hours) for usage in days} == {(None, None)}, "nothing reports them"

    file = tmp_path / "catalog.json"
    file.write_text(config.to_json())
    printed = CliRunner().invoke(app, ["daily-usage", "--since", "30d", "--json", "--config", str(file)])
    assert [day["day"] for day in json.loads(printed.stdout)] == list(expected)[-1:]
    text = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["daily-usage", "--config", str(file)]).stdout
    assert "user:oidc~ann" in text


def test_dropped_tables_and_orphans_count_until_they_are_gone(catalog: Catalog, config: CatalogConfig) -> None:
    table = catalog.create_table("operator-port-result.kept", schema=ROWS.schema)
    table.append(ROWS)
    dropped = catalog.create_table("operator-port-result.dropped", schema=ROWS.schema)
    dropped.append(ROWS)
    dropped_bytes = record_statistics(catalog, dropped)
    unmeasured = catalog.create_table("operator-port-result.unmeasured", schema=ROWS.schema)
    for name in (dropped.name(), unmeasured.name()):
        catalog.drop_table(name)
    lost = f"{table.location()}/data/lost.parquet"
    with table.io.new_output(lost).create() as stream:
        stream.write(b"lost file")
    uuid = str(table.metadata.table_uuid)
    row = {
        "table_name": f"{catalog.name}.operator-port-result.kept",
        "table_uuid": uuid,
        "file_path": lost,
        "first_seen": START,
    }
    append(catalog, CANDIDATES, [row])

    usages, problems = record_usage(config, {catalog.name: catalog}, START)
    assert problems == []
    (usage,) = usages
    assert (usage.bytes_soft_deleted, usage.dropped_unmeasured) == (dropped_bytes, 1)
    assert usage.bytes_orphan == len(b"lost file")

    table.io.delete(lost)
    usages, problems = record_usage(config, {catalog.name: catalog}, START)
    assert problems == []
    (usage,) = usages
    assert usage.bytes_orphan == 0

    # The credentials of a table reach its own location only.
    append(catalog, CANDIDATES, [{**row, "file_path": f"{dropped.location()}/data/lost.parquet"}])
    (usage,), problems = record_usage(config, {catalog.name: catalog}, START)
    assert (usage.bytes_orphan, problems) == (None, [])


def test_dropped_tables_are_unknown_if_they_cannot_be_listed(config: CatalogConfig, catalog: Catalog) -> None:
    hidden = config.model_copy(update={"warehouses": [config.warehouses[0].model_copy(update={"id": None})]})
    (usage,), _ = record_usage(hidden, {catalog.name: catalog}, START)
    assert usage.bytes_soft_deleted is None


def test_maintain_records_the_day_without_filters(config: CatalogConfig, catalog: Catalog) -> None:
    """The job has nothing to do in an empty warehouse, so Spark does not start."""
    observed: list[str] = []
    jobs = Filters(jobs=("staged-files",))
    MaintenanceRunner(config, jobs, dry_run=True, clock=lambda: START).run()
    MaintenanceRunner(config, replace(jobs, table=re.compile("x")), clock=lambda: START).run()
    assert list_days(catalog) == []
    outcome = MaintenanceRunner(
        config,
        jobs,
        clock=lambda: START,
        usage_observers=[lambda usages, _: observed.extend(usage.day for usage in usages)],
    ).run()
    assert outcome.warnings == []
    assert [usage.day for usage in list_days(catalog)] == observed == [f"{START:%F}"]


def test_maintain_observes_hours_and_limits(config: CatalogConfig, catalog: Catalog) -> None:
    """Limits of the tenant and hours need all of its warehouses: a pod may be recorded in several."""
    catalog.create_namespace("sales")
    catalog.create_table(("sales", "orders"), schema=ROWS.schema).append(ROWS)
    pods = [PodDay(day=f"{START:%F}", unit="notebook", pod="pod", seconds=5400)]
    write_pod_days(catalog, pods, START)
    limits = WarehouseLimits(files=100, compute=3, namespaces={"sales": DataLimits(tables=2)})
    warehouse = config.warehouses[0].model_copy(update={"limits": limits})
    limited_config = config.model_copy(update={"warehouses": [warehouse], "limits": TenantLimits(compute=10)})
    hours: list[float | None] = []
    uses: dict[tuple[str | None, str | None, str], tuple[int, int]] = {}

    def observe(usages: Sequence[DailyUsage], limit_uses: Sequence[LimitUse]) -> None:
        hours[:] = [usage.cu_hours for usage in usages]
        uses.clear()
        uses.update({(use.warehouse, use.namespace, use.quantity): (use.used, use.limit) for use in limit_uses})

    jobs = Filters(jobs=("staged-files",))
    runner = MaintenanceRunner(limited_config, jobs, clock=lambda: START, usage_observers=[observe])
    runner.run()

    (day,) = list_days(catalog)
    assert (hours, day.cu_hours) == ([1.5], None), "the table has no hours: later measurements would be lost"
    expected = {
        (None, None, "compute"): (1, 10),
        (catalog.name, None, "compute"): (1, 3),
        (catalog.name, None, "files"): (day.files, 100),
        (catalog.name, "sales", "tables"): (1, 2),
    }
    assert uses == expected
    replace(runner, named_warehouses=[catalog.name]).run()
    assert uses.keys() == expected.keys() - {(None, None, "compute"), (catalog.name, None, "compute")}
    assert hours == [None]


def test_unreachable_catalog_is_a_warning(config: CatalogConfig, catalog: Catalog) -> None:
    down = config.model_copy(update={"uri": "http://127.0.0.1:9/catalog"})
    usages, (problem,) = record_usage(down, {catalog.name: catalog}, START)
    assert usages == []
    assert problem.startswith(f"the usage of warehouse {catalog.name} is not in ops.daily_usage: ")
    assert httpx.get(f"{config.uri.removesuffix('/catalog')}/health").is_success


def test_rows_have_amounts_of_limited_namespaces(catalog: Catalog, config: CatalogConfig) -> None:
    names = [("sales",), ("sales", "daily"), ("other",)]
    for name in names:
        catalog.create_namespace(name)
        catalog.create_table((*name, "orders"), schema=ROWS.schema).append(ROWS)
    limits = WarehouseLimits(namespaces={"sales": DataLimits(bytes=1), "empty": DataLimits(tables=1)})
    warehouse = config.warehouses[0].model_copy(update={"limits": limits})
    limited_config = config.model_copy(update={"warehouses": [warehouse]})

    (usage,), problems = record_usage(limited_config, {catalog.name: catalog}, START)

    assert problems == []
    size = list_data_bytes(catalog, *((*name, "orders") for name in names[:2]))
    assert json.loads(usage.limited_namespaces or "") == {
        "sales": {"bytes": size, "files": 2, "tables": 2},
        "empty": {"bytes": 0, "files": 0, "tables": 0},
    }
    assert list_days(catalog)[-1].limited_namespaces == usage.limited_namespaces
