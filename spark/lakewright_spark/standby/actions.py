"""The commands on all tables of a standby: copy, status, promote. A table that fails does not hold up other tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from pyiceberg.table import Table
from pyiceberg.typedef import Identifier

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError, LeaseHeldError, LeaseLostError, StandbyError
from lakewright_spark.migration.copy_stores import CopyStore, open_copy_store
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.plan import PARALLEL, Patterns
from lakewright_spark.migration.verify import Depth
from lakewright_spark.policies.builtin import OPS
from lakewright_spark.pyiceberg_client.read_errors import describe_error
from lakewright_spark.scheduler.heartbeat import Heartbeat
from lakewright_spark.scheduler.runner import new_runner_name
from lakewright_spark.scheduler.supervisor import Control
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.standby.mark import read_mark
from lakewright_spark.standby.tables import StandbyTable
from lakewright_spark.table_identifier import TableIdentifier
from lakewright_spark.times import format_json_time

_CLAIM_ID = UUID("8f0d6c0e-2f0b-4a54-9c3e-5b7d8e2a1f60")
"""Identifies the claim of the standby as a whole among the claims of tables."""


class State(Enum):
    """How a table of the standby relates to its source."""

    CURRENT = "current"
    BEHIND = "behind"
    MISSING = "missing"
    """The standby does not have it."""
    DROPPED = "dropped"
    """The source no longer has it."""
    UNKNOWN = "unknown"
    """The source does not respond."""
    WRITTEN = "written"
    """Other writers have changed it in the standby."""
    PROMOTED = "promoted"
    FAILED = "failed"


@dataclass(frozen=True)
class TableStatus:
    """The state of one table."""

    name: str
    state: State
    copied_at: datetime | None = None
    """Time of the last copy (UTC)."""
    lag: timedelta = timedelta()
    """Time since the first commit that the standby lacks; age of the last copy if the source does not respond."""
    snapshots: int = 0
    """Number of the source's snapshots that the standby lacks."""
    detail: str = ""
    """The parts that were compared, or why the table failed."""

    def to_json(self) -> dict[str, Any]:
        """Return the status for JSON."""
        return {
            **asdict(self),
            "state": self.state.value,
            "copied_at": format_json_time(self.copied_at) if self.copied_at else None,
            "lag": round(self.lag.total_seconds(), 3),
        }


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
        """Copy what the standby lacks, and return a status of each table of the source.

        Raises:
            StandbyError: The source has no tables: all of them were promoted, or the pattern selects none.
        """
        store, source = self._open_store(), self._open_source()
        tables = self._list_tables(source)
        if not tables:
            raise StandbyError(f"{self.source_name}: expected tables to copy, found none")

        def copy_table(table: StandbyTable) -> TableStatus:
            done = table.copy(store, depth, now)
            return TableStatus(table.name, State.CURRENT, done.copied_at, detail=done.compared)

        with self._claim():
            return self._run(tables, copy_table)

    def promote(self, now: datetime, *, is_source_lost: bool) -> list[TableStatus]:
        """Let the standby have writers, and return a status of each of its tables.

        Args:
            now: The time (UTC).
            is_source_lost: Whether to promote the last copies, without the source.

        Raises:
            StandbyError: The standby has no copies.
        """
        store, source = (None, None) if is_source_lost else (self._open_store(), self._open_source())
        copies = self._list_copies(source)
        tables = self._merge(copies, self._list_tables(source)) if source else copies
        if not copies:
            raise StandbyError(f"{self.standby}: expected copies of {self.source_name}, found none")

        def promote_table(table: StandbyTable) -> TableStatus:
            mark = table.promote_last_copy(now) if store is None else table.promote(store, now)
            return TableStatus(table.name, State.PROMOTED, mark.copied_at)

        with self._claim():
            return self._run(tables, promote_table)

    def measure(self, now: datetime) -> list[TableStatus]:
        """Return the status of each table of the source and of the standby. Nothing is changed."""
        try:
            source = self._open_source()
            tables = self._list_tables(source)
        except LakewrightSparkError as error:
            reason = str(error).splitlines()[0]
            copies = self._list_copies(None)
            return self._run(copies, lambda table: self._measure_without_source(table, reason, now))
        # A table of the source is measured with its copy; the other copies are of tables that the source has dropped.
        source_identifiers = {table.identifier for table in tables}
        merged = self._merge(self._list_copies(source, source_identifiers), tables)
        return self._run(merged, lambda table: self._measure(table, source, now))

    def _measure(self, table: StandbyTable, source: Endpoint, now: datetime) -> TableStatus:
        name = table.name
        source_table, copy = source.find_table(table.identifier), table.find_copy()
        if copy is None:
            return TableStatus(name, State.MISSING, lag=_find_age(source_table, now), detail="never copied")
        standby_table, mark = copy
        if mark.promoted_at:
            return TableStatus(name, State.PROMOTED, mark.copied_at)
        if table.is_written(standby_table, mark):
            return TableStatus(name, State.WRITTEN, mark.copied_at, now - mark.copied_at)
        if source_table is None:
            return TableStatus(name, State.DROPPED, mark.copied_at)
        if source_table.metadata_location == mark.metadata:
            return TableStatus(name, State.CURRENT, mark.copied_at)
        copied = {snapshot.snapshot_id for snapshot in standby_table.snapshots()}
        times = [snapshot.timestamp_ms for snapshot in source_table.snapshots() if snapshot.snapshot_id not in copied]
        behind_since = _to_time(min(times, default=source_table.metadata.last_updated_ms))
        return TableStatus(name, State.BEHIND, mark.copied_at, max(now - behind_since, timedelta()), len(times))

    def _measure_without_source(self, table: StandbyTable, reason: str, now: datetime) -> TableStatus:
        _, mark = table.require_copy()
        if mark.promoted_at:
            return TableStatus(table.name, State.PROMOTED, mark.copied_at)
        return TableStatus(table.name, State.UNKNOWN, mark.copied_at, now - mark.copied_at, detail=reason)

    def _run(self, tables: Collection[StandbyTable], act: Callable[[StandbyTable], TableStatus]) -> list[TableStatus]:
        def act_on(table: StandbyTable) -> TableStatus:
            try:
                return act(table)
            except LakewrightSparkError as error:
                return TableStatus(table.name, State.FAILED, detail=str(error))
            except Exception as error:  # noqa: BLE001  # any error: it must not affect other tables
                return TableStatus(table.name, State.FAILED, detail=describe_error(error))

        with ThreadPoolExecutor(PARALLEL, thread_name_prefix="standby") as pool:
            return list(pool.map(act_on, tables))

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
            if _is_copy(self.standby.find_table(identifier), self.source_name):
                copies.append(self._build_table(identifier, source))
        return copies

    def _merge(self, *groups: Collection[StandbyTable]) -> list[StandbyTable]:
        """Return the tables of all groups by name, each once."""
        tables = {table.identifier: table for group in groups for table in group}
        return [tables[identifier] for identifier in sorted(tables)]

    def _select(self, endpoint: Endpoint) -> list[Identifier]:
        """Return the tables of the patterns. The maintenance of each warehouse has its own tables in `ops`."""
        return [name for name in endpoint.list_tables() if name[0] != OPS and self.patterns.select(name)]

    def _build_table(self, identifier: Identifier, source: Endpoint | None) -> StandbyTable:
        return StandbyTable(identifier, self.source_name, source, self.standby, self._check_claim)

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


def _is_copy(table: Table | None, source_name: str) -> bool:
    """Return whether a table is a copy of the source. A mark that cannot be read is reported with its table."""
    try:
        mark = read_mark(table.properties) if table else None
    except StandbyError:
        return True
    return mark is not None and mark.source == source_name


def _to_time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _find_age(table: Table | None, now: datetime) -> timedelta:
    """Return the time since a table's first snapshot."""
    times = [_to_time(snapshot.timestamp_ms) for snapshot in table.snapshots()] if table else []
    return now - min(times, default=now)


def find_problems(statuses: Sequence[TableStatus], max_lag: timedelta | None = None) -> list[str]:
    """Return a sentence for each table that failed, was written, or is further behind than the limit."""
    problems = [f"{status.name}: {status.detail}" for status in statuses if status.state is State.FAILED]
    problems += [f"{s.name}: other writers changed it in the standby" for s in statuses if s.state is State.WRITTEN]
    if max_lag is not None:
        problems += [f"{s.name}: the source no longer has it" for s in statuses if s.state is State.DROPPED]
        behind = [status for status in statuses if status.lag > max_lag and status.state is not State.WRITTEN]
        problems += [f"{status.name}: {format_lag(status.lag)} behind its source" for status in behind]
    return problems


def format_lag(lag: timedelta) -> str:
    """Return a lag in whole seconds."""
    return str(timedelta(seconds=round(lag.total_seconds())))
