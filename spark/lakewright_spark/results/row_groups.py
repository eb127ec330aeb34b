"""Read some rows of a result's files, by the row groups of Parquet that hold them, not from the file's beginning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import (
    ArrowScan,
    _to_requested_schema,  # pyright: ignore[reportPrivateUsage]  # ArrowScan itself reads files from their beginning
    pyarrow_to_schema,
)
from pyiceberg.manifest import FileFormat
from pyiceberg.schema import prune_columns
from pyiceberg.table import FileScanTask, Table


@dataclass(frozen=True)
class _FilePart:
    """Rows `start` to `stop` of a file."""

    task: FileScanTask
    start: int
    stop: int

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.stop == self.task.file.record_count


def read_rows(table: Table, tasks: Sequence[FileScanTask], skip: int, limit: int | None) -> pa.Table:
    """Return up to `limit` rows of these files after the first `skip`; row groups without such rows are not read.

    The files have no deletes. Raises what PyIceberg raises.
    """
    tables: list[pa.Table] = []
    whole: list[FileScanTask] = []
    for part in _select_parts(tasks, skip, limit):
        if part.is_whole:
            whole.append(part.task)
            continue
        tables += [*_scan_files(table, whole), _read(table, part)]
        whole = []
    tables += _scan_files(table, whole)
    if not tables:
        return _scan(table).to_table([])
    return pa.concat_tables(tables, promote_options="permissive")


def _select_parts(tasks: Sequence[FileScanTask], skip: int, limit: int | None) -> Iterator[_FilePart]:
    """Yield the part of each file that has rows of the range."""
    end = None if limit is None else skip + limit
    before = 0
    for task in tasks:
        rows = task.file.record_count
        start = max(skip - before, 0)
        stop = rows if end is None else min(end - before, rows)
        if start < stop:
            yield _FilePart(task, start, stop)
        before += rows


def _scan(table: Table, limit: int | None = None) -> ArrowScan:
    return ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue(), limit=limit)


def _scan_files(table: Table, tasks: Sequence[FileScanTask]) -> list[pa.Table]:
    """Return the rows of whole files, several of which are read at a time."""
    return [_scan(table).to_table(tasks)] if tasks else []


def _read(table: Table, part: _FilePart) -> pa.Table:
    if part.task.file.file_format != FileFormat.PARQUET:
        return _scan(table, part.stop).to_table([part.task]).slice(part.start)
    version = table.metadata.format_version
    with table.io.new_input(part.task.file.file_path).open() as stream:
        file = pq.ParquetFile(stream, pre_buffer=True)
        groups, before = _select_groups(file.metadata, part.start, part.stop)
        names = table.metadata.name_mapping()
        file_schema = pyarrow_to_schema(
            file.schema_arrow, names, downcast_ns_timestamp_to_us=version <= 2, format_version=version
        )
        projected_schema = prune_columns(file_schema, table.schema().field_ids, select_full_types=False)
        rows = file.read_row_groups(groups, columns=[column.name for column in projected_schema.columns])
    batches = [
        _to_requested_schema(table.schema(), projected_schema, batch, downcast_ns_timestamp_to_us=version <= 2)
        for batch in rows.slice(part.start - before, part.stop - part.start).to_batches()
    ]
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")


def _select_groups(metadata: pq.FileMetaData, start: int, stop: int) -> tuple[list[int], int]:
    """Return the row groups with rows `start` to `stop`, and the number of rows before the first group."""
    groups: list[int] = []
    first = before = 0
    for number in range(metadata.num_row_groups):
        rows = metadata.row_group(number).num_rows
        if before < stop and start < before + rows:
            if not groups:
                first = before
            groups.append(number)
        before += rows
    return groups, first
