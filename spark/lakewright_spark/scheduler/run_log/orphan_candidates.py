"""Orphan candidates as the scheduler sees them: the oldest of each table, and candidates that no run handles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc  # pyright: ignore[reportMissingTypeStubs]
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import LessThan
from pyiceberg.table import Table

from lakewright_spark.maintenance.table.candidates import CANDIDATES, mark_handled
from lakewright_spark.scheduler.run_log.ops_tables import append, find_table, read_parts

_COLUMNS = ("table_uuid", "first_seen")
_MARGIN = timedelta(days=1)
"""Later days are never dropped: another run may be adding candidates."""


def read_oldest_candidates(catalog: Catalog) -> Mapping[str, datetime]:
    """Return when the oldest candidate of each table was found (UTC), by table UUID. Leave out handled candidates."""
    table = find_table(catalog, CANDIDATES.name)
    if table is None:
        return {}
    handled = _read_handled(table)
    oldest: dict[str, datetime] = {}
    for part in read_parts(table, "file_path IS NOT NULL", _COLUMNS):
        for uuid, at in _aggregate(_drop_handled(part, handled), "min"):
            oldest[uuid] = min(at, oldest.get(uuid, at))
    return oldest


def list_open_candidates(catalog: Catalog, max_files: int) -> Mapping[str, set[str]] | None:
    """Return the addresses of the candidates that no run has handled, by the name of their table in the rows.

    Returns:
        None if there are more than `max_files` addresses, whose rest is not read.
    """
    table = find_table(catalog, CANDIDATES.name)
    if table is None:
        return {}
    handled = _read_handled(table)
    files: defaultdict[str, set[str]] = defaultdict(set)
    for part in read_parts(table, "file_path IS NOT NULL", (*_COLUMNS, "table_name", "file_path")):
        remaining = _drop_handled(part, handled).group_by(["table_name", "file_path"]).aggregate([])
        if remaining.num_rows > max_files:  # Python's texts take far more memory than Arrow's
            return None
        names, paths = (remaining.column(name).to_pylist() for name in ("table_name", "file_path"))
        for name, path in zip(names, paths, strict=True):
            files[name].add(path)
        if sum(map(len, files.values())) > max_files:
            return None
    return files


def _read_handled(table: Table) -> Mapping[str, datetime]:
    """Return the instant up to which the candidates of each table are handled, by table UUID."""
    handled: dict[str, datetime] = {}
    for part in read_parts(table, "file_path IS NULL", _COLUMNS):
        for uuid, at in _aggregate(part, "max"):
            handled[uuid] = max(at, handled.get(uuid, at))
    return handled


def forget_candidates(catalog: Catalog, forgotten: Mapping[str, datetime]) -> None:
    """Mark the candidates of tables as handled, in one commit. Errors of PyIceberg are raised.

    `forgotten` has, by table UUID, the instant up to which candidates were found.
    """
    if forgotten:
        append(catalog, CANDIDATES, [mark_handled("", uuid, until) for uuid, until in forgotten.items()])


def drop_handled_days(catalog: Catalog, remaining: Iterable[datetime], now: datetime) -> None:
    """Delete the files of days before the oldest remaining candidate. Errors of PyIceberg are raised.

    Marks of handled candidates are deleted with the candidates, which are never younger.
    """
    table = find_table(catalog, CANDIDATES.name)
    if table is None or table.current_snapshot() is None:
        return
    day = min([now - _MARGIN, *remaining]).replace(hour=0, minute=0, second=0, microsecond=0)
    change = table.transaction()
    files = change.update_snapshot().delete()
    before: Any = LessThan
    files.delete_by_predicate(before("first_seen", day.isoformat()))
    # Earlier releases wrote files of several days. A mark must not be deleted before its candidates.
    if files.files_affected and not files.rewrites_needed:
        files.commit()
        change.commit_transaction()


def _drop_handled(part: pa.Table, handled: Mapping[str, datetime]) -> pa.Table:
    if not handled:
        return part
    compute: Any = pc
    uuids = pa.array(list(handled))
    until = pa.array(list(handled.values()), part.schema.field("first_seen").type)
    limit = compute.take(until, compute.index_in(part.column("table_uuid"), value_set=uuids))
    return part.filter(compute.fill_null(compute.greater(part.column("first_seen"), limit), True))  # noqa: FBT003


def _aggregate(part: pa.Table, function: str) -> Iterator[tuple[str, datetime]]:
    grouped = part.group_by(["table_uuid"]).aggregate([("first_seen", function)])
    for row in grouped.to_pylist():
        yield row["table_uuid"], row[f"first_seen_{function}"].astimezone(UTC)
