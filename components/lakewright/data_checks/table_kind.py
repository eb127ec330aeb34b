"""Evaluate the checks of a table from its metadata and manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from lakewright_spark.times import format_time

from lakewright.data_checks.errors import NotEvaluatedError
from lakewright.data_checks.newest_rows import newest_rows
from lakewright.data_checks.result import Verdict
from lakewright.data_checks.session import CheckSession
from lakewright.data_checks.snapshots import (
    current_snapshot,
    lineage,
    newest_addition,
    row_count,
    taken_at,
)
from lakewright.data_checks.time_bounds import TimeColumn, find_column, is_time, partitions_of
from lakewright.spec.monitoring.table_check import TableCheck, age_seconds


def title(check: TableCheck) -> str:
    """Return what is checked."""
    return f"table {check.table}"


def evaluate(check: TableCheck, session: CheckSession) -> Iterator[Verdict]:
    """Yield whether the table exists, has enough rows, and recent ones."""
    metadata = session.metadata(check.path)
    if metadata is None:
        yield Verdict.of("exists", "a table", _absence(check, session), holds=False)
        return
    yield Verdict.of("exists", "a table", "a table", holds=True)
    snapshot = current_snapshot(metadata)
    if check.min_rows is not None:
        yield _rows(check.min_rows, snapshot)
    if check.newer_than is not None:
        yield _age(check, snapshot, session)


def _absence(check: TableCheck, session: CheckSession) -> str:
    if session.warehouse_id(check.path.warehouse) is None:
        return f"warehouse {check.path.warehouse} is not on the server"
    return "no table of this name that this identity can see"


def _rows(least: int, snapshot: Mapping[str, Any] | None) -> Verdict:
    expected = f"at least {least} rows"
    if snapshot is None:
        return Verdict.of("min_rows", expected, "no snapshot, so no rows", holds=False)
    count = row_count(snapshot)
    if count is None:
        reason = "the snapshot's summary has no `total-records`; its writer does not count rows"
        return Verdict("min_rows", expected, reason, "not evaluated")
    if not count.is_exact and count.highest >= least:
        reason = f"at most {count.highest} rows: equality deletes are not applied; compact the table"
        return Verdict("min_rows", expected, reason, "not evaluated")
    found = f"{count.highest} rows" if count.is_exact else f"at most {count.highest} rows"
    return Verdict.of("min_rows", expected, found, holds=count.highest >= least)


def _age(check: TableCheck, snapshot: Mapping[str, Any] | None, session: CheckSession) -> Verdict:
    by = f" by column {check.column}" if check.column else ""
    expected = f"rows newer than {check.newer_than}{by}"
    if snapshot is None:
        return Verdict.of("newer_than", expected, "no snapshot, so no rows", holds=False)
    enough = session.now - timedelta(seconds=age_seconds(check.newer_than or ""))
    try:
        if check.column:
            return _age_by_column(check, expected, enough, session)
        return _age_by_snapshot(check, snapshot, expected, enough, session)
    except NotEvaluatedError as error:
        return Verdict("newer_than", expected, str(error), "not evaluated")


def _age_by_snapshot(
    check: TableCheck, snapshot: Mapping[str, Any], expected: str, enough: datetime, session: CheckSession
) -> Verdict:
    current = snapshot.get("snapshot-id")
    added = newest_addition([snapshot], current)
    kept: list[Mapping[str, Any]] = [snapshot]
    if added is None:  # such as a compaction; the addition is an ancestor
        snapshots = session.all_snapshots(check.path)
        added, kept = newest_addition(snapshots, current), lineage(snapshots, current) or kept
    if added is not None:
        when = taken_at(added)
        return Verdict.of(
            "newer_than", expected, f"newest snapshot with added rows: {format_time(when)}", holds=when >= enough
        )
    oldest = taken_at(kept[-1])
    if oldest < enough:
        return Verdict.of("newer_than", expected, f"no snapshot added rows since {format_time(oldest)}", holds=False)
    raise NotEvaluatedError(
        f"no kept snapshot added rows, and older ones than {format_time(oldest)} are expired; check a `column`"
    )


def _age_by_column(check: TableCheck, expected: str, enough: datetime, session: CheckSession) -> Verdict:
    metadata, store = session.files_of(check.path)
    column = _column(metadata, check.column or "")
    snapshot = current_snapshot(metadata) or {}
    if not snapshot.get("manifest-list"):
        raise NotEvaluatedError("the snapshot has no manifest list (an old table of format version 1); rewrite it")
    found = newest_rows(
        session.read_file(store, str(snapshot["manifest-list"])),
        column,
        partitions_of(metadata, column),
        enough=enough,
        read=lambda path: session.read_file(store, path),
    )
    newest = f"newest value: {_value(column, found.newest)}" if found.newest else "no value of the column"
    if found.is_recent:
        return Verdict.of("newer_than", expected, f"a value of {_value(column, found.newest)}", holds=True)
    if found.unread:
        raise NotEvaluatedError(f"{newest}; {found.unread} manifests were not read: rewrite the table's manifests")
    if found.without_bounds:
        raise NotEvaluatedError(
            f"{newest}; {found.without_bounds} data files have no metrics for the column (`write.metadata.metrics`)"
        )
    return Verdict.of("newer_than", expected, newest, holds=False)


def _column(metadata: Mapping[str, Any], name: str) -> TimeColumn:
    found = find_column(metadata, name)
    if found is None:
        raise NotEvaluatedError(f"the table has no column {name}")
    field_id, type_ = found
    if not is_time(type_):
        kind = type_ if isinstance(type_, str) else "a nested type"
        raise NotEvaluatedError(f"column {name} has type {kind}; expected a date or timestamp")
    return TimeColumn(field_id, type_)


def _value(column: TimeColumn, end: datetime | None) -> str:
    """Return a value as it was written: a date counts until its end."""
    if end is None:
        return "none"
    return str((end - timedelta(microseconds=1)).date()) if column.type == "date" else format_time(end)
