"""Evaluate the checks of a table from its metadata and manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from lakewright_spark.times import format_time

from lakewright.data_checks.newest_rows import find_newest_rows
from lakewright.data_checks.result import NotEvaluatedError, Verdict
from lakewright.data_checks.session import CheckSession
from lakewright.data_checks.snapshots import (
    adds_rows,
    count_rows,
    find_current_snapshot,
    list_lineage,
    may_add_rows,
    parse_snapshot_time,
)
from lakewright.data_checks.time_bounds import TimeColumn, find_column, is_time, list_partitions
from lakewright.spec.data_check import TableCheck, age_seconds


def format_title(check: TableCheck) -> str:
    """Return what is checked."""
    return f"table {check.table}"


def evaluate(check: TableCheck, session: CheckSession) -> Iterator[Verdict]:
    """Yield whether the table exists, has enough rows, and has recent rows."""
    metadata = session.load_metadata(check.path)
    if metadata is None:
        yield Verdict.from_evaluation("exists", "a table", _describe_absence(check, session), holds=False)
        return
    yield Verdict.from_evaluation("exists", "a table", "a table", holds=True)
    snapshot = find_current_snapshot(metadata)
    if check.min_rows is not None:
        yield _check_row_count(check.min_rows, snapshot)
    if check.newer_than is not None:
        yield _check_age(check, snapshot, session)


def _describe_absence(check: TableCheck, session: CheckSession) -> str:
    if session.find_warehouse_id(check.path.warehouse) is None:
        return f"warehouse {check.path.warehouse} is not on the server"
    return "no table of this name that this identity can see"


def _check_row_count(min_rows: int, snapshot: Mapping[str, Any] | None) -> Verdict:
    expected = f"at least {min_rows} rows"
    if snapshot is None:
        return Verdict.from_evaluation("min_rows", expected, "no snapshot, so no rows", holds=False)
    count = count_rows(snapshot)
    if count is None:
        reason = "the snapshot's summary has no `total-records`; its writer does not count rows"
        return Verdict("min_rows", expected, reason, "not evaluated")
    if count.lowest < min_rows <= count.records:
        reason = f"{count}, depending on what its delete files remove; compact the table"
        return Verdict("min_rows", expected, reason, "not evaluated")
    return Verdict.from_evaluation("min_rows", expected, str(count), holds=count.lowest >= min_rows)


def _check_age(check: TableCheck, snapshot: Mapping[str, Any] | None, session: CheckSession) -> Verdict:
    by = f" by column {check.column}" if check.column else ""
    expected = f"rows newer than {check.newer_than}{by}"
    if snapshot is None:
        return Verdict.from_evaluation("newer_than", expected, "no snapshot, so no rows", holds=False)
    enough = session.now - timedelta(seconds=age_seconds(check.newer_than or ""))
    try:
        if check.column:
            return _check_age_by_column(check, expected, enough, session)
        return _check_age_by_snapshot(check, snapshot, expected, enough, session)
    except NotEvaluatedError as error:
        return Verdict("newer_than", expected, str(error), "not evaluated")


def _check_age_by_snapshot(
    check: TableCheck, snapshot: Mapping[str, Any], expected: str, enough: datetime, session: CheckSession
) -> Verdict:
    lineage: list[Mapping[str, Any]] = [snapshot]
    if not adds_rows(snapshot):  # such as a compaction; the addition is an ancestor
        lineage = list_lineage(session.load_all_snapshots(check.path), snapshot.get("snapshot-id")) or lineage
    added = next(filter(adds_rows, lineage), None)
    if added is not None and parse_snapshot_time(added) >= enough:
        return _report_addition(added, expected, holds=True)
    unclear = next(filter(may_add_rows, lineage), None)
    if unclear is not None and parse_snapshot_time(unclear) >= enough:
        raise NotEvaluatedError(
            f"the overwrite of {format_time(parse_snapshot_time(unclear))} removed at least as many rows as it added,"
            " as updates and deletions do; check a `column`"
        )
    if added is not None:
        return _report_addition(added, expected, holds=False)
    oldest_time = parse_snapshot_time(lineage[-1])
    if oldest_time < enough:
        return Verdict.from_evaluation(
            "newer_than", expected, f"no snapshot added rows since {format_time(oldest_time)}", holds=False
        )
    raise NotEvaluatedError(
        f"no kept snapshot added rows, and snapshots before {format_time(oldest_time)} are expired; check a `column`"
    )


def _report_addition(snapshot: Mapping[str, Any], expected: str, *, holds: bool) -> Verdict:
    finding = f"newest snapshot with added rows: {format_time(parse_snapshot_time(snapshot))}"
    return Verdict.from_evaluation("newer_than", expected, finding, holds=holds)


def _check_age_by_column(check: TableCheck, expected: str, enough: datetime, session: CheckSession) -> Verdict:
    metadata, store = session.load_table_files(check.path)
    column = _find_time_column(metadata, check.column or "")
    snapshot = find_current_snapshot(metadata) or {}
    if not snapshot.get("manifest-list"):
        raise NotEvaluatedError("the snapshot has no manifest list (an old table of format version 1); rewrite it")
    rows = find_newest_rows(
        session.read_file(store, str(snapshot["manifest-list"])),
        column,
        list_partitions(metadata, column),
        enough=enough,
        read=lambda path: session.read_file(store, path),
    )
    finding = f"newest value: {_format_value(column, rows.newest)}" if rows.newest else "no value of the column"
    if rows.is_recent:
        return Verdict.from_evaluation(
            "newer_than", expected, f"a value of {_format_value(column, rows.newest)}", holds=True
        )
    if rows.unread:
        raise NotEvaluatedError(f"{finding}; {rows.unread} manifests were not read: rewrite the table's manifests")
    if rows.without_bounds:
        raise NotEvaluatedError(
            f"{finding}; {rows.without_bounds} data files have no metrics for the column (`write.metadata.metrics`)"
        )
    return Verdict.from_evaluation("newer_than", expected, finding, holds=False)


def _find_time_column(metadata: Mapping[str, Any], name: str) -> TimeColumn:
    column = find_column(metadata, name)
    if column is None:
        raise NotEvaluatedError(f"the table has no column {name}")
    field_id, type_ = column
    if not is_time(type_):
        kind = type_ if isinstance(type_, str) else "a nested type"
        raise NotEvaluatedError(f"column {name} has type {kind}; expected a date or timestamp")
    return TimeColumn(field_id, type_)


def _format_value(column: TimeColumn, end: datetime | None) -> str:
    """Return a value as it was written: a date counts until its end."""
    if end is None:
        return "none"
    return str((end - timedelta(microseconds=1)).date()) if column.type == "date" else format_time(end)
