"""`ops.compute_usage`: how long each pod of a computing unit ran on a UTC day, as measured in the cluster.

A row is replaced by a later measurement of the same pod and day, so measurements can be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from lakewright_spark.iceberg_values import COMMIT_RETRIES, METADATA_LIMITS
from lakewright_spark.policies.builtin import COMPUTE_USAGE
from lakewright_spark.scheduler.run_log.ops_tables import create_if_missing, find_table, overwrite
from lakewright_spark.times import format_day

NAME = COMPUTE_USAGE
DAYS_KEPT = 400
"""Days after which a row may be dropped. Whole months are dropped."""
_ATTEMPTS = 8
"""Attempts to commit rows while other measurements commit."""
_SECONDS_OF_A_DAY = 86_400
_TEXT = StringType()
SCHEMA = Schema(
    NestedField(1, "month", _TEXT, doc="UTC month of the day, yyyy-MM; the partition"),
    NestedField(2, "day", _TEXT, doc="UTC day, yyyy-MM-dd"),
    NestedField(3, "unit", _TEXT, doc="name of the computing unit"),
    NestedField(4, "pod", _TEXT, doc="uid of the pod"),
    NestedField(5, "seconds", DoubleType(), doc="seconds of the day in which the pod ran, as far as measured"),
    NestedField(6, "cpu", DoubleType(), doc="CPUs that its containers request; null: not reported"),
    NestedField(7, "memory_bytes", LongType(), doc="memory that its containers request; null: not reported"),
)
_PARTITIONS = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "month"))
_PROPERTIES = {
    **COMMIT_RETRIES,
    **METADATA_LIMITS,
    "comment": "Hours of computing units, one row per pod and day",
}


@dataclass(frozen=True, kw_only=True)
class PodDay:
    """The time for which a pod ran on a UTC day."""

    day: str
    """UTC day, such as 2026-11-27."""
    unit: str
    pod: str
    seconds: float
    cpu: float | None = None
    """Requested CPUs."""
    memory_bytes: int | None = None
    """Requested memory."""

    @classmethod
    def parse(cls, entry: object) -> PodDay:
        """Return a measurement in JSON.

        Raises:
            ValueError: The entry is no measurement.
        """
        values = cast(dict[str, Any], entry) if isinstance(entry, dict) else {}
        day, unit, pod, seconds = (values.get(name) for name in ("day", "unit", "pod", "seconds"))
        are_texts = isinstance(day, str) and isinstance(unit, str) and isinstance(pod, str)
        if not are_texts or isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise ValueError(f"{json.dumps(entry)} is no measurement")
        if not 0 <= seconds <= _SECONDS_OF_A_DAY:
            raise ValueError(f"a day has {_SECONDS_OF_A_DAY} seconds, found {seconds}")
        measured_day = format_day(datetime.fromisoformat(str(day)).replace(tzinfo=UTC))
        cpu, memory = values.get("cpu"), values.get("memory_bytes")
        if not all(amount is None or type(amount) in (int, float) for amount in (cpu, memory)):
            raise ValueError(f"expected numbers as `cpu` and `memory_bytes`, found {json.dumps(entry)}")
        return cls(
            day=measured_day,
            unit=str(unit),
            pod=str(pod),
            seconds=float(seconds),
            cpu=None if cpu is None else float(cpu),
            memory_bytes=None if memory is None else int(memory),
        )

    @property
    def month(self) -> str:
        """UTC month of the day."""
        return self.day[:7]


def write_pod_days(catalog: Catalog, rows: Iterable[PodDay], now: datetime) -> None:
    """Write measurements in one commit. A measured time of a pod and day never becomes shorter. Drop old months.

    Raises:
        CommitFailedException, ValidationException: Other measurements committed at each attempt.
    """
    measured = {(row.pod, row.day): row for row in rows}
    if not measured:
        return
    months = ", ".join(sorted({f"'{row.month}'" for row in measured.values()}))
    oldest = format_day(now - timedelta(days=DAYS_KEPT))[:7]
    rewritten = f"month IN ({months}) OR month < '{oldest}'"
    for attempt in range(1, _ATTEMPTS + 1):
        table = create_if_missing(catalog, NAME, SCHEMA, _PROPERTIES, _PARTITIONS)
        earlier_rows = [_from_row(values) for values in table.scan(rewritten).to_arrow().to_pylist()]
        merged = dict(measured)
        for row in earlier_rows:
            newer = merged.get((row.pod, row.day))
            if row.month >= oldest and (newer is None or newer.seconds < row.seconds):
                merged[row.pod, row.day] = row
        if sorted(map(_sort_key, merged.values())) == sorted(map(_sort_key, earlier_rows)):
            return
        documents = [{"month": row.month, **asdict(row)} for row in sorted(merged.values(), key=_sort_key)]
        rows_of_months = pa.Table.from_pylist(documents, table.schema().as_arrow())
        try:
            overwrite(table, rows_of_months, rewritten)
        except (CommitFailedException, ValidationException):
            if attempt == _ATTEMPTS:
                raise
        else:
            return


PodSeconds = Mapping[tuple[str, str], float]
"""Seconds by the uid of a pod and the UTC day."""


def read_seconds(catalog: Catalog, earliest: datetime) -> PodSeconds:
    """Return the measured seconds in a warehouse since the day of an instant."""
    table = find_table(catalog, NAME)
    if table is None:
        return {}
    day = format_day(earliest)
    seconds: dict[tuple[str, str], float] = {}
    for row in table.scan(f"month >= '{day[:7]}' AND day >= '{day}'").to_arrow().to_pylist():
        key = row["pod"], row["day"]
        seconds[key] = max(row["seconds"], seconds.get(key, 0.0))
    return seconds


def read_month_seconds(catalog: Catalog, now: datetime) -> PodSeconds:
    """Return the measured seconds in a warehouse in the UTC month of an instant."""
    return read_seconds(catalog, now.astimezone(UTC).replace(day=1))


def sum_hours(by_warehouse: Mapping[str, PodSeconds]) -> dict[tuple[str, str], float]:
    """Return the hours of computing units by warehouse and day. Days without a measurement are left out.

    A pod and day counts only in the warehouse with its longest measurement, or in the last of equal measurements: a pod
    is recorded again if a warehouse is put before the first warehouse, or its unit gets another default warehouse.

    Args:
        by_warehouse: Seconds by the name of the warehouse, in the order of the tenant's warehouses.
    """
    longest: dict[tuple[str, str], tuple[float, str]] = {}
    for warehouse, seconds_of_pods in by_warehouse.items():
        for key, seconds in seconds_of_pods.items():
            if key not in longest or longest[key][0] <= seconds:
                longest[key] = seconds, warehouse
    hours: dict[tuple[str, str], float] = {}
    for (_, day), (seconds, warehouse) in longest.items():
        hours[warehouse, day] = hours.get((warehouse, day), 0.0) + seconds / 3600
    return hours


def _sort_key(row: PodDay) -> tuple[str, str, float]:
    return row.day, row.pod, row.seconds


def _from_row(row: dict[str, Any]) -> PodDay:
    known_names = {field.name for field in fields(PodDay)}
    return PodDay(**{name: value for name, value in row.items() if name in known_names})
