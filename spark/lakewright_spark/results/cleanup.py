"""Clean-up of executions: what a new one replaces, what is too old, and what lost its other half."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError, LakewrightSparkError, NoSuchResultError, WarehouseRefusedError
from lakewright_spark.iceberg_time import instant_of
from lakewright_spark.registry.records import ExecutionRecord, Executions, WrittenTable
from lakewright_spark.registry.registry import ExecutionRegistry
from lakewright_spark.results.catalog_cache import CATALOGS, CatalogCache
from lakewright_spark.results.tables import ResultTables, written_tables
from lakewright_spark.results.uris import ResultKind, ResultNamespaces, ResultUri

YOUNGEST_ORPHAN = timedelta(hours=1)
"""A table without a row is left alone for so long after its last change: its execution may be about to be entered."""


Existing = dict[tuple[int, int], list[ResultUri]]
"""Result tables in the tenant's warehouses, by (workflow, execution)."""


@dataclass(frozen=True)
class Swept:
    """What a sweep did, or would do in a dry run."""

    executions: list[ExecutionRecord] = field(default_factory=list)
    tables: list[ResultUri] = field(default_factory=list)
    failed: list[tuple[ExecutionRecord, str]] = field(default_factory=list)
    """Executions whose tables could not all be dropped, and why; their rows stay."""


@dataclass(frozen=True)
class Orphans:
    """What lost its other half."""

    tables: list[ResultUri]
    """Result tables of executions that no registry knows."""
    rows: list[tuple[ExecutionRecord, list[ResultUri]]]
    """Executions, and those of their tables that are in no warehouse of the tenant."""


@dataclass(frozen=True)
class Cleaner:
    """Cleans up a tenant's executions. Tables go first, with their files; rows only when all their tables are gone."""

    config: CatalogConfig
    registry: ExecutionRegistry
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces)
    catalogs: CatalogCache = field(default=CATALOGS, repr=False, compare=False)

    def replace_previous(self, new: ExecutionRecord, stale_before: datetime) -> Swept:
        """Drop what earlier executions of the same workflow and unit wrote, but for runtime statistics, as Texera does.

        One that runs, with a sign of life since `stale_before`, is left alone.
        """
        swept, there = Swept(), self._existing()
        for old in self.registry.previous(new.workflow, new.execution, new.computing_unit):
            if not old.status.ended and old.updated_at >= stale_before:
                continue
            kept = [table for table in old.tables if table.uri.kind is ResultKind.RUNTIME_STATISTICS]
            if self._drop(old, there, swept, but_for=ResultKind.RUNTIME_STATISTICS):
                self.registry.wrote(old.workflow, old.execution, kept)
                self.registry.replaced(old.workflow, old.execution)
                swept.executions.append(old)
        return swept

    def restart(self, record: ExecutionRecord) -> None:
        """Drop everything that an earlier run under the same number left. Raises JobFailedError if something stays."""
        swept = Swept()
        if not self._drop(record, self._existing(), swept):
            raise JobFailedError(swept.failed[0][1])
        self.registry.wrote(record.workflow, record.execution, [])

    def sweep(self, before: datetime, *, dry_run: bool = False) -> Swept:
        """Drop the executions that ended before then, tables first; one that cannot be dropped stays and is told."""
        swept, there = Swept(), self._existing()
        for record in self.registry.expired(before):
            if dry_run:
                swept.tables.extend(_tables_of(record, there))
            elif self._drop(record, there, swept):
                self.registry.remove(record.workflow, record.execution)
            else:
                continue
            swept.executions.append(record)
        return swept

    def orphans(self, others: Iterable[Executions] = ()) -> Orphans:
        """Tables without a row and rows without their tables. `others` know executions too, such as Texera's tables."""
        records = list(self.registry.all())
        known = {(r.workflow, r.execution) for r in records}
        known |= {(r.workflow, r.execution) for other in others for r in other.all()}
        existing = self._existing()
        tables = [uri for run, uris in existing.items() if run not in known for uri in uris]
        there = {(uri.warehouse, uri.path) for uris in existing.values() for uri in uris}
        rows = [
            (record, missing)
            for record in records
            if (missing := [t.uri for t in record.tables if (record.warehouse, t.uri.path) not in there])
        ]
        return Orphans(tables, rows)

    def drop_orphans(
        self, orphans: Orphans, *, younger_stay: timedelta, others: Sequence[Executions] = ()
    ) -> tuple[list[ResultUri], list[ExecutionRecord]]:
        """Drop tables without a row that nobody changed for so long, and forget tables that are not there.

        `younger_stay` is at least YOUNGEST_ORPHAN. Returns the tables dropped, and the executions whose rows changed.
        """
        before = datetime.now(UTC) - max(younger_stay, YOUNGEST_ORPHAN)
        dropped: list[ResultUri] = []
        for uri in orphans.tables:
            run = uri.execution
            if any(known.warehouse_of(run.workflow, run.execution) for known in (self.registry, *others)):
                continue  # entered since they were listed
            tables = self._in(uri.warehouse)
            try:
                changed = instant_of(tables.load(uri).metadata.last_updated_ms)
            except NoSuchResultError:
                continue
            if changed < before and tables.drop(uri):
                dropped.append(uri)
        for record, missing in orphans.rows:
            left = [table for table in record.tables if table.uri not in missing]
            self.registry.wrote(record.workflow, record.execution, left)
        return dropped, [record for record, _ in orphans.rows]

    def written_by(self, record: ExecutionRecord) -> list[WrittenTable]:
        """The tables of an execution as the catalog has them now, with their rows and bytes."""
        return written_tables(self._in(record.warehouse), record.workflow, record.execution)

    def _existing(self) -> Existing:
        found: Existing = defaultdict(list)
        for warehouse in self.config.warehouses:
            for uri in self._in(warehouse.name).results():
                found[uri.execution.workflow, uri.execution.execution].append(uri)
        return found

    def _drop(self, record: ExecutionRecord, there: Existing, swept: Swept, but_for: ResultKind | None = None) -> bool:
        try:
            for uri in _tables_of(record, there):
                if uri.kind is not but_for and self._in(record.warehouse).drop(uri):
                    swept.tables.append(uri)
        except (JobFailedError, WarehouseRefusedError, NoSuchResultError) as error:
            swept.failed.append((record, str(error)))
            return False
        return True

    def _in(self, warehouse: str | None) -> ResultTables:
        name = warehouse or (self.config.warehouses[0].name if len(self.config.warehouses) == 1 else "")
        return ResultTables(self.config, name, self.namespaces, self.catalogs)


def _tables_of(record: ExecutionRecord, there: Existing) -> list[ResultUri]:
    """What it said it wrote, and what is there under its number: one that was killed said nothing."""
    said = {replace(table.uri, warehouse=record.warehouse) for table in record.tables}
    found = there.get((record.workflow, record.execution), [])
    return sorted(said | {uri for uri in found if uri.warehouse == record.warehouse}, key=str)


def failure(swept: Swept) -> LakewrightSparkError | None:
    """The error that a command ends with whose sweep left something."""
    if not swept.failed:
        return None
    first, reason = swept.failed[0]
    more = f", and {len(swept.failed) - 1} more" if len(swept.failed) > 1 else ""
    return JobFailedError(f"{first} stays, since its tables could not be dropped: {reason}{more}")
