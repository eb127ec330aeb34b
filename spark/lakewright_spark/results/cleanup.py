"""Clean-up of executions: drop the tables of replaced and expired executions, and orphans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import (
    AccessDeniedError,
    CatalogUnreachableError,
    JobFailedError,
    LakewrightSparkError,
    MigrationError,
    NoSuchResultError,
    RegistryError,
    WarehouseRefusedError,
)
from lakewright_spark.execution_registry.records import ExecutionRecord, Executions, ExecutionStatus, WrittenTable
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.iceberg_values import to_instant
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS, CatalogCache
from lakewright_spark.result_uris import ResultKind, ResultNamespaces, ResultUri
from lakewright_spark.results.tables import ResultTables, list_written_tables
from lakewright_spark.unavailable_warehouses import UnavailableWarehouses

YOUNGEST_ORPHAN = timedelta(hours=1)
"""Minimum time since the last change of a table without a row before it is dropped.

Its execution may be about to be registered.
"""


_TABLE_ERRORS = (
    JobFailedError,
    WarehouseRefusedError,
    NoSuchResultError,
    AccessDeniedError,
    CatalogUnreachableError,
    MigrationError,
)
"""Errors that keep the tables of a single execution; other executions are still cleaned up."""

ResultsByExecution = dict[tuple[int, int], list[ResultUri]]
"""Result tables in the tenant's warehouses, by (workflow, execution)."""


@dataclass(frozen=True)
class SweepReport:
    """Executions and tables that a sweep dropped, or would drop in a dry run."""

    executions: list[ExecutionRecord] = field(default_factory=list[ExecutionRecord])
    tables: list[ResultUri] = field(default_factory=list[ResultUri])
    failed: list[tuple[ExecutionRecord, str]] = field(default_factory=list[tuple[ExecutionRecord, str]])
    """Executions with tables that could not be dropped, and the reason; their rows remain."""
    postponed: list[tuple[ExecutionRecord, str]] = field(default_factory=list[tuple[ExecutionRecord, str]])
    """Earlier executions in other warehouses that could not be replaced, and the reason; a later run tries again."""


@dataclass(frozen=True)
class Orphans:
    """Result tables without an execution, and executions without their tables."""

    tables: list[ResultUri]
    """Result tables of executions that no registry knows."""
    rows: list[tuple[ExecutionRecord, list[ResultUri]]]
    """Executions, and their tables that no longer exist in the warehouse where they were written."""


@dataclass(frozen=True)
class DroppedOrphans:
    """Orphans that were dropped, and tables that could not be dropped."""

    tables: list[ResultUri] = field(default_factory=list[ResultUri])
    """Dropped tables."""
    rows: list[ExecutionRecord] = field(default_factory=list[ExecutionRecord])
    """Executions whose rows changed."""
    failed: list[tuple[ResultUri, str]] = field(default_factory=list[tuple[ResultUri, str]])
    """Tables that could not be dropped, and the reason."""

    def error(self) -> LakewrightSparkError | None:
        """Return the error for tables that could not be dropped; None without such tables."""
        if not self.failed:
            return None
        uri, reason = self.failed[0]
        more = f", and {len(self.failed) - 1} more" if len(self.failed) > 1 else ""
        return JobFailedError(f"{uri} remains, since it could not be read or dropped: {reason}{more}")


@dataclass(frozen=True)
class Cleaner:
    """Cleans up a tenant's executions. Drops tables with their files first, and removes a row after all its tables."""

    config: CatalogConfig
    registry: ExecutionRegistry
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces)
    catalogs: CatalogCache = field(default=CATALOGS, repr=False, compare=False)
    unavailable: UnavailableWarehouses = field(default_factory=UnavailableWarehouses, repr=False, compare=False)
    """Warehouses that were skipped so far."""

    def replace_previous(self, new: ExecutionRecord, stale_before: datetime) -> SweepReport:
        """Drop the tables of earlier executions of this workflow and unit, except runtime statistics, as Texera does.

        A running execution with a heartbeat since `stale_before` is not changed, and neither is an execution that
        starts again meanwhile. A later run drops the tables in other warehouses that cannot be used now.
        """
        previous = self.registry.list_previous(new.workflow, new.execution, new.computing_unit)
        ended = [old for old in previous if old.status.has_ended or old.updated_at < stale_before]
        swept, existing_results = SweepReport(), self._list_results(old.warehouse for old in ended)
        if reason := self._explain_unavailable(new):
            raise JobFailedError(f"{new} cannot begin: {reason}")
        for old in ended:
            if old.warehouse in self.unavailable or not self.registry.is_current(old):
                continue
            if reason := self._explain_unavailable(old):
                swept.postponed.append((old, reason))
                continue
            tried = (
                swept if old.warehouse == new.warehouse else SweepReport(tables=swept.tables, failed=swept.postponed)
            )
            if self._drop(old, existing_results, tried, except_kind=ResultKind.RUNTIME_STATISTICS):
                statistics_tables = [table for table in old.tables if table.uri.kind is ResultKind.RUNTIME_STATISTICS]
                self.registry.record_tables(old.workflow, old.execution, statistics_tables)
                self.registry.mark_replaced(old.workflow, old.execution)
                swept.executions.append(old)
        return swept

    def restart(self, record: ExecutionRecord, warehouse: str) -> ExecutionRecord:
        """Drop all tables of an earlier run under the same number, and return the record of the run in `warehouse`.

        Raises JobFailedError if a table remains. The row then keeps the warehouse of the earlier run, so that a later
        attempt or a sweep drops the table.
        """
        swept, existing_results = SweepReport(), self._list_results([record.warehouse])
        if reason := self._explain_unavailable(record):
            raise JobFailedError(
                f"{record} cannot start again, since the tables of its earlier run cannot be dropped: {reason}. Make "
                f"warehouse {record.warehouse} usable, or use another execution number"
            )
        if not self._drop(record, existing_results, swept):
            raise JobFailedError(swept.failed[0][1])
        return self.registry.record_restart(record.workflow, record.execution, warehouse)

    def sweep(self, before: datetime, *, dry_run: bool = False) -> SweepReport:
        """Drop the executions that ended before an instant, tables first. Report executions that cannot be dropped.

        An execution remains if it starts again meanwhile, or if this identity may not use its warehouse. Raises
        CatalogUnreachableError if no warehouse can be used.
        """
        records = self.registry.list_expired(before)
        swept, existing_results = SweepReport(), self._list_results(record.warehouse for record in records)
        if self.unavailable.failed:
            self.unavailable.check_any_left({record.warehouse for record in records if record.warehouse})
        for record in records:
            if record.warehouse in self.unavailable.hidden:
                continue
            if reason := self._explain_unavailable(record):
                swept.failed.append((record, reason))
                continue
            if dry_run:
                swept.tables.extend(_list_tables(record, existing_results))
                swept.executions.append(record)
                continue
            is_dropped = self.registry.is_current(record) and self._drop(record, existing_results, swept)
            if is_dropped and self.registry.remove(record):
                swept.executions.append(record)
        return swept

    def find_orphans(self, other_registries: Iterable[Executions] = ()) -> Orphans:
        """Return tables without a row, and rows without their tables.

        `other_registries` are further sources of executions, such as Texera's database.

        A table in a warehouse that the configuration does not have, or that cannot be listed, is not missing.
        """
        records = list(self.registry.all())
        recorded_executions = {(r.workflow, r.execution) for r in records}
        recorded_executions |= {(r.workflow, r.execution) for other in other_registries for r in other.all()}
        names = [warehouse.name for warehouse in self.config.warehouses]
        existing = self._list_results(names)
        self.unavailable.check_any_left(names)
        tables = [uri for run, uris in existing.items() if run not in recorded_executions for uri in uris]
        existing_paths = {(uri.warehouse, uri.path) for uris in existing.values() for uri in uris}
        readable_warehouses = {name for name in names if name not in self.unavailable}
        rows = [
            (record, missing)
            for record in records
            if record.warehouse in readable_warehouses
            and (missing := [t.uri for t in record.tables if (record.warehouse, t.uri.path) not in existing_paths])
        ]
        return Orphans(tables, rows)

    def check_knows_executions(self, other_registries: Iterable[Executions] = ()) -> None:
        """Raise RegistryError if a registry knows no execution: every result would be an orphan."""
        if not any(True for _ in self.registry.all()):
            raise RegistryError(
                f"the registry knows no execution of tenant {self.registry.tenant}, so every result would be an "
                "orphan: expected the registry in which the tenant's runs are"
            )
        if not all(any(True for _ in other.all()) for other in other_registries):
            raise RegistryError(
                "Texera's database knows no execution, so its results would be orphans: expected the database of the "
                "deployment that writes to these warehouses"
            )

    def drop_orphans(
        self, orphans: Orphans, *, younger_stay: timedelta, other_registries: Sequence[Executions] = ()
    ) -> DroppedOrphans:
        """Drop tables without a row that are older than `younger_stay`, and forget tables that do not exist.

        The age is the time since the last change; `younger_stay` is at least YOUNGEST_ORPHAN. A table that cannot be
        read or dropped remains and is reported.
        Raises RegistryError, before anything is dropped, if one of the registries knows no execution at all.
        """
        self.check_knows_executions(other_registries)
        before = datetime.now(UTC) - max(younger_stay, YOUNGEST_ORPHAN)
        done = DroppedOrphans(rows=[record for record, _ in orphans.rows])
        for uri in orphans.tables:
            run = uri.execution
            if any(registry.knows(run.workflow, run.execution) for registry in (self.registry, *other_registries)):
                continue  # registered since the tables were listed
            tables = self._open_tables(uri.warehouse)
            try:
                changed = to_instant(tables.load(uri).metadata.last_updated_ms)
                if changed < before and tables.drop(uri):
                    done.tables.append(uri)
            except NoSuchResultError:
                continue
            except _TABLE_ERRORS as error:
                done.failed.append((uri, str(error)))
        for record, missing in orphans.rows:
            remaining_tables = [table for table in record.tables if table.uri not in missing]
            self.registry.record_tables(record.workflow, record.execution, remaining_tables)
        return done

    def list_written_tables(self, record: ExecutionRecord) -> list[WrittenTable]:
        """Return the tables of an execution that the catalog has now, with their rows and bytes."""
        return list_written_tables(self._open_tables(record.warehouse), record.workflow, record.execution)

    def _list_results(self, warehouses: Iterable[str | None]) -> ResultsByExecution:
        """Return the results in these warehouses. Record warehouses that cannot be listed in `unavailable`."""
        results: ResultsByExecution = defaultdict(list)
        warehouse_names = set(warehouses)
        for name in [warehouse.name for warehouse in self.config.warehouses if warehouse.name in warehouse_names]:
            with self.unavailable.record_failures(name):
                for uri in self._open_tables(name).list_results():
                    results[uri.execution.workflow, uri.execution.execution].append(uri)
        return results

    def _explain_unavailable(self, record: ExecutionRecord) -> str | None:
        """Return why the results of an execution cannot be listed or dropped; None if they can.

        A removed warehouse does not matter to an execution that completed, and so recorded all its tables, if it has no
        tables.
        """
        if error := {**self.unavailable.hidden, **self.unavailable.failed}.get(record.warehouse or ""):
            return str(error)
        has_no_tables = record.status is ExecutionStatus.COMPLETED and not record.tables
        if record.warehouse and not has_no_tables:
            try:
                self.config.warehouse(record.warehouse)
            except KeyError as error:
                return str(error.args[0])
        return None

    def _drop(
        self,
        record: ExecutionRecord,
        existing_results: ResultsByExecution,
        swept: SweepReport,
        except_kind: ResultKind | None = None,
    ) -> bool:
        try:
            for uri in _list_tables(record, existing_results):
                if uri.kind is not except_kind and self._open_tables(record.warehouse).drop(uri):
                    swept.tables.append(uri)
        except _TABLE_ERRORS as error:
            swept.failed.append((record, str(error)))
            return False
        return True

    def _open_tables(self, warehouse: str | None) -> ResultTables:
        name = warehouse or (self.config.warehouses[0].name if len(self.config.warehouses) == 1 else "")
        return ResultTables(self.config, name, self.namespaces, self.catalogs)


def _list_tables(record: ExecutionRecord, existing_results: ResultsByExecution) -> list[ResultUri]:
    """Return the tables that the execution recorded, and the tables found under its number.

    A killed execution recorded none.
    """
    recorded_uris = {replace(table.uri, warehouse=record.warehouse) for table in record.tables}
    existing_uris = existing_results.get((record.workflow, record.execution), [])
    return sorted(recorded_uris | {uri for uri in existing_uris if uri.warehouse == record.warehouse}, key=str)


def build_sweep_error(swept: SweepReport) -> LakewrightSparkError | None:
    """Return the error for executions that could not be dropped; None without such executions."""
    if not swept.failed:
        return None
    first, reason = swept.failed[0]
    more = f", and {len(swept.failed) - 1} more" if len(swept.failed) > 1 else ""
    return JobFailedError(f"{first} remains, since its tables could not be dropped: {reason}{more}")
