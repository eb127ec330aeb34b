"""Bounds of time columns as manifests have them: bytes of a value, or of a partition's value. Pure functions.

Source: Iceberg specification, appendix D (single-value serialization) and section "Partition transforms".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from lakewright.validation.documents import as_list, as_mapping

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
_DAY = timedelta(days=1)
_PER_SECOND = {"timestamp": 10**6, "timestamptz": 10**6, "timestamp_ns": 10**9, "timestamptz_ns": 10**9}


@dataclass(frozen=True)
class TimeColumn:
    """A column of type date or timestamp."""

    field_id: int
    type: str


@dataclass(frozen=True)
class TimePartition:
    """A partition field made from the column."""

    spec_id: int
    position: int
    """Position in the partition's fields."""
    transform: str
    """`identity`, `year`, `month`, `day` or `hour`."""


def is_time(type_: object) -> bool:
    """Return whether a type has a time. A nested type, which is a mapping, has none."""
    return isinstance(type_, str) and (type_ == "date" or type_ in _PER_SECOND)


def find_column(metadata: Mapping[str, Any], name: str) -> tuple[int, Any] | None:
    """Return id and type of a column of the current schema, by its dotted path; None if there is none."""
    schemas = [as_mapping(schema) for schema in as_list(metadata.get("schemas"))]
    current = metadata.get("current-schema-id")
    schema: Any = next((schema for schema in schemas if schema.get("schema-id") == current), metadata.get("schema"))
    column_field: Mapping[str, Any] = {}
    for part in name.split("."):
        fields = [as_mapping(field) for field in as_list(as_mapping(schema).get("fields"))]
        matching = [field for field in fields if str(field.get("name")).casefold() == part.casefold()]
        column_field = matching[0] if matching else {}
        schema = column_field.get("type")
    return (int(column_field["id"]), column_field.get("type")) if column_field else None


def list_partitions(metadata: Mapping[str, Any], column: TimeColumn) -> dict[int, TimePartition]:
    """Return the partition fields that are made from a column and keep its order, by the id of their spec."""
    partitions: dict[int, TimePartition] = {}
    for spec in map(as_mapping, as_list(metadata.get("partition-specs"))):
        for position, field in enumerate(map(as_mapping, as_list(spec.get("fields")))):
            transform = str(field.get("transform"))
            if field.get("source-id") == column.field_id and transform in {"identity", "year", "month", "day", "hour"}:
                partitions[int(spec["spec-id"])] = TimePartition(int(spec["spec-id"]), position, transform)
    return partitions


def end_of_value(column: TimeColumn, bound: bytes) -> datetime:
    """Return the time of a column's bound. A date counts until its end."""
    number = int.from_bytes(bound, "little", signed=True)
    if column.type == "date":
        return _add_to_epoch(timedelta(days=number + 1))
    return _add_to_epoch(timedelta(microseconds=number * 10**6 // _PER_SECOND[column.type]))


def end_of_partition(column: TimeColumn, partition: TimePartition, bound: bytes) -> datetime:
    """Return the time that no row of a partition reaches: the end of its year, month, day or hour."""
    number = int.from_bytes(bound, "little", signed=True)
    match partition.transform:
        case "year":
            return _compute_month_start((number + 1) * 12)
        case "month":
            return _compute_month_start(number + 1)
        case "day":
            return _add_to_epoch(_DAY * (number + 1))
        case "hour":
            return _add_to_epoch(timedelta(hours=number + 1))
        case _:
            return end_of_value(column, bound)


def _compute_month_start(months: int) -> datetime:
    year, month = divmod(months, 12)
    try:
        return datetime.combine(date(1970 + year, month + 1, 1), datetime.min.time(), UTC)
    except ValueError:
        return _LAST


def _add_to_epoch(span: timedelta) -> datetime:
    try:
        return EPOCH + span
    except OverflowError:
        return _LAST
