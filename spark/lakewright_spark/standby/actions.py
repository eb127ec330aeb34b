"""The commands on the tables and views of a standby: copy, status, promote. A failure does not hold up the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import UUID

from pyiceberg.typedef import Identifier

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError, LeaseHeldError, LeaseLostError, StandbyError
from lakewright_spark.migration.copy_stores import CopyStore, open_copy_store
from lakewright_spark.migration.endpoint import Endpoint, find_original_name
from lakewright_spark.migration.plan import PARALLEL, Patterns
from lakewright_spark.migration.verify import Depth
from lakewright_spark.migration.view_catalog import ViewCatalog
from lakewright_spark.policies.builtin import OPS
from lakewright_spark.pyiceberg_client.read_errors import describe_error
from lakewright_spark.scheduler.heartbeat import Heartbeat
from lakewright_spark.scheduler.runner import new_runner_name
from lakewright_spark.scheduler.supervisor import Control
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.standby.mark import read_mark
from lakewright_spark.standby.status import State, TableStatus, measure_table, measure_view, measure_without_source
from lakewright_spark.standby.tables import StandbyTable
from lakewright_spark.standby.views import StandbyView
from lakewright_spark.table_identifier import TableIdentifier

_CLAIM_ID = UUID("8f0d6c0e-2f0b-4a54-9c3e-5b7d8e2a1f60")
"""Identifies the claim of the standby as a whole among the claims of tables."""


Item = TypeVar("Item", StandbyTable, StandbyView)


@dataclass(frozen=True)
class Standby:
    """A warehouse, and the warehouse that has copies of its tables."""

    source_config: CatalogConfig
    source_warehouse: str
    standby: Endpoint
    patterns: Patterns = field(default_factory=Patterns)
    control: Control = field(default_factory=Control)

    @classmethod
    def open(
        cls, source: CatalogConfig, source_warehouse: str, standby: CatalogConfig, standby_warehouse: str, *names: str
    ) -> Standby:
        """Open the catalog of the standby. The source is opened when it is needed: it may be lost.

        Args:
            source: Catalog configuration of the source.
            source_warehouse: Warehouse that has the tables.
            standby: Catalog configuration of the standby.
            standby_warehouse: Warehouse that gets the copies.
            names: Patterns of table names; all tables by default.

        Raises:
            StandbyError: Both are the same warehouse, or the standby is a Hadoop catalog.
        """
        if standby.kind == "hadoop":
            raise StandbyError("--to: expected a catalog of kind lakekeeper, rest or jdbc, found hadoop")
        places = {
            (config.uri, config.project_id, warehouse)
            for config, warehouse in ((source, source_warehouse), (standby, standby_warehouse))
        }
        if len(places) == 1:
            raise StandbyError("--from and --to: expected two warehouses, found the same warehouse twice")
        return cls(source, source_warehouse, Endpoint.open(standby, standby_warehouse), Patterns(names))

    @property
    def source_name(self) -> str:
        """Return the text by which marks name the source."""
        project = f", project {self.source_config.project_id}" if self.source_config.project_id else ""
        return f"warehouse {self.source_warehouse} of {self.source_config.uri}{project}"

    def copy(self, depth: Depth, now: datetime) -> list[TableStatus]:
        """Copy what the standby lacks, and return a status of each table and view of the source.

        Raises:
            StandbyError: The source has no tables and views: all were promoted, or the pattern selects none.
        """
        source = self._open_source()
        tables = self._list_tables(source)
        views, failures = self._attempt(lambda: self._list_views(source))
        if not (tables or failures or any(view.obstacle is None for view in views)):
            raise StandbyError(f"{self.source_name}: expected tables to copy, found none")
        store = self._open_store() if tables else None

        def copy_item(item: StandbyTable | StandbyView) -> TableStatus:
            is_view = isinstance(item, StandbyView)
            done = item.copy(now) if is_view else item.copy(_require(store), depth, now)
            return TableStatus(item.name, State.CURRENT, done.copied_at, detail=done.compared, is_view=is_view)

        with self._claim():
            return [*self._run(tables, copy_item), *self._run(views, copy_item), *failures]

    def promote(self, now: datetime, *, is_source_lost: bool) -> list[TableStatus]:
        """Let the standby have writers, and return a status of each of its tables and views.

        Args:
            now: The time (UTC).
            is_source_lost: Whether to promote the last copies, without the source.

        Raises:
            StandbyError: The standby has no copies.
        """
        source = None if is_source_lost else self._open_source()
        copies = self._list_copies(source)
        view_copies, failures = self._attempt(lambda: self._list_view_copies(source))
        if not (copies or view_copies or failures):
            raise StandbyError(f"{self.standby}: expected copies of {self.source_name}, found none")
        tables, views = copies, view_copies
        if source:
            tables = self._merge(copies, self._list_tables(source))
            source_views, more_failures = self._attempt(lambda: self._list_views(source))
            views, failures = self._merge(view_copies, source_views), [*failures, *more_failures]
        store = self._open_store() if source and tables else None

        def promote_item(item: StandbyTable | StandbyView) -> TableStatus:
            is_view = isinstance(item, StandbyView)
            detail = ""
            if source is None:
                mark = item.promote_last_copy(now)
            else:
                mark = item.promote(now) if is_view else item.promote(_require(store), now)
                detail = item.mark_source()
            return TableStatus(item.name, State.PROMOTED, mark.copied_at, detail=detail, is_view=is_view)

        def leave_view(view: StandbyTable | StandbyView) -> TableStatus:
            assert isinstance(view, StandbyView), "only views wait for tables"
            if mark := view.find_promotion():
                return TableStatus(view.name, State.PROMOTED, mark.copied_at, detail=view.mark_source(), is_view=True)
            raise StandbyError(
                f"{view}: it was not promoted, since tables failed: the source's users have the view. Promote these "
                "tables first, or select the view with --table"
            )

        with self._claim():
            statuses = self._run(tables, promote_item)
            # A view without its tables is of no use. A lost source has no users who could keep both.
            has_failed = source is not None and any(status.state is State.FAILED for status in statuses)
            return [*statuses, *self._run(views, leave_view if has_failed else promote_item), *failures]

    def measure(self, now: datetime) -> list[TableStatus]:
        """Return the status of each table and view of the source and of the standby. Nothing is changed."""
        try:
            source = self._open_source()
            tables = self._list_tables(source)
        except LakewrightSparkError as error:
            reason = str(error).splitlines()[0]
            copies = self._list_copies(None)
            view_copies, failures = self._attempt(lambda: self._list_view_copies(None))
            statuses = self._run([*copies, *view_copies], lambda copy: measure_without_source(copy, reason, now))
            return [*statuses, *failures]
        views, failures = self._attempt(lambda: self._list_views(source))
        # An item of the source is measured with its copy; the other copies are of items that the source has dropped.
        # The source may have a view with the name of a dropped table.
        merged_tables = self._merge(self._list_copies(source, {table.identifier for table in tables}), tables)
        view_copies, more_failures = self._attempt(
            lambda: self._list_view_copies(source, {view.identifier for view in views})
        )
        merged_views = self._merge(view_copies, views)

        def measure_item(item: StandbyTable | StandbyView) -> TableStatus:
            return measure_view(item, now) if isinstance(item, StandbyView) else measure_table(item, source, now)

        return [*self._run([*merged_tables, *merged_views], measure_item), *failures, *more_failures]

    def _attempt(self, list_views: Callable[[], list[StandbyView]]) -> tuple[list[StandbyView], list[TableStatus]]:
        """Return views, and the failure to list them as a status: tables are copied and promoted without them."""
        try:
            return list_views(), []
        except LakewrightSparkError as error:
            detail = str(error)
        except Exception as error:  # noqa: BLE001  # any error: it must not affect tables
            detail = describe_error(error)
        return [], [TableStatus("views", State.FAILED, detail=detail, is_view=True)]

    def _run(
        self,
        items: Sequence[StandbyTable | StandbyView],
        act: Callable[[StandbyTable | StandbyView], TableStatus],
    ) -> list[TableStatus]:
        """Act on all items, several at a time. A view that the standby cannot have is reported as missing."""

        def act_on(item: StandbyTable | StandbyView) -> TableStatus:
            is_view = isinstance(item, StandbyView)
            try:
                if is_view and (obstacle := item.obstacle):
                    return TableStatus(item.name, State.MISSING, detail=obstacle, is_view=True)
                return act(item)
            except LakewrightSparkError as error:
                return TableStatus(item.name, State.FAILED, detail=str(error), is_view=is_view)
            except Exception as error:  # noqa: BLE001  # any error: it must not affect other tables
                return TableStatus(item.name, State.FAILED, detail=describe_error(error), is_view=is_view)

        with ThreadPoolExecutor(PARALLEL, thread_name_prefix="standby") as pool:
            return list(pool.map(act_on, items))

    def _open_source(self) -> Endpoint:
        return Endpoint.open(self.source_config, self.source_warehouse)

    def _list_tables(self, source: Endpoint) -> list[StandbyTable]:
        return [self._build_table(identifier, source) for identifier in sorted(self._select(source))]

    def _list_copies(
        self, source: Endpoint | None, besides: Collection[Identifier] = frozenset()
    ) -> list[StandbyTable]:
        """Return the tables of the standby, except `besides`, that are copies of the source."""
        copies: list[StandbyTable] = []
        for identifier in sorted(set(self._select(self.standby)) - set(besides)):
            table = self.standby.find_table(identifier)
            if table and _has_mark(table.properties, self.source_name):
                copies.append(self._build_table(identifier, source))
        return copies

    def _list_views(self, source: Endpoint) -> list[StandbyView]:
        """Return the views of the source that have a name of their own."""
        names = [name for name in self._select_views(source) if find_original_name(name) is None]
        return [self._build_view(identifier, source) for identifier in sorted(names)]

    def _list_view_copies(
        self, source: Endpoint | None, besides: Collection[Identifier] = frozenset()
    ) -> list[StandbyView]:
        """Return the views of the standby, except `besides`, that are copies of the source."""
        if not self.standby.has_views:
            return []
        # A killed run may have left a complete copy that has not got its name.
        names = {find_original_name(name) or name for name in self._select_views(self.standby)}
        views = [self._build_view(identifier, source) for identifier in sorted(names - set(besides))]
        return [view for view in views if self._is_view_copy(view)]

    def _is_view_copy(self, view: StandbyView) -> bool:
        """Return whether a view is a copy of the source. A view that cannot be read is reported by name."""
        try:
            stored = ViewCatalog(self.standby).find(view.identifier)
            if stored is None:
                return view.find_copy() is not None
        except Exception:  # noqa: BLE001  # any error: the action on the view reports it
            return True
        return _has_mark(stored.properties, self.source_name)

    def _merge(self, *groups: Iterable[Item]) -> list[Item]:
        """Return the items of all groups by name, each once."""
        items: Mapping[Identifier, Item] = {item.identifier: item for group in groups for item in group}
        return [items[identifier] for identifier in sorted(items)]

    def _select(self, endpoint: Endpoint) -> list[Identifier]:
        """Return the tables of the patterns. The maintenance of each warehouse has its own tables in `ops`."""
        return [name for name in endpoint.list_tables() if name[0] != OPS and self.patterns.select(name)]

    def _select_views(self, endpoint: Endpoint) -> list[Identifier]:
        """Return the views of the patterns. A copy that is not complete has the pattern's name with an ending."""
        names = endpoint.list_views() if endpoint.lists_views else []
        return [name for name in names if name[0] != OPS and self.patterns.select(find_original_name(name) or name)]

    def _build_table(self, identifier: Identifier, source: Endpoint | None) -> StandbyTable:
        return StandbyTable(identifier, self.source_name, source, self.standby, self._check_claim)

    def _build_view(self, identifier: Identifier, source: Endpoint | None) -> StandbyView:
        return StandbyView(identifier, self.source_name, source, self.standby, self._check_claim)

    def _open_store(self) -> CopyStore:
        source = self.source_config.warehouse(self.source_warehouse)
        return open_copy_store(source, self.standby.config.warehouse(self.standby.warehouse))

    @contextmanager
    def _claim(self) -> Generator[None]:
        """Keep other processes from changing the standby during the block.

        Raises:
            StandbyError: Another process copies or promotes it.
        """
        config, warehouse = self.standby.config, self.standby.warehouse
        name = TableIdentifier(warehouse, (OPS,), "standby")
        claim = TableClaim(config, name, str(_CLAIM_ID), self.standby.catalog, new_runner_name(), patience=timedelta())
        try:
            claim.take(datetime.now(UTC))
        except LeaseHeldError as error:
            raise StandbyError(f"{self.standby}: another process copies or promotes it: {error}") from None
        heartbeat = Heartbeat([claim], self.control)
        heartbeat.start()
        try:
            yield
        finally:
            heartbeat.close()

    def _check_claim(self) -> None:
        if reasons := list(self.control.lost.values()):
            raise LeaseLostError(reasons[0])


def _has_mark(properties: Mapping[str, str], source_name: str) -> bool:
    """Return whether a table or view with these properties is a copy of the source, or has a mark of any text.

    A mark that cannot be read is reported with its table.
    """
    try:
        mark = read_mark(properties)
    except StandbyError:
        return True
    return mark is not None and mark.source == source_name


def _require(store: CopyStore | None) -> CopyStore:
    assert store is not None, "tables have a store"
    return store
