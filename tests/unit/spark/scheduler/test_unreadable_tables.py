"""One table or namespace that cannot be read stops no work on the others, and is reported in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import CatalogUnreachableError, MaintenanceFailedError
from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.pyiceberg_client import usage
from lakewright_spark.pyiceberg_client.table_metadata import load_metadata
from lakewright_spark.scheduler import planning
from lakewright_spark.scheduler import runner as application
from lakewright_spark.scheduler.plan import WarehousePlan, plan
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.ops_tables import append
from lakewright_spark.scheduler.run_log.orphan_candidates import read_oldest_candidates
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.runner import MaintenanceRunner
from lakewright_spark.scheduler.table_discovery import Filters
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ForbiddenError, ServerError, ValidationError
from pyiceberg.table import Table

NOW = datetime.now(UTC)
ROWS = pa.table({"n": [1, 2, 3]})


def to_path(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def rewrite(table: Table, change: Callable[[dict[str, Any]], object]) -> None:
    path = to_path(table.metadata_location)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def add_variant(table: Table) -> None:
    def change(document: dict[str, Any]) -> None:
        document |= {"format-version": 3, "next-row-id": 0}
        document["schemas"][0]["fields"].append({"id": 2, "name": "v", "type": "variant", "required": False})

    rewrite(table, change)


def delete_metadata(table: Table) -> None:
    to_path(table.metadata_location).unlink()


def truncate_metadata(table: Table) -> None:
    to_path(table.metadata_location).write_text('{"format-version": 2, "table-uuid": ')


def delete_manifest_list(table: Table) -> None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    to_path(snapshot.manifest_list).unlink()


def add_lost_ref(table: Table) -> None:
    rewrite(table, lambda document: document["refs"].update({"audit": {"type": "tag", "snapshot-id": 99}}))


def lose_current_snapshot(table: Table) -> None:
    rewrite(table, lambda document: document.update({"current-snapshot-id": 98}))


def close_namespace(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog.create_namespace("closed")
    list_tables = catalog.list_tables

    def refuse(namespace: tuple[str, ...]) -> list[Any]:
        if tuple(namespace) == ("closed",):
            raise ForbiddenError("NamespaceActionForbidden: list_tables")
        return list_tables(namespace)

    monkeypatch.setattr(catalog, "list_tables", refuse)


DAMAGES = [
    pytest.param(delete_metadata, "a file is missing: .*metadata.json", id="missing metadata"),
    pytest.param(truncate_metadata, "metadata cannot be read: Invalid JSON", id="malformed metadata"),
    pytest.param(add_lost_ref, "tag audit refers to snapshot 99, which does not exist", id="lost ref"),
    pytest.param(lose_current_snapshot, "current snapshot 98 does not exist", id="lost snapshot"),
]


@pytest.fixture
def catalog(local_catalog: SqlCatalog) -> SqlCatalog:
    """Return a catalog with three tables; tests damage the second one."""
    for name in ("first", "odd", "third"):
        local_catalog.create_table(f"sales.{name}", ROWS.schema).append(ROWS)
    return local_catalog


def plan_all(config: CatalogConfig, catalog: Catalog) -> WarehousePlan:
    return plan(config, "local", catalog, filters=Filters(), histories={}, now=NOW)


@pytest.mark.parametrize(("damage", "reason"), DAMAGES)
def test_plan_continues_past_an_unreadable_table(
    local_config: CatalogConfig, catalog: SqlCatalog, damage: Callable[[Table], None], reason: str
) -> None:
    damage(catalog.load_table("sales.odd"))
    warehouse_plan = plan_all(local_config, catalog)
    assert [plan.facts.table.name for plan in warehouse_plan.tables] == ["first", "third"]
    ((table, message),) = warehouse_plan.problems.items()
    assert str(table) == "local.sales.odd"
    assert "\n" not in message
    assert re.search(reason, message), message


def test_variant_column_holds_nothing_back(local_config: CatalogConfig, catalog: SqlCatalog) -> None:
    """PyIceberg refuses its metadata, and its location is needed before files of any table are deleted."""
    add_variant(catalog.load_table("sales.odd"))
    with pytest.raises(ValidationError, match="variant"):
        catalog.load_table("sales.odd")
    warehouse_plan = plan_all(local_config, catalog)
    assert (warehouse_plan.problems, warehouse_plan.shared) == ({}, {})
    assert {plan.facts.table.name: {decision.job for decision in plan.due} for plan in warehouse_plan.tables} == {
        name: {"orphan-files", "statistics"} for name in ("first", "odd", "third")
    }
    variants = load_metadata(catalog, ("sales", "odd"))
    assert [(field.name, str(field.field_type)) for field in variants.schema().fields] == [
        ("n", "long"),
        ("v", "unknown"),
    ]
    assert usage.measure(variants) == usage.measure(catalog.load_table("sales.first"))
    with pytest.raises(NotImplementedError):
        variants.transaction().set_properties({"a": "b"}).commit_transaction()
    assert '"variant"' in to_path(variants.metadata_location).read_text(), "the column keeps its type"


@pytest.mark.parametrize(
    "kind",
    [
        "variant",
        {"type": "struct", "fields": [{"id": 3, "name": "inner", "type": "variant", "required": True}]},
        {"type": "list", "element-id": 3, "element": "variant", "element-required": True},
        {"type": "map", "key-id": 3, "key": "string", "value-id": 4, "value": "variant", "value-required": True},
    ],
)
def test_nested_columns_of_unknown_types(catalog: SqlCatalog, kind: object) -> None:
    def change(document: dict[str, Any]) -> None:
        document |= {"format-version": 3, "next-row-id": 0}
        document["schemas"][0]["fields"].append({"id": 2, "name": "v", "type": kind, "required": False})

    rewrite(catalog.load_table("sales.odd"), change)
    assert "unknown" in str(load_metadata(catalog, ("sales", "odd")).schema().find_type("v"))


def test_unread_location_blocks_deletion_by_location(local_config: CatalogConfig, catalog: SqlCatalog) -> None:
    """The unreadable table may have files under the location of any other table."""
    delete_metadata(catalog.load_table("sales.odd"))
    warehouse_plan = plan_all(local_config, catalog)
    orphans = {
        decision.verdict
        for plan in warehouse_plan.tables
        for decision in plan.decisions
        if decision.job == "orphan-files"
    }
    statistics = {
        decision.verdict
        for plan in warehouse_plan.tables
        for decision in plan.decisions
        if decision.job == "statistics"
    }
    assert (orphans, statistics) == ({"held"}, {"due"})
    assert all("location of local.sales.odd is unknown" in reason for reason in warehouse_plan.shared.values())


def test_plan_skips_a_table_dropped_meanwhile(
    local_config: CatalogConfig, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = catalog.list_tables("sales")
    catalog.drop_table("sales.odd")
    monkeypatch.setattr(catalog, "list_tables", lambda namespace: names)
    warehouse_plan = plan_all(local_config, catalog)
    assert [plan.facts.table.name for plan in warehouse_plan.tables] == ["first", "third"]
    assert warehouse_plan.problems == {}


def test_plan_continues_past_an_unlistable_namespace(
    local_config: CatalogConfig, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_namespace(catalog, monkeypatch)
    warehouse_plan = plan_all(local_config, catalog)
    assert len(warehouse_plan.tables) == 3
    assert {str(name): reason for name, reason in warehouse_plan.problems.items()} == {
        "local.closed.*": "this identity may not read it: NamespaceActionForbidden: list_tables"
    }


def test_plan_stops_if_the_catalog_is_down(
    local_config: CatalogConfig, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Any:
        raise ConnectionError("refused")

    listing = catalog.list_namespaces
    calls: list[object] = []

    def list_once(*arguments: Any) -> Any:
        calls.append(arguments)
        return listing(*arguments) if len(calls) < 3 else refuse()

    monkeypatch.setattr(catalog, "list_namespaces", list_once)
    monkeypatch.setattr(catalog, "load_table", refuse)
    with pytest.raises(CatalogUnreachableError, match="does not respond: refused"):
        plan_all(local_config, catalog)


def test_maintain_reports_an_unreadable_table_in_one_line(
    local_config: CatalogConfig, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is in `ops.job_runs`, in the outcome and sent to observers; other tables are planned."""
    delete_metadata(catalog.load_table("sales.odd"))
    monkeypatch.setattr(application, "open_catalog", lambda config, name: catalog)
    observed_runs: list[RunRecord] = []
    outcome = MaintenanceRunner(local_config, Filters(jobs=("staged-files",)), observers=[observed_runs.append]).run()
    (run,) = job_runs.list_runs(catalog, "local")
    assert (str(run.table), run.job, run.state) == ("local.sales.odd", "plan", RunState.FAILED)
    assert run.reason.startswith("a file is missing")
    assert [ended.reason for ended in observed_runs if ended.state.has_ended] == [run.reason]
    error = outcome.error()
    assert isinstance(error, MaintenanceFailedError)
    assert str(error).startswith("1 table or namespace could not be planned: local.sales.odd: a file is missing")
    assert outcome.to_json()["undecided"].keys() == {"local.sales.odd"}


def test_maintain_continues_without_readable_job_runs(
    local_config: CatalogConfig, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its own table, every job of the user's tables counts as never run."""
    monkeypatch.setattr(application, "open_catalog", lambda config, name: catalog)
    filters = Filters(jobs=("staged-files",))
    record = RunRecord(
        runner="r",
        table=next(iter(plan_all(local_config, catalog).tables)).facts.table,
        table_uuid="u",
        job="statistics",
        queued_at=NOW,
    )
    job_runs.append(catalog, [record], NOW)
    delete_metadata(catalog.load_table("ops.job_runs"))
    outcome = MaintenanceRunner(local_config, filters).run()
    assert {plan.facts.table.name for plan in outcome.plans[0].tables} >= {"first", "odd", "third"}
    assert any("ops.job_runs" in warning for warning in outcome.warnings)


def test_damaged_job_runs_delete_no_candidates(
    local_config: CatalogConfig, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: candidates were dropped before they were due, since no history named them."""
    monkeypatch.setattr(application, "open_catalog", lambda config, name: catalog)
    table = plan_all(local_config, catalog).tables[0].facts
    first_seen = NOW - timedelta(days=2)
    row = {"table_name": "t", "table_uuid": table.uuid, "file_path": "f", "first_seen": first_seen}
    append(catalog, CANDIDATES, [row])
    queued = RunRecord(runner="r", table=table.table, table_uuid=table.uuid, job="statistics", queued_at=NOW)
    job_runs.append(catalog, [queued], NOW)
    delete_metadata(catalog.load_table("ops.job_runs"))
    outcome = MaintenanceRunner(local_config, Filters(jobs=("staged-files",))).run()
    assert read_oldest_candidates(catalog) == {table.uuid: first_seen}
    assert any("old candidates remain" in warning for warning in outcome.warnings)


def test_unreadable_job_runs_stop_one_warehouse(
    local_config: CatalogConfig, catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the run ended for all warehouses."""
    closed = SqlCatalog("closed", uri=f"sqlite:///{tmp_path}/closed.db", warehouse=f"file://{tmp_path}/closed")
    load_table = closed.load_table

    def refuse(identifier: tuple[str, ...]) -> Table:
        if identifier == ("ops", "job_runs"):
            raise ServerError("InternalServerError: try again")
        return load_table(identifier)

    monkeypatch.setattr(closed, "load_table", refuse)
    warehouse = CatalogWarehouse(name="closed", location="s3://unused/closed")
    config = local_config.model_copy(update={"warehouses": [warehouse, *local_config.warehouses]})
    monkeypatch.setattr(application, "open_catalog", lambda _, name: {"closed": closed, "local": catalog}[name])
    outcome = MaintenanceRunner(config, Filters(jobs=("staged-files",))).run()
    assert [plan.warehouse for plan in outcome.plans] == ["local"]
    assert "closed" in outcome.unavailable.failed
    assert isinstance(outcome.error(), MaintenanceFailedError)


def test_maintain_repeats_nothing_after_a_brief_failure(
    local_config: CatalogConfig, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty history, every job of every table would be due."""

    def refuse(*_: object) -> None:
        raise ServerError("InternalServerError: try again")

    monkeypatch.setattr(application, "open_catalog", lambda config, name: catalog)
    monkeypatch.setattr(planning, "load_histories", refuse)
    with pytest.raises(CatalogUnreachableError, match="try again"):
        MaintenanceRunner(local_config, Filters(jobs=("staged-files",))).run()


UNMEASURED = [*DAMAGES[:2], pytest.param(delete_manifest_list, "a file is missing: .*avro", id="missing manifest list")]


@pytest.mark.parametrize(("damage", "reason"), UNMEASURED)
def test_usage_continues_past_an_unreadable_table(
    local_config: CatalogConfig,
    catalog: SqlCatalog,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Table], None],
    reason: str,
) -> None:
    monkeypatch.setattr(usage, "open_catalog", lambda config, name: catalog)
    damage(catalog.load_table("sales.odd"))
    (warehouse,) = usage.measure_usage(local_config, NOW).warehouses
    assert [usage.table.name for usage in warehouse.tables] == ["first", "third"]
    ((table, message),) = warehouse.unread
    assert str(table) == "local.sales.odd"
    assert re.search(reason, message), message


def test_usage_continues_past_an_unlistable_namespace(
    local_config: CatalogConfig, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "open_catalog", lambda config, name: catalog)
    close_namespace(catalog, monkeypatch)
    (warehouse,) = usage.measure_usage(local_config, NOW).warehouses
    assert len(warehouse.tables) == 3
    assert [str(name) for name, _ in warehouse.unread] == ["local.closed.*"]


def test_usage_continues_without_readable_statistics(
    local_config: CatalogConfig, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "open_catalog", lambda config, name: catalog)
    catalog.create_namespace("ops")
    delete_metadata(catalog.create_table("ops.table_statistics", ROWS.schema))
    (warehouse,) = usage.measure_usage(local_config, NOW).warehouses
    assert len(warehouse.tables) == 3
    assert [str(name) for name, _ in warehouse.unread] == ["local.ops.table_statistics"]
