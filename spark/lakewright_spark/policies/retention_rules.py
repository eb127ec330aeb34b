"""Check a retention policy against a table's columns and partitions, and compute its cutoff. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from lakewright_spark.policies.model import RetentionPolicy

_TIMES = ("hour", "day", "month", "year")


def retention_mistakes(
    retention: RetentionPolicy, columns: Mapping[str, str], partitions: Sequence[tuple[str, str]]
) -> list[str]:
    """Return the conflicts of a policy with a table as sentences.

    `columns`: name -> Iceberg's type. `partitions`: (column, transform) as Iceberg writes it, such as `("ts", "day")`.
    """
    if retention.column not in columns:
        return [f"retention: expected one of the columns {', '.join(columns)}; there is no `{retention.column}`"]
    by_time = [(column, transform) for column, transform in partitions if transform in _TIMES]
    if columns[retention.column] == "date" and (retention.column, "identity") in partitions:
        mistakes = _check_date_partitions(retention)
    elif by_time:
        mistakes = _check_time_partitions(retention, by_time)
    else:
        mistakes = _check_text_column(retention, columns[retention.column])
    return [f"retention: {mistake}" for mistake in mistakes]


def _check_text_column(retention: RetentionPolicy, kind: str) -> Iterator[str]:
    if retention.pattern is None:
        yield f"expected `pattern`, since the table is not partitioned by time of `{retention.column}`"
    elif kind != "string":
        yield f"expected a text column under `pattern`; `{retention.column}` is {kind}"


def _check_date_partitions(retention: RetentionPolicy) -> Iterator[str]:
    if retention.pattern is not None:
        yield f"expected no `pattern`, since `{retention.column}` is a date"
    if retention.unit == "hour":
        yield f"expected `unit: day`, month or year, since `{retention.column}` is a date; found `hour`"


def _check_time_partitions(retention: RetentionPolicy, by_time: Sequence[tuple[str, str]]) -> Iterator[str]:
    cuts = [transform for column, transform in by_time if column == retention.column]
    if retention.pattern is not None:
        yield "expected no `pattern`, since the table is partitioned by time"
    if not cuts:
        partition_columns = ", ".join(column for column, _ in by_time)
        yield f"expected the column that time partitions are made of, {partition_columns}; found `{retention.column}`"
    elif retention.unit not in cuts:
        yield f"expected `unit: {cuts[0]}`, as of the partitions of `{retention.column}`; found `{retention.unit}`"


def cutoff(retention: RetentionPolicy, now: datetime) -> datetime:
    """Return the start (UTC) of the unit that lies `keep` units before the unit of `now`. Earlier rows are deleted."""
    keep, start = retention.keep, now.replace(minute=0, second=0, microsecond=0)
    if retention.unit == "hour":
        return start - timedelta(hours=keep)
    start = start.replace(hour=0)
    if retention.unit == "day":
        return start - timedelta(days=keep)
    if retention.unit == "month":
        months = start.year * 12 + start.month - 1 - keep
        return start.replace(year=months // 12, month=months % 12 + 1, day=1)
    return start.replace(year=start.year - keep, month=1, day=1)
