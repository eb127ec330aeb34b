"""Clean-up leaves executions alone that start again meanwhile, and never forgets tables that it could not drop."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import CatalogUnreachableError, JobFailedError
from lakewright_spark.execution_registry.records import ExecutionRecord, ExecutionStatus, WrittenTable
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.pyiceberg_client.catalog_cache import CatalogCache
from lakewright_spark.result_uris import Execution, Port, ResultNamespaces, ResultUri
from lakewright_spark.results.cleanup import Cleaner
from pyiceberg.catalog.sql import SqlCatalog

DAY = timedelta(days=1)
NOW = datetime.now(UTC)


class Tenant:
    """A tenant with executions of workflow 7 in the warehouses `first` and `second`, each in its own local catalog."""

    def __init__(self, folder: Path) -> None:
        self.registry = ExecutionRegistry("acme", f"sqlite:///{folder}/executions.db")
        self.unreachable = ""
        """Name of a warehouse that does not respond."""
        self.on_open: Callable[[], object] = lambda: None
        """Called when a clean-up opens a warehouse: it has read the rows, and has dropped nothing yet."""
        self._catalogs = {
            name: SqlCatalog(name, uri=f"sqlite:///{folder}/{name}.db", warehouse=f"file://{folder}/{name}")
            for name in ("first", "second")
        }

    @property
    def cleaner(self) -> Cleaner:
        """Return a clean-up that begins now, as each command has its own."""
        warehouses = [CatalogWarehouse(name=name, location="s3://unused/warehouse") for name in self._catalogs]
        config = CatalogConfig(kind="jdbc", tenant="acme", uri="sqlite:////unused.db", warehouses=warehouses)
        return Cleaner(config, self.registry, catalogs=CatalogCache(self._open))

    def begin(self, execution: int, warehouse: str, now: datetime = NOW) -> ExecutionRecord:
        return self.registry.begin(7, execution, computing_unit="cu", warehouse=warehouse, now=now)

    def finish(self, execution: int, status: ExecutionStatus, now: datetime = NOW) -> None:
        self.registry.finish(7, execution, status, now=now)

    def run(self, execution: int, warehouse: str) -> ResultUri:
        """Write a result, and record the execution as killed two days ago: it recorded no tables."""
        self.begin(execution, warehouse, NOW - 3 * DAY)
        uri = Execution(7, execution, warehouse).result(Port("Scan-1"))
        namespace = ResultNamespaces().look_up(uri)
        self._catalogs[warehouse].create_namespace_if_not_exists(namespace)
        self._catalogs[warehouse].create_table((namespace, uri.table), pa.schema([("n", pa.int64())]))
        self.finish(execution, ExecutionStatus.KILLED, NOW - 2 * DAY)
        return uri

    def find(self, execution: int) -> ExecutionRecord:
        record = self.registry.find(7, execution)
        assert record is not None
        return record

    def has_table(self, uri: ResultUri) -> bool:
        return self._catalogs[uri.warehouse or ""].table_exists((ResultNamespaces().look_up(uri), uri.table))

    def _open(self, config: CatalogConfig, name: str) -> SqlCatalog:
        if name == self.unreachable:
            raise CatalogUnreachableError(f"warehouse {name} does not respond")
        self.on_open()
        return self._catalogs[name]


@pytest.fixture
def tenant(tmp_path: Path) -> Tenant:
    return Tenant(tmp_path)


def test_sweep_skips_an_execution_that_starts_again(tenant: Tenant) -> None:
    uris = [tenant.run(number, "first") for number in (1, 2)]
    tenant.on_open = lambda: tenant.begin(2, "first")
    swept = tenant.cleaner.sweep(NOW - DAY)
    assert ([record.execution for record in swept.executions], swept.failed) == ([1], [])
    assert [tenant.has_table(uri) for uri in uris] == [False, True]
    assert tenant.find(2).status is ExecutionStatus.RUNNING


def test_run_replaces_no_execution_that_starts_again(tenant: Tenant) -> None:
    uri = tenant.run(1, "first")
    new = tenant.begin(2, "first")
    tenant.on_open = lambda: tenant.begin(1, "first")
    assert tenant.cleaner.replace_previous(new, NOW - DAY).executions == []
    assert tenant.has_table(uri)
    assert tenant.find(1).replaced_at is None


def test_restart_elsewhere_remembers_the_warehouse(tenant: Tenant) -> None:
    """A restart that fails keeps the row's warehouse, so that a later restart drops the table there."""
    uri = tenant.run(5, "first")
    tenant.unreachable = "first"
    for _ in range(2):
        earlier_run = tenant.find(5)
        tenant.begin(5, "second")
        with pytest.raises(JobFailedError, match=r"cannot be dropped: warehouse first does not respond\. Make "):
            tenant.cleaner.restart(earlier_run, "second")
        tenant.finish(5, ExecutionStatus.FAILED)
    assert tenant.find(5).warehouse == "first"
    tenant.unreachable = ""
    earlier_run = tenant.find(5)
    tenant.begin(5, "second")
    assert tenant.cleaner.restart(earlier_run, "second") == tenant.find(5)
    assert not tenant.has_table(uri)
    assert (tenant.find(5).warehouse, tenant.find(5).status) == ("second", ExecutionStatus.RUNNING)


def test_completed_execution_without_tables_is_swept(tenant: Tenant) -> None:
    """Its warehouse was removed from the configuration, and it has no tables there."""
    for number in (1, 2, 3):
        tenant.begin(number, "sold", NOW - 3 * DAY)
        tenant.finish(number, ExecutionStatus.COMPLETED, NOW - 2 * DAY)

    earlier_run = tenant.find(1)
    tenant.begin(1, "first")
    assert tenant.cleaner.restart(earlier_run, "first").warehouse == "first"
    replaced = tenant.cleaner.replace_previous(tenant.find(1), NOW - DAY)
    assert ([record.execution for record in replaced.executions], replaced.postponed) == ([2, 3], [])
    for dry_run in (True, False):
        swept = tenant.cleaner.sweep(NOW - DAY, dry_run=dry_run)
        assert ([record.execution for record in swept.executions], swept.failed) == ([2, 3], [])
    assert [record.execution for record in tenant.registry.all()] == [1]


def test_completed_execution_with_tables_remains(tenant: Tenant) -> None:
    """It has a table in a warehouse that was removed from the configuration."""
    tenant.begin(1, "sold", NOW - 3 * DAY)
    tenant.registry.record_tables(7, 1, [WrittenTable(Execution(7, 1, "sold").result(Port("Scan-1")))])
    tenant.finish(1, ExecutionStatus.COMPLETED, NOW - 2 * DAY)
    swept = tenant.cleaner.sweep(NOW - DAY)
    assert (swept.executions, [record.execution for record, _ in swept.failed]) == ([], [1])


def test_killed_execution_of_a_removed_warehouse_remains(tenant: Tenant) -> None:
    """It recorded no tables, and its warehouse cannot be listed, so it may have tables."""
    tenant.begin(1, "sold", NOW - 3 * DAY)
    for dry_run in (True, False):
        swept = tenant.cleaner.sweep(NOW - DAY, dry_run=dry_run)
        ((record, reason),) = swept.failed
        assert (swept.executions, record.execution) == ([], 1)
        assert "has no warehouse 'sold' in this configuration" in reason
    replaced = tenant.cleaner.replace_previous(tenant.begin(2, "first"), NOW - DAY)
    assert (replaced.executions, replaced.failed) == ([], [])
    assert [record.execution for record, _ in replaced.postponed] == [1]
    assert tenant.find(1).replaced_at is None
