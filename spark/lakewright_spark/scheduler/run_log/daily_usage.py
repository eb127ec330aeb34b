"""`ops.daily_usage`: a row for each UTC day with the bytes of a warehouse and the work on it, for cost reports.

The table also has copies of the rows of the tenant's archived warehouses, which accept no writes. A warehouse may have
been renamed since one of its rows was written, so `merge_days` gives rows the present name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType

from lakewright_spark.catalog import COMMIT_RETRIES
from lakewright_spark.iceberg_values import METADATA_LIMITS
from lakewright_spark.policies.builtin import DAILY_USAGE
from lakewright_spark.scheduler.run_log.compute_usage import PodSeconds, sum_hours
from lakewright_spark.scheduler.run_log.ops_tables import create_if_missing, find_table, overwrite
from lakewright_spark.times import format_day

NAME = DAILY_USAGE
DAYS_KEPT = 400
"""Days after which a row may be dropped. Whole months are dropped."""
_ATTEMPTS = 8
"""Attempts to commit rows while other runners commit."""
_TEXT, _NUMBER = StringType(), LongType()
SCHEMA = Schema(
    NestedField(1, "month", _TEXT, doc="UTC month of the day, yyyy-MM; the partition"),
    NestedField(2, "day", _TEXT, doc="UTC day of the measurement, yyyy-MM-dd"),
    NestedField(3, "warehouse", _TEXT, doc="name of the warehouse when the row was written"),
    NestedField(4, "owner", _TEXT, doc="principal that owns the warehouse; null: the tenant"),
    NestedField(5, "tables", _NUMBER),
    NestedField(6, "tables_unread", _NUMBER, doc="tables and namespaces that could not be read and are not counted"),
    NestedField(7, "files", _NUMBER, doc="live files"),
    NestedField(8, "bytes_live", _NUMBER, doc="files of current snapshots, branches and tags"),
    NestedField(9, "bytes_reclaimable", _NUMBER, doc="files of older snapshots only"),
    NestedField(10, "bytes_orphan", _NUMBER, doc="candidates of orphan-files and staged-files; null: unknown"),
    NestedField(11, "bytes_soft_deleted", _NUMBER, doc="dropped tables that can be restored; null: not reported"),
    NestedField(12, "dropped_unmeasured", _NUMBER, doc="dropped tables without statistics, which are not counted"),
    NestedField(13, "requests", _NUMBER, doc="requests of the day to the store; null: the store reports none"),
    NestedField(14, "cu_hours", DoubleType(), doc="hours of computing units; null: no source reports them"),
    NestedField(15, "maintenance_minutes", DoubleType(), doc="sum of the runs of jobs that were queued on the day"),
    NestedField(16, "measured_at", TimestamptzType()),
    NestedField(17, "limited_namespaces", _TEXT, doc="JSON: bytes, files and tables by namespace with limits"),
    NestedField(18, "pod_seconds", _TEXT, doc="JSON of an archived warehouse: seconds of the day by uid of the pod"),
    NestedField(19, "archive_id", _TEXT, doc="id of the archived warehouse of which the row is a copy; null: own row"),
)
_PARTITIONS = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "month"))
_PROPERTIES = {
    **COMMIT_RETRIES,
    **METADATA_LIMITS,
    "comment": "Daily usage of the warehouse, one row per day",
}


@dataclass(frozen=True, kw_only=True)
class DailyUsage:
    """Usage of a warehouse on a day, measured at one moment of the day. Fields without a source are None."""

    day: str
    """UTC day, such as 2026-11-27."""
    warehouse: str
    owner: str | None = None
    tables: int = 0
    tables_unread: int = 0
    """Tables and namespaces that could not be read. They are not counted."""
    files: int = 0
    bytes_live: int = 0
    bytes_reclaimable: int = 0
    bytes_orphan: int | None = 0
    bytes_soft_deleted: int | None = 0
    dropped_unmeasured: int = 0
    """Dropped tables without statistics. They are not counted."""
    requests: int | None = None
    cu_hours: float | None = None
    maintenance_minutes: float = 0.0
    measured_at: datetime
    limited_namespaces: str | None = None
    """JSON with the amounts that the limits of each namespace count, by namespace; None without such limits."""
    pod_seconds: str | None = None
    """JSON with the seconds of the day by uid of the pod. Only copies of the rows of archived warehouses have it: their
    `ops.compute_usage` is deleted with the warehouse."""
    archive_id: str | None = None
    """Id of the archived warehouse of which the row is a copy; None for rows of the warehouse that has the table."""

    @property
    def month(self) -> str:
        """UTC month of the day."""
        return self.day[:7]


def write_day(catalog: Catalog, row: DailyUsage, minutes_of_previous_day: float, now: datetime) -> None:
    """Write the row of a day in one commit, which replaces an earlier row of this day. Drop old months.

    The earlier row may have another name: the warehouse was renamed on this day. Copies of archived warehouses remain.

    Runs of the previous day may have ended after its row was written, so its minutes are written again.

    Raises:
        CommitFailedException, ValidationException: Other runners committed at each attempt.
    """
    previous_day = format_day(datetime.fromisoformat(row.day).replace(tzinfo=UTC) - timedelta(days=1))

    def merge(earlier_rows: list[DailyUsage]) -> list[DailyUsage]:
        return [
            *(
                replace(usage, maintenance_minutes=minutes_of_previous_day)
                if (usage.archive_id, usage.day) == (None, previous_day)
                else usage
                for usage in earlier_rows
                if (usage.archive_id, usage.day) != (None, row.day)
            ),
            row,
        ]

    _rewrite(catalog, {row.month, previous_day[:7]}, merge, now)


def add_days(catalog: Catalog, rows: Sequence[DailyUsage], now: datetime) -> int:
    """Add copies of rows of archived warehouses in one commit, and return their number. Drop old months.

    A row of the same warehouse and day is replaced if it was measured earlier.

    Raises:
        CommitFailedException, ValidationException: Other runners committed at each attempt.
    """
    oldest = format_day(now - timedelta(days=DAYS_KEPT))[:7]
    existing = {(usage.archive_id, usage.day): usage.measured_at for usage in list_days(catalog)}
    added = [
        row
        for row in rows
        if row.month >= oldest
        and ((row.archive_id, row.day) not in existing or existing[row.archive_id, row.day] < row.measured_at)
    ]
    keys = {(row.archive_id, row.day) for row in added}

    def merge(earlier_rows: list[DailyUsage]) -> list[DailyUsage]:
        return [*(usage for usage in earlier_rows if (usage.archive_id, usage.day) not in keys), *added]

    if added:
        _rewrite(catalog, {row.month for row in added}, merge, now)
    return len(added)


def _rewrite(
    catalog: Catalog,
    months: Collection[str],
    merge: Callable[[list[DailyUsage]], list[DailyUsage]],
    now: datetime,
) -> None:
    """Replace the rows of some months in one commit, and drop old months."""
    oldest = format_day(now - timedelta(days=DAYS_KEPT))[:7]
    listed_months = ", ".join(f"'{month}'" for month in sorted(months))
    rewritten = f"month IN ({listed_months}) OR month < '{oldest}'"
    for attempt in range(1, _ATTEMPTS + 1):
        table = create_if_missing(catalog, NAME, SCHEMA, _PROPERTIES, _PARTITIONS)
        try:
            _add_columns(table)
        except CommitFailedException:
            if attempt == _ATTEMPTS:
                raise
            continue
        earlier_rows = [_from_row(values) for values in table.scan(rewritten).to_arrow().to_pylist()]
        usages = sorted(
            (usage for usage in merge(earlier_rows) if usage.month >= oldest),
            key=lambda usage: (usage.day, usage.warehouse),
        )
        documents = [{"month": usage.month, **asdict(usage)} for usage in usages]
        rows = pa.Table.from_pylist(documents, table.schema().as_arrow())
        try:
            overwrite(table, rows, rewritten)
        except (CommitFailedException, ValidationException):
            if attempt == _ATTEMPTS:
                raise
        else:
            return


def _add_columns(table: Table) -> None:
    """Add the columns that a table of an earlier version lacks."""
    if not set(SCHEMA.column_names) <= set(table.schema().column_names):
        with table.update_schema() as change:
            change.union_by_name(SCHEMA)


def list_days(catalog: Catalog, earliest: datetime | None = None) -> list[DailyUsage]:
    """Return the rows as they were written, since the day of an instant, first day first."""
    table = find_table(catalog, NAME)
    if table is None:
        return []
    if earliest is None:
        rows = table.scan(AlwaysTrue()).to_arrow()
    else:
        day = format_day(earliest)
        rows = table.scan(f"month >= '{day[:7]}' AND day >= '{day}'").to_arrow()
    return sorted((_from_row(row) for row in rows.to_pylist()), key=lambda usage: (usage.day, usage.warehouse))


def list_own_days(rows: Iterable[DailyUsage], name: str) -> list[DailyUsage]:
    """Return the rows of the warehouse that has the table, with its present name, first day first.

    A day has one row: earlier versions wrote two rows on the day of a renaming, of which the second has all amounts.

    Args:
        rows: Rows of the table.
        name: Present name of the warehouse.
    """
    own_rows = [row for row in rows if row.archive_id is None]
    own_rows.sort(key=lambda row: (row.day, row.warehouse == name, row.measured_at))
    return [*{row.day: replace(row, warehouse=name) for row in own_rows}.values()]


def merge_days(rows: Mapping[str, Collection[DailyUsage]], names: Mapping[str, str]) -> list[DailyUsage]:
    """Return a row for each warehouse and day, with the present names of the warehouses.

    A reactivated warehouse has the rows of its archive in another warehouse, too. Its own rows are measured, so they
    take precedence. A warehouse that was archived twice has the name of its second archive.

    Args:
        rows: Rows of the tables by the present name of the warehouse that has the table.
        names: Present names of live warehouses by id.
    """
    copies = [row for rows_of_table in rows.values() for row in rows_of_table if row.archive_id is not None]
    copies.sort(key=lambda row: (row.day, row.warehouse))
    present_names = {**{row.archive_id: row.warehouse for row in copies}, **names}
    merged = {
        (row.warehouse, row.day): row
        for name, rows_of_table in rows.items()
        for row in list_own_days(rows_of_table, name)
    }
    for copy in copies:
        row = replace(copy, warehouse=present_names[copy.archive_id])
        merged.setdefault((row.warehouse, row.day), row)
    return [*merged.values()]


def fill_hours(usages: Iterable[DailyUsage], seconds: Mapping[str, PodSeconds]) -> list[DailyUsage]:
    """Return the rows with their hours of computing units. A pod and day counts once, also in archived warehouses.

    A pod counts only in a warehouse that has a row for the day. If a live and an archived warehouse have the same
    measurement, it counts in the live warehouse.

    Args:
        usages: The rows of live and archived warehouses.
        seconds: Measured seconds by the name of each live warehouse, in the order of the tenant's warehouses.
    """
    rows = list(usages)
    days = {(usage.warehouse, usage.day) for usage in rows}
    archived: dict[str, dict[tuple[str, str], float]] = {}
    for usage in rows:
        if usage.pod_seconds is not None:
            pods: dict[str, float] = json.loads(usage.pod_seconds)
            archived.setdefault(usage.warehouse, {}).update({(pod, usage.day): pods[pod] for pod in pods})
    live = {
        name: {(pod, day): amount for (pod, day), amount in measured.items() if (name, day) in days}
        for name, measured in seconds.items()
    }
    # A reactivated warehouse may have rows of its archive.
    only_archived = {name: measured for name, measured in archived.items() if name not in live}
    hours = sum_hours({**only_archived, **{name: {**archived.get(name, {}), **live[name]} for name in live}})
    return [
        usage if usage.cu_hours is not None else replace(usage, cu_hours=hours.get((usage.warehouse, usage.day)))
        for usage in rows
    ]


def _from_row(row: dict[str, Any]) -> DailyUsage:
    """Return a row. Columns that this release does not know are left out."""
    known_names = {field.name for field in fields(DailyUsage)}
    values = {name: value for name, value in row.items() if name in known_names}
    return DailyUsage(**{**values, "measured_at": row["measured_at"].astimezone(UTC)})
