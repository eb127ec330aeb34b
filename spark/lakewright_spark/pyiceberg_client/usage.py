"""The usage report of a tenant: its warehouses with their owners, and bytes, files and growth of tables and views.

Sizes come from Iceberg's metadata, without Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog import explain_errors, list_namespaces, open_catalog
from lakewright_spark.pyiceberg_client.file_sizes import FileSizes, Reach, TableSize, read_files
from lakewright_spark.pyiceberg_client.read_errors import ALL_TABLES, reason_unreadable
from lakewright_spark.pyiceberg_client.recorded_sizes import STATISTICS, RecordedSizes, read_recorded_sizes
from lakewright_spark.pyiceberg_client.table_details import TableDetails, read_details
from lakewright_spark.pyiceberg_client.table_metadata import load_metadata
from lakewright_spark.table_identifier import TableIdentifier
from lakewright_spark.unavailable_warehouses import UnavailableWarehouses


def measure(table: Table) -> TableSize:
    """Measure a table from the manifest lists of all snapshots and their manifests.

    Memory grows with the number of files, not with that of snapshots: each manifest is read once.

    Raises OSError if a manifest cannot be read.
    """
    metadata = table.metadata
    refs = {ref.snapshot_id for ref in metadata.refs.values()}
    manifests: dict[str, Reach] = {}
    for snapshot in metadata.snapshots:
        reach = Reach.LIVE if snapshot.snapshot_id in refs else Reach.OLD
        if snapshot.snapshot_id == metadata.current_snapshot_id:
            reach = Reach.CURRENT
        for manifest in snapshot.manifests(table.io):
            manifests[manifest.manifest_path] = max(reach, manifests.get(manifest.manifest_path, Reach.OLD))
    files = FileSizes()
    for path, reach in manifests.items():
        for file, size in read_files(table, path):
            files.add(file, size, reach)
    return files.total(len(metadata.snapshots))


RUNS = ("ops", "job_runs")
RUNS_WINDOW = timedelta(days=60)
"""Older runs of maintenance jobs do not count."""


def read_last_successes(catalog: Catalog, since: datetime) -> Mapping[str, Mapping[str, datetime]]:
    """Return the start of the last successful run by the table's UUID and maintenance job."""
    times: dict[str, dict[str, datetime]] = {}
    with suppress(NoSuchTableError, NoSuchNamespaceError):
        row_filter = f"day >= '{since:%Y-%m-%d}' AND state = 'SUCCEEDED'"
        scan = catalog.load_table(RUNS).scan(row_filter, selected_fields=("table_uuid", "job", "started_at"))
        batches: Any = scan.to_arrow_batch_reader()
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            newest = rows.group_by(["table_uuid", "job"]).aggregate([("started_at", "max")])
            for row in newest.to_pylist():
                jobs, at = times.setdefault(row["table_uuid"], {}), row["started_at_max"].astimezone(UTC)
                jobs[row["job"]] = max(at, jobs.get(row["job"], at))
    return times


CONCURRENT_TABLES = 8
"""Tables that are measured at the same time."""

WINDOW = timedelta(days=30)


@dataclass(frozen=True)
class Growth:
    """Growth in bytes of the current snapshots since a time; negative if they shrank."""

    bytes: int
    since: datetime


@dataclass(frozen=True)
class TableUsage:
    """Usage of a table. `growth` is None without statistics of an earlier size."""

    table: TableIdentifier
    size: TableSize
    details: TableDetails
    growth: Growth | None = None
    maintained: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """Start of the last successful run of each maintenance job within sixty days (UTC)."""


@dataclass(frozen=True)
class WarehouseUsage:
    """Usage of a warehouse. `owner` is None for a warehouse of the whole tenant."""

    warehouse: str
    owner: str | None
    tables: tuple[TableUsage, ...]
    views: tuple[TableIdentifier, ...]
    unread: tuple[tuple[TableIdentifier, str], ...] = ()
    """Tables, and namespaces as a table `*`, that could not be read, and the reason."""


@dataclass(frozen=True, kw_only=True)
class Total(TableSize):
    """Total usage of several tables."""

    tables: int = 0
    views: int = 0
    growth: Growth | None = None
    """Growth of the tables with statistics, since the earliest of them."""


@dataclass(frozen=True)
class UsageReport:
    """Usage of a tenant at a time (UTC)."""

    tenant: str
    at: datetime
    warehouses: tuple[WarehouseUsage, ...]
    unavailable: UnavailableWarehouses = field(default_factory=UnavailableWarehouses, compare=False)
    """Warehouses that are not counted."""

    @property
    def total(self) -> Total:
        """Totals of all warehouses."""
        return total(self.warehouses)

    @property
    def owners(self) -> dict[str | None, Total]:
        """Totals by owner, in the order of the warehouses."""
        names = dict.fromkeys(warehouse.owner for warehouse in self.warehouses)
        return {name: total(warehouse for warehouse in self.warehouses if warehouse.owner == name) for name in names}


def measure_usage(
    config: CatalogConfig, now: datetime, window: timedelta = WINDOW, *, named_warehouses: Collection[str] = ()
) -> UsageReport:
    """Measure every table of the configuration's warehouses; growth is measured over the window before `now` (UTC).

    A table that is dropped in the meantime is left out, and so is a warehouse that this identity may not use, unless
    it is in `named_warehouses`.

    Raises CatalogUnreachableError, WarehouseRefusedError, IdentityError or JobFailedError if no warehouse can be used.
    """
    unavailable, usages = UnavailableWarehouses(named_warehouses), list[WarehouseUsage]()
    for warehouse in config.warehouses:
        with unavailable.record_failures(warehouse.name):
            usages.append(_warehouse(config, warehouse.name, warehouse.owner, now - window))
    unavailable.check_any_left([warehouse.name for warehouse in config.warehouses])
    return UsageReport(config.tenant, now, tuple(usages), unavailable)


def total(warehouses: Iterable[WarehouseUsage]) -> Total:
    """Return the total usage of these warehouses."""
    totals = Total()
    for warehouse in warehouses:
        totals = replace(totals, views=totals.views + len(warehouse.views))
        for table in warehouse.tables:
            totals = replace(
                totals,
                bytes_live=totals.bytes_live + table.size.bytes_live,
                bytes_reclaimable=totals.bytes_reclaimable + table.size.bytes_reclaimable,
                bytes_current=totals.bytes_current + table.size.bytes_current,
                files=totals.files + table.size.files,
                snapshots=totals.snapshots + table.size.snapshots,
                tables=totals.tables + 1,
                growth=_both(totals.growth, table.growth),
            )
    return totals


def _both(first: Growth | None, other: Growth | None) -> Growth | None:
    if first is None or other is None:
        return first or other
    return Growth(first.bytes + other.bytes, min(first.since, other.since))


def _warehouse(config: CatalogConfig, name: str, owner: str | None, since: datetime) -> WarehouseUsage:
    catalog = open_catalog(config, name)
    with explain_errors(config, name):
        unread: dict[TableIdentifier, str] = {}

        def leave_out(namespace: tuple[str, ...], error: Exception) -> None:
            unread[TableIdentifier(name, namespace, ALL_TABLES)] = reason_unreadable(catalog, error)

        statistics = RecordedSizes({}, {})
        maintained: Mapping[str, Mapping[str, datetime]] = {}
        try:
            statistics = read_recorded_sizes(catalog, since)
            maintained = read_last_successes(catalog, datetime.now(UTC) - RUNS_WINDOW)
        except Exception as error:  # noqa: BLE001  # growth is not known then, and sizes are
            unread[TableIdentifier(name, STATISTICS[:-1], STATISTICS[-1])] = reason_unreadable(catalog, error)
        names: list[TableIdentifier] = []
        views: list[TableIdentifier] = []
        for space in sorted(list_namespaces(catalog, on_error=leave_out)):
            try:
                views += (TableIdentifier(name, path[:-1], path[-1]) for path in _views(catalog, space))
                names += (TableIdentifier(name, path[:-1], path[-1]) for path in _tables(catalog, space))
            except Exception as error:  # noqa: BLE001  # any error: it must not affect other namespaces
                leave_out(space, error)

        def measure(table: TableIdentifier) -> TableUsage | str | None:
            return _measure_table(catalog, table, statistics, maintained)

        with ThreadPoolExecutor(CONCURRENT_TABLES, thread_name_prefix="usage") as pool:
            results = list(pool.map(measure, names))
    tables = tuple(usage for usage in results if isinstance(usage, TableUsage))
    unread |= {table: reason for table, reason in zip(names, results, strict=True) if isinstance(reason, str)}
    return WarehouseUsage(name, owner, tables, tuple(views), tuple(unread.items()))


def _tables(catalog: Catalog, namespace: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    with suppress(NoSuchNamespaceError):
        yield from sorted(catalog.list_tables(namespace))


def _views(catalog: Catalog, namespace: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    # Not every catalog knows of views.
    with suppress(NoSuchNamespaceError, NotImplementedError):
        yield from sorted(catalog.list_views(namespace))


def _measure_table(
    catalog: Catalog,
    name: TableIdentifier,
    statistics: RecordedSizes,
    maintained: Mapping[str, Mapping[str, datetime]],
) -> TableUsage | str | None:
    """Return the usage of a table, the reason why it is unknown, or None if the table no longer exists."""
    try:
        table = load_metadata(catalog, name.within)
        size = statistics.find_size(table) or measure(table)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    except Exception as error:  # noqa: BLE001  # any error: it must not affect other tables
        return reason_unreadable(catalog, error)
    uuid = str(table.metadata.table_uuid)
    then = statistics.earliest.get(uuid)
    growth = Growth(size.bytes_current - then.bytes, then.at) if then else None
    return TableUsage(name, size, read_details(table), growth, maintained.get(uuid, {}))
