"""`executions sweep` and `orphans` continue past results that cannot be read or dropped, and report them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError
from lakewright_spark.execution_registry.records import ExecutionStatus
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.pyiceberg_client.catalog_cache import CatalogCache
from lakewright_spark.result_uris import Execution, Port, ResultNamespaces
from lakewright_spark.results.cleanup import Cleaner, build_sweep_error
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import BadRequestError

DAY = timedelta(days=1)
NOW = datetime.now(UTC)


@pytest.fixture
def cleaner(local_config: CatalogConfig, local_catalog: SqlCatalog, tmp_path: Path) -> Cleaner:
    """Return executions 1 to 3 of workflow 7 with one result each; the second has malformed metadata."""
    registry = ExecutionRegistry("acme", f"sqlite:///{tmp_path}/executions.db")
    for number in (1, 2, 3):
        uri = Execution(7, number, "local").result(Port("Scan-1"))
        namespace = ResultNamespaces().look_up(uri)
        local_catalog.create_namespace_if_not_exists(namespace)
        table = local_catalog.create_table((namespace, uri.table), pa.schema([("n", pa.int64())]))
        if number == 2:
            Path(table.metadata_location.removeprefix("file://")).write_text("{")
        registry.begin(7, number, computing_unit="cu", warehouse="local", now=NOW - 3 * DAY)
        registry.finish(7, number, ExecutionStatus.COMPLETED, now=NOW - 2 * DAY)
    return Cleaner(local_config, registry, catalogs=CatalogCache(lambda config, name: local_catalog))


def test_sweep_continues_past_an_unreadable_result(cleaner: Cleaner) -> None:
    swept = cleaner.sweep(NOW - DAY)
    assert [record.execution for record in swept.executions] == [1, 3]
    ((record, reason),) = swept.failed
    assert record.execution == 2
    assert "cannot be read: Invalid JSON" in reason
    assert isinstance(build_sweep_error(swept), JobFailedError)


def test_orphans_are_dropped_past_an_unreadable_one(cleaner: Cleaner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakewright_spark.results.cleanup.YOUNGEST_ORPHAN", -DAY)
    for record in cleaner.registry.all():
        cleaner.registry.remove(record)
    cleaner.registry.begin(8, 1, computing_unit="cu", warehouse="local")
    orphans = cleaner.find_orphans()
    done = cleaner.drop_orphans(orphans, younger_stay=-DAY)
    assert [uri.execution.execution for uri in done.tables] == [1, 3]
    ((uri, reason),) = done.failed
    assert uri.execution.execution == 2
    assert "cannot be read: Invalid JSON" in reason
    assert "could not be read or dropped" in str(done.error())


def test_nothing_is_missing_from_an_unlistable_namespace(
    cleaner: Cleaner, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep skips and reports the warehouse, so rows of tables that may exist are kept."""

    def refuse(namespace: object) -> list[tuple[str, ...]]:
        raise BadRequestError("TooManyTables: ask for pages")

    monkeypatch.setattr(local_catalog, "list_tables", refuse)
    other = cleaner.config.warehouses[0].model_copy(update={"name": "other"})
    config = cleaner.config.model_copy(update={"warehouses": [*cleaner.config.warehouses, other]})
    empty = SqlCatalog("other", uri="sqlite:///:memory:", warehouse="file:///unused")
    catalogs = CatalogCache(lambda config, name: empty if name == "other" else local_catalog)
    both = Cleaner(config, cleaner.registry, catalogs=catalogs)
    both.registry.begin(9, 1, computing_unit="cu", warehouse="other", now=NOW - 3 * DAY)
    both.registry.finish(9, 1, ExecutionStatus.COMPLETED, now=NOW - 2 * DAY)
    swept = both.sweep(NOW - DAY)
    assert [record.workflow for record in swept.executions] == [9]
    assert [record.execution for record, _ in swept.failed] == [1, 2, 3]
    orphans = Cleaner(config, cleaner.registry, catalogs=catalogs).find_orphans()
    assert orphans.rows == []
