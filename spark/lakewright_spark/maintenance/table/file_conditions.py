"""Conditions of Spark SQL that select data files by the age of their rows, from the metadata table `data_files`."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from lakewright_spark.maintenance.table.iceberg import IcebergTable, instant_sql, iterate
from lakewright_spark.policies.date_pattern import DEFAULT_PATTERN, date_expression, format_moment
from lakewright_spark.policies.model import RetentionPolicy
from lakewright_spark.table_identifier import literal, quote_name


class FileConditions(NamedTuple):
    """Conditions of Spark SQL on the rows of `data_files`. Each is true or false, never null."""

    limit: str
    old: str
    """All rows of the file are before the limit."""
    mixed: str
    """The file may hold rows before the limit and later rows."""
    other: str
    """A smallest or largest text does not match the date pattern. Such a file is neither old nor mixed."""


class _PartitionValue(NamedTuple):
    """The value of a file's partition by the current spec, and the limit in the same unit, in Spark SQL."""

    value: str
    limit: str
    is_identity: bool


def build_conditions(opened: IcebergTable, retention: RetentionPolicy, kind: str, before: datetime) -> FileConditions:
    """Return the conditions of the policy on the table's data files.

    Args:
        opened: The table.
        retention: A policy that suits the table.
        kind: Iceberg's type of the policy's column.
        before: Rows before this instant (UTC) are deleted.
    """
    limit = _sql_limit(retention, kind, before)
    bounds = f"readable_metrics.{quote_name(retention.column)}"
    smallest, largest, nulls = f"{bounds}.lower_bound", f"{bounds}.upper_bound", f"{bounds}.null_value_count"
    has_nulls, only_nulls = f"coalesce({nulls}, 0) > 0", f"coalesce({nulls}, 0) = record_count"
    is_before, is_later = f"{largest} < {limit}", f"{smallest} >= {limit}"
    if partition := _find_partition_value(opened, retention, limit, before):
        # A partition's value is complete, while metrics may be switched off and cut long texts.
        in_spec = f"spec_id = {opened.java.spec().specId()}"
        value = partition.value
        is_before = f"if({in_spec}, {value} < {partition.limit}, {is_before})"
        is_later = f"if({in_spec}, {value} >= {partition.limit}, {is_later})"
        has_nulls, only_nulls = (f"if({in_spec}, {value} IS NULL, {nulls})" for nulls in (has_nulls, only_nulls))
        if partition.is_identity:
            smallest, largest = (f"if({in_spec}, {value}, {bound})" for bound in (smallest, largest))
    other = "false"
    if retention.pattern is not None:
        expression = literal(f"^(?:{date_expression(retention.pattern or DEFAULT_PATTERN)})\\z")
        dates = f"({smallest} RLIKE {expression} AND {largest} RLIKE {expression})"
        # Text that is not a date sorts anywhere: an empty text is before every limit.
        other = f"coalesce(NOT {only_nulls} AND NOT {dates}, false)"
    old = f"(coalesce({is_before} AND NOT {has_nulls}, false) AND NOT {other})"
    later = f"coalesce({is_later} OR {only_nulls}, false)"
    return FileConditions(limit, old, f"(NOT {old} AND NOT {later} AND NOT {other})", other)


def _sql_limit(retention: RetentionPolicy, kind: str, before: datetime) -> str:
    """Return the limit as a literal of Spark SQL."""
    if retention.pattern is not None:
        return literal(format_moment(before, retention.pattern or DEFAULT_PATTERN))
    if kind == "date":
        return f"DATE '{before:%Y-%m-%d}'"
    # Times without a zone count as UTC, as in partitions.
    return instant_sql(before) if kind.startswith("timestamptz") else f"TIMESTAMP_NTZ '{before:%Y-%m-%d %H:%M:%S}'"


def _find_partition_value(
    opened: IcebergTable, retention: RetentionPolicy, limit: str, before: datetime
) -> _PartitionValue | None:
    """Return the partition value that decides the age of all rows of a file; None if there is none."""
    schema = opened.java.schema()
    for field in iterate(opened.java.spec().fields()):
        if schema.findColumnName(field.sourceId()) != retention.column:
            continue
        value, transform = f"partition.{quote_name(field.name())}", field.transform()
        if transform.isIdentity():
            return _PartitionValue(value, limit, is_identity=True)
        if transform.toString() == retention.unit:
            return _PartitionValue(value, _partition_limit(retention, before), is_identity=False)
    return None


def _partition_limit(retention: RetentionPolicy, before: datetime) -> str:
    """Return the limit as Iceberg's value of a partition by time, which counts from 1970. Days are dates in Spark."""
    if retention.unit == "day":
        return f"DATE '{before:%Y-%m-%d}'"
    if retention.unit == "hour":
        return str(int(before.timestamp()) // 3600)
    years = before.year - 1970
    return str(years if retention.unit == "year" else years * 12 + before.month - 1)
