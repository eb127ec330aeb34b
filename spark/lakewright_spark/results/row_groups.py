"""Read some rows of a result's files, by the row groups of Parquet that hold them, not from the file's beginning."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import InputStream
from pyiceberg.io.pyarrow import (
    ArrowScan,
    _to_requested_schema,  # pyright: ignore[reportPrivateUsage]  # ArrowScan itself reads files from their beginning
    pyarrow_to_schema,
)
from pyiceberg.manifest import FileFormat
from pyiceberg.schema import prune_columns
from pyiceberg.table import FileScanTask, Table
from pyiceberg.utils.concurrent import ExecutorFactory

_LAST_VERSION_WITHOUT_NANOSECONDS = 2
"""Timestamps of nanoseconds exist since version 3 of the table format."""


BATCH_BYTES = 16 * 1024 * 1024
"""Bytes of a batch, as uncompressed as its row group says: dictionaries of repeated values may take less than rows."""
MAX_BATCH_ROWS = 4096
"""Rows of a batch: it bounds the memory of repeated values, whose row group has few bytes."""


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

    Several files are read at a time. The files have no deletes. Raises what PyIceberg raises.
    """
    parts = [*_select_parts(tasks, skip, limit)]
    if not parts:
        return _scan(table).to_table([])
    # Only the first and the last part may be a part of a file.
    first = [_start_reading(table, part) for part in parts[:1] if not part.is_whole]
    last = [_start_reading(table, part) for part in parts[1:][-1:] if not part.is_whole]
    whole = _scan_files(table, [part.task for part in parts if part.is_whole])
    tables = [*(read() for read in first), *whole, *(read() for read in last)]
    return pa.concat_tables(tables, promote_options="permissive")


def read_batches(
    table: Table, tasks: Sequence[FileScanTask], skip: int, limit: int | None, renew: Callable[[Table], Table]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that `read_rows` returns, in batches of about `BATCH_BYTES`, or of one row that has more.

    At most one row group is in memory, or a file of another format than Parquet. Raises what PyIceberg raises.

    Args:
        table: The table in the snapshot that the files belong to.
        tasks: The files, without deletes.
        skip: Number of rows before the first row.
        limit: Highest number of rows; None for all.
        renew: Returns the table with credentials that are valid for the next file.
    """
    for part in _select_parts(tasks, skip, limit):
        table = renew(table)
        if part.task.file.file_format != FileFormat.PARQUET:
            yield from _read(table, part).to_batches(MAX_BATCH_ROWS)
            continue
        with _open(table, part) as file:
            for group in file.groups:
                yield from file.iterate(group)


def collect_rows(table: Table, batches: Iterable[pa.RecordBatch], max_bytes: int) -> pa.Table:
    """Return rows of the batches that take at most `max_bytes` in memory, or the first row if it takes more.

    Further batches are not read. The rows of a batch count as equally long, and the last batch remains in memory whole.

    Args:
        table: The table of the rows, which has the columns of a result without rows.
        batches: The rows.
        max_bytes: Bytes of Arrow's columns. Files that compress well have far fewer bytes.
    """
    tables: list[pa.Table] = []
    remaining = max_bytes
    for batch in batches:
        if batch.nbytes >= remaining:
            rows = batch.num_rows * remaining // batch.nbytes if batch.nbytes else batch.num_rows
            tables.append(pa.Table.from_batches([batch.slice(0, rows if tables else max(rows, 1))]))
            break
        tables.append(pa.Table.from_batches([batch]))
        remaining -= batch.nbytes
    return pa.concat_tables(tables, promote_options="permissive") if tables else _scan(table).to_table([])


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


def _start_reading(table: Table, part: _FilePart) -> Callable[[], pa.Table]:
    """Read a part in PyIceberg's pool of threads, and return a function that waits for its rows.

    The scan of a file in another format than Parquet uses this pool itself, so it must not wait in one of its threads.
    """
    if part.task.file.file_format != FileFormat.PARQUET:
        return lambda: _read(table, part)
    return ExecutorFactory.get_or_create().submit(_read, table, part).result


def _read(table: Table, part: _FilePart) -> pa.Table:
    if part.task.file.file_format != FileFormat.PARQUET:
        return _scan(table, part.stop).to_table([part.task]).slice(part.start)
    with _open(table, part) as file:
        rows = file.read(file.groups)
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in rows], promote_options="permissive")


class _ParquetPart:
    """The open file of a part, whose rows are read by row groups and get the columns of the table."""

    def __init__(self, table: Table, part: _FilePart, stream: InputStream) -> None:
        self._schema, self._part = table.schema(), part
        version = table.metadata.format_version
        self._downcast = version <= _LAST_VERSION_WITHOUT_NANOSECONDS
        self._file = pq.ParquetFile(stream, pre_buffer=True)
        file_schema = pyarrow_to_schema(
            self._file.schema_arrow,
            table.metadata.name_mapping(),
            downcast_ns_timestamp_to_us=self._downcast,
            format_version=version,
        )
        self._projected = prune_columns(file_schema, self._schema.field_ids, select_full_types=False)
        self.groups, self._before = _select_groups(self._file.metadata, part.start, part.stop)

    def read(self, groups: Sequence[int]) -> list[pa.RecordBatch]:
        """Return the rows of the part in these row groups, which begin with the first row group of the part."""
        return [
            part_rows
            for batch in self._file.read_row_groups(groups, columns=self._names).to_batches()
            if (part_rows := self._select_rows(batch)).num_rows
        ]

    def iterate(self, group: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the part in this row group, like `read`, in batches of about `BATCH_BYTES`."""
        if not self._names:  # Arrow returns no rows without columns
            for batch in self.read([group]):
                yield from pa.Table.from_batches([batch]).to_batches(MAX_BATCH_ROWS)
            return
        metadata = self._file.metadata.row_group(group)
        rows = max(BATCH_BYTES * metadata.num_rows // max(metadata.total_byte_size, 1), 1)
        for batch in self._file.iter_batches(min(rows, MAX_BATCH_ROWS), [group], columns=self._names):
            if (part_rows := self._select_rows(batch)).num_rows:
                yield part_rows

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self._projected.columns]

    def _select_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the part in the next batch of its row groups, with the columns of the table."""
        first = self._before
        self._before += batch.num_rows
        start = max(self._part.start - first, 0)
        rows = batch.slice(start, max(self._part.stop - first - start, 0))
        return _to_requested_schema(self._schema, self._projected, rows, downcast_ns_timestamp_to_us=self._downcast)


@contextmanager
def _open(table: Table, part: _FilePart) -> Generator[_ParquetPart, None, None]:
    with table.io.new_input(part.task.file.file_path).open() as stream:
        yield _ParquetPart(table, part, stream)


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
