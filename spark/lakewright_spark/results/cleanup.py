"""Clean-up of executions: replaced ones, expired ones, and orphans."""

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
    NoSuchResultError,
    RegistryError,
    WarehouseRefusedError,
)
from lakewright_spark.execution_registry.records import ExecutionRecord, Executions, WrittenTable
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.iceberg_values import instant_of
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS, CatalogCache
from lakewright_spark.result_uris import ResultKind, ResultNamespaces, ResultUri
from lakewright_spark.results.tables import ResultTables, written_tables
from lakewright_spark.unavailable_warehouses import UnavailableWarehouses

YOUNGEST_ORPHAN = timedelta(hours=1)
"""A table without a row is left alone for so long after its last change: its execution may be about to be entered."""


_LEFT = (JobFailedError, WarehouseRefusedError, NoSuchResultError, AccessDeniedError, CatalogUnreachableError)
"""Why the tables of one execution stay while others are dropped."""

Existing = dict[tuple[int, int], list[ResultUri]]
"""Result tables in the tenant's warehouses, by (workflow, execution)."""


@dataclass(frozen=True)
class Swept:
    """What a sweep did, or would do in a dry run."""

    executions: list[ExecutionRecord] = field(default_factory=list[ExecutionRecord])
    tables: list[ResultUri] = field(default_factory=list[ResultUri])
    failed: list[tuple[ExecutionRecord, str]] = field(default_factory=list[tuple[ExecutionRecord, str]])
    """Executions whose tables could not all be dropped, and why; their rows stay."""
    postponed: list[tuple[ExecutionRecord, str]] = field(default_factory=list[tuple[ExecutionRecord, str]])
    """Earlier executions in other warehouses that could not be replaced, and why; a later run tries again."""


@dataclass(frozen=True)
class Orphans:
    """Result tables without an execution, and executions without their tables."""

    tables: list[ResultUri]
    """Result tables of executions that no registry knows."""
    rows: list[tuple[ExecutionRecord, list[ResultUri]]]
    """Executions, and those of their tables that are not in the warehouse where they were written."""


@dataclass(frozen=True)
class DroppedOrphans:
    """What came of dropping orphans."""

    tables: list[ResultUri] = field(default_factory=list[ResultUri])
    """Those that are gone."""
    rows: list[ExecutionRecord] = field(default_factory=list[ExecutionRecord])
    """Executions whose rows changed."""
    failed: list[tuple[ResultUri, str]] = field(default_factory=list[tuple[ResultUri, str]])
    """Tables that stay, and why."""

    def error(self) -> LakewrightSparkError | None:
        """Return the error that a command ends with that left tables."""
        if not self.failed:
            return None
        uri, reason = self.failed[0]
        more = f", and {len(self.failed) - 1} more" if len(self.failed) > 1 else ""
        return JobFailedError(f"{uri} stays, since it could not be read or dropped: {reason}{more}")


@dataclass(frozen=True)
class Cleaner:
    """Cleans up a tenant's executions. Tables go first, with their files; rows only when all their tables are gone."""

    config: CatalogConfig
    registry: ExecutionRegistry
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces)
    catalogs: CatalogCache = field(default=CATALOGS, repr=False, compare=False)
    unavailable: UnavailableWarehouses = field(default_factory=UnavailableWarehouses, repr=False, compare=False)
    """Warehouses that were left out so far."""

    def replace_previous(self, new: ExecutionRecord, stale_before: datetime) -> Swept:
        """Drop what earlier executions of the same workflow and unit wrote, but for runtime statistics, as Texera does.

        One that runs, with a sign of life since `stale_before`, is left alone. One in another warehouse that cannot be
        used now is left for a later run.
        """
        previous = self.registry.previous(new.workflow, new.execution, new.computing_unit)
        ended = [old for old in previous if old.status.has_ended or old.updated_at < stale_before]
        swept, there = Swept(), self._existing(old.warehouse for old in ended)
        if new.warehouse in self.unavailable:
            raise JobFailedError(f"{new} cannot begin: {self._why_not(new.warehouse)}")
        for old in ended:
            if old.warehouse in self.unavailable:
                continue
            tried = swept if old.warehouse == new.warehouse else Swept(tables=swept.tables, failed=swept.postponed)
            if self._drop(old, there, tried, but_for=ResultKind.RUNTIME_STATISTICS):
                kept = [table for table in old.tables if table.uri.kind is ResultKind.RUNTIME_STATISTICS]
                self.registry.wrote(old.workflow, old.execution, kept)
                self.registry.replaced(old.workflow, old.execution)
                swept.executions.append(old)
        return swept

    def restart(self, record: ExecutionRecord) -> None:
        """Drop everything that an earlier run under the same number left. Raises JobFailedError if something stays."""
        swept, there = Swept(), self._existing([record.warehouse])
        if record.warehouse in self.unavailable:
            raise JobFailedError(f"what {record} left cannot be dropped: {self._why_not(record.warehouse)}")
        if not self._drop(record, there, swept):
            raise JobFailedError(swept.failed[0][1])
        self.registry.wrote(record.workflow, record.execution, [])

    def sweep(self, before: datetime, *, dry_run: bool = False) -> Swept:
        """Drop the executions that ended before then, tables first; one that cannot be dropped stays and is reported.

        Executions in a warehouse that this identity may not use stay. Raises CatalogUnreachableError if no warehouse
        can be used.
        """
        records = self.registry.expired(before)
        swept, there = Swept(), self._existing(record.warehouse for record in records)
        if self.unavailable.failed:
            self.unavailable.check_any_left({record.warehouse for record in records if record.warehouse})
        for record in records:
            if record.warehouse in self.unavailable.hidden:
                continue
            if record.warehouse in self.unavailable.failed:
                swept.failed.append((record, self._why_not(record.warehouse)))
                continue
            if dry_run:
                swept.tables.extend(_tables_of(record, there))
            elif self._drop(record, there, swept):
                self.registry.remove(record.workflow, record.execution)
            else:
                continue
            swept.executions.append(record)
        return swept

    def orphans(self, others: Iterable[Executions] = ()) -> Orphans:
        """Tables without a row and rows without their tables. `others` know executions too, such as Texera's tables.

        A table in a warehouse that the configuration does not have, or that cannot be listed, is not missing.
        """
        records = list(self.registry.all())
        known = {(r.workflow, r.execution) for r in records}
        known |= {(r.workflow, r.execution) for other in others for r in other.all()}
        names = [warehouse.name for warehouse in self.config.warehouses]
        existing = self._existing(names)
        self.unavailable.check_any_left(names)
        tables = [uri for run, uris in existing.items() if run not in known for uri in uris]
        there = {(uri.warehouse, uri.path) for uris in existing.values() for uri in uris}
        listed = {name for name in names if name not in self.unavailable}
        rows = [
            (record, missing)
            for record in records
            if record.warehouse in listed
            and (missing := [t.uri for t in record.tables if (record.warehouse, t.uri.path) not in there])
        ]
        return Orphans(tables, rows)

    def check_knows_executions(self, others: Iterable[Executions] = ()) -> None:
        """Refuse to take results for orphans by registries that know nothing. Raises RegistryError."""
        if not any(True for _ in self.registry.all()):
            raise RegistryError(
                f"the registry knows no execution of tenant {self.registry.tenant}, so every result would be an "
                "orphan: expected the registry in which the tenant's runs are"
            )
        if not all(any(True for _ in other.all()) for other in others):
            raise RegistryError(
                "Texera's database knows no execution, so its results would be orphans: expected the database of the "
                "deployment that writes to these warehouses"
            )

    def drop_orphans(
        self, orphans: Orphans, *, younger_stay: timedelta, others: Sequence[Executions] = ()
    ) -> DroppedOrphans:
        """Drop tables without a row that nobody changed for so long, and forget tables that are not there.

        `younger_stay` is at least YOUNGEST_ORPHAN. A table that cannot be read or dropped stays and is reported.
        Raises RegistryError, before anything is dropped, if one of the registries knows no execution at all.
        """
        self.check_knows_executions(others)
        before = datetime.now(UTC) - max(younger_stay, YOUNGEST_ORPHAN)
        done = DroppedOrphans(rows=[record for record, _ in orphans.rows])
        for uri in orphans.tables:
            run = uri.execution
            if any(registry.knows(run.workflow, run.execution) for registry in (self.registry, *others)):
                continue  # entered since they were listed
            tables = self._in(uri.warehouse)
            try:
                changed = instant_of(tables.load(uri).metadata.last_updated_ms)
                if changed < before and tables.drop(uri):
                    done.tables.append(uri)
            except NoSuchResultError:
                continue
            except _LEFT as error:
                done.failed.append((uri, str(error)))
        for record, missing in orphans.rows:
            left = [table for table in record.tables if table.uri not in missing]
            self.registry.wrote(record.workflow, record.execution, left)
        return done

    def written_by(self, record: ExecutionRecord) -> list[WrittenTable]:
        """The tables of an execution as the catalog has them now, with their rows and bytes."""
        return written_tables(self._in(record.warehouse), record.workflow, record.execution)

    def _existing(self, warehouses: Iterable[str | None]) -> Existing:
        """The results in these warehouses; those that cannot be listed are noted in `unavailable`."""
        found: Existing = defaultdict(list)
        wanted = set(warehouses)
        for name in [warehouse.name for warehouse in self.config.warehouses if warehouse.name in wanted]:
            with self.unavailable.leaving_out(name):
                for uri in self._in(name).results():
                    found[uri.execution.workflow, uri.execution.execution].append(uri)
        return found

    def _why_not(self, warehouse: str | None) -> str:
        return str({**self.unavailable.hidden, **self.unavailable.failed}[warehouse or ""])

    def _drop(self, record: ExecutionRecord, there: Existing, swept: Swept, but_for: ResultKind | None = None) -> bool:
        try:
            for uri in _tables_of(record, there):
                if uri.kind is not but_for and self._in(record.warehouse).drop(uri):
                    swept.tables.append(uri)
        except _LEFT as error:
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
