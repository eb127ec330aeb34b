"""Write results row by row, as an operator yields them, with batches of rows and a separate commit interval."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
from pyiceberg.table import Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS, CatalogCache
from lakewright_spark.result_uris import ResultNamespaces, ResultUri
from lakewright_spark.results.columns import check_surplus, convert, readable_schema
from lakewright_spark.results.replacement import replace_rows
from lakewright_spark.results.table_credentials import refresh_credentials
from lakewright_spark.results.tables import ResultTables

BATCH_ROWS = 4096
"""Texera's `storage.iceberg.table.commit.batch-size`: rows that are turned into columns at a time."""

Row = Sequence[Any] | Mapping[str, Any]


_AGE_PER_WAIT, _LONGEST_WAIT = 40, 300.0


@dataclass(frozen=True)
class CommitInterval:
    """Conditions of a commit: number of rows, bytes in memory, and seconds since the first uncommitted row.

    The condition that is met first causes the commit; None disables a condition. The end of a stream commits the
    remaining rows.
    """

    rows: int | None = None
    bytes: int | None = 16 * 1024 * 1024
    seconds: float | None = 5.0
    """Shortest time. A stream commits less often with age, since each commit costs as much as all snapshots before."""

    def seconds_at_age(self, age: float) -> float | None:
        """Return the seconds from the first uncommitted row to its commit, in a stream of this age in seconds.

        It is a fortieth of the age, at most five minutes: a row per second for a day makes about 450 commits.
        """
        if self.seconds is None:
            return None
        return max(self.seconds, min(age / _AGE_PER_WAIT, _LONGEST_WAIT))


EVERY_BATCH = CommitInterval(rows=BATCH_ROWS, bytes=None, seconds=None)
"""A file and a commit for each batch, as in Texera."""


@dataclass(frozen=True)
class ResultWriter:
    """Writes results to one warehouse, without a JVM. `frames.ResultFrames` writes DataFrames."""

    config: CatalogConfig
    warehouse: str
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces)
    commit: CommitInterval = CommitInterval()
    catalogs: CatalogCache = field(default=CATALOGS, repr=False, compare=False)

    @property
    def tables(self) -> ResultTables:
        """The result tables of the warehouse."""
        return ResultTables(self.config, self.warehouse, self.namespaces, self.catalogs)

    @contextmanager
    def stream(
        self, uri: ResultUri, schema: pa.Schema, *, reuse: bool = False, batch: int = BATCH_ROWS
    ) -> Generator[ResultStream, None, None]:
        """Replace the result by the rows appended within the block; with `reuse`, add them to the existing result.

        The first commit replaces the old rows, so that readers see them until then. A block that fails keeps the rows
        committed before, and discards later rows. Columns get the types that Texera reads; see `columns`.
        """
        opened = self.open(uri, schema, reuse=reuse, batch=batch)
        try:
            yield opened
        except BaseException:
            opened.abandon()
            raise
        opened.close()

    def open(self, uri: ResultUri, schema: pa.Schema, *, reuse: bool = False, batch: int = BATCH_ROWS) -> ResultStream:
        """Return a stream like `stream`, for the caller to close or abandon."""
        readable = readable_schema(schema)
        table = self.tables.create_or_load(uri, readable)
        return ResultStream(self, uri, table, schema, batch, replaces=not reuse)

    def write_rows(self, uri: ResultUri, schema: pa.Schema, rows: Iterable[Row], batch: int = BATCH_ROWS) -> int:
        """Replace the result by these rows, and return their number."""
        with self.stream(uri, schema, batch=batch) as stream:
            stream.extend(rows)
        return stream.rows

    def write(self, uri: ResultUri, table: pa.Table) -> None:
        """Replace the result by the rows of an Arrow table, in one commit."""
        readable = readable_schema(table.schema)
        rows = pa.Table.from_batches([convert(batch, readable) for batch in table.to_batches()], readable)
        # A table that was just created is replaced, too: another writer may have replaced it since, with other columns.
        live_table = self.tables.create_or_load(uri, readable)
        with explain_errors(self.config, self.warehouse, str(uri)):
            replace_rows(live_table, rows)


class ResultStream:
    """An open result. A single thread at a time may add rows. Commits run in the background, in the rows' order."""

    def __init__(
        self, writer: ResultWriter, uri: ResultUri, table: Table, schema: pa.Schema, batch: int, *, replaces: bool
    ) -> None:
        """Open a stream. With `replaces`, the first commit replaces the existing rows."""
        self._writer, self._uri, self._table, self._schema, self._batch = writer, uri, table, schema, batch
        self._readable, self._replaces = readable_schema(schema), replaces
        self._lock = threading.RLock()
        self._pending: list[Row] = []
        self._batches: list[pa.RecordBatch] = []
        self._buffered = self._bytes = 0
        self._timer: threading.Timer | None = None
        self._opened_at = time.monotonic()
        self._committer = ThreadPoolExecutor(1, thread_name_prefix="result-commit")
        self._commit: Future[None] | None = None
        self.rows = 0
        """Rows added so far, committed or not."""
        self.committed = 0
        """Rows that readers see."""

    def append(self, row: Row) -> None:
        """Add a row: values in the columns' order, or by their names."""
        with self._lock:
            self._pending.append(row)
            self.rows += 1
            if len(self._pending) >= self._batch:
                self._convert_pending()
            elif self._timer is None:
                self._start_timer()

    def extend(self, rows: Iterable[Row]) -> None:
        """Add rows."""
        for row in rows:
            self.append(row)

    def append_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add rows in columnar form."""
        with self._lock:
            self._convert_pending()
            parts = batch.to_batches() if isinstance(batch, pa.Table) else [batch]
            for part in parts:
                self.rows += part.num_rows
                self._add(convert(part, self._readable))

    def flush(self) -> None:
        """Commit the added rows, and wait until readers see them."""
        with self._lock:
            self._start_commit()
            self._wait()

    def close(self) -> None:
        """Commit the remaining rows. Raises the error of any commit."""
        try:
            self.flush()
            if self._replaces:
                # No row was added; the old rows are deleted nevertheless.
                self._committer.submit(self._append, [], []).result()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Discard uncommitted rows, and stop."""
        with self._lock:
            self._stop_timer()
            self._pending, self._batches = [], []
        self._committer.shutdown(wait=True)

    def _convert_pending(self) -> None:
        """Convert the pending rows into columns."""
        if self._pending:
            rows, self._pending = self._pending, []
            self._add(convert(_build_batch(rows, self._schema), self._readable))

    def _add(self, batch: pa.RecordBatch) -> None:
        interval = self._writer.commit
        self._batches.append(batch)
        self._buffered += batch.num_rows
        self._bytes += batch.nbytes
        if (interval.rows is not None and self._buffered >= interval.rows) or (
            interval.bytes is not None and self._bytes >= interval.bytes
        ):
            self._start_commit()
        elif self._timer is None:
            self._start_timer()

    def _start_timer(self) -> None:
        seconds = self._writer.commit.seconds_at_age(time.monotonic() - self._opened_at)
        if seconds is not None:
            self._timer = threading.Timer(seconds, self._commit_on_timer)
            self._timer.daemon = True
            self._timer.start()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _commit_on_timer(self) -> None:
        with self._lock:
            self._timer = None
            if self._commit is not None and not self._commit.done():
                self._start_timer()  # the last commit is still running: the next commit takes later rows
            elif self._commit is None or self._commit.exception() is None:
                self._start_commit()  # otherwise the next append or close raises the failure

    def _start_commit(self) -> None:
        """Commit the buffered rows. A single commit runs at a time: at most two intervals of rows are in memory."""
        self._stop_timer()
        self._wait()
        if self._batches or self._pending:
            batches, rows = self._batches, self._pending
            self._batches, self._pending, self._buffered, self._bytes = [], [], 0, 0
            self._commit = self._committer.submit(self._append, batches, rows)

    def _wait(self) -> None:
        if self._commit is not None:
            commit, self._commit = self._commit, None
            commit.result()

    def _append(self, batches: list[pa.RecordBatch], rows: list[Row]) -> None:
        if rows:
            batches.append(convert(_build_batch(rows, self._schema), self._readable))
        added = pa.Table.from_batches(batches, self._readable)
        with explain_errors(self._writer.config, self._writer.warehouse, str(self._uri)):
            table = refresh_credentials(self._table)
            if self._replaces:
                replace_rows(table, added)
                self._replaces = False
            else:
                table.append(added)
        self.committed += added.num_rows


def _build_batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    if isinstance(rows[0], Mapping):
        check_surplus({name for row in rows for name in row}, schema.names)
        mappings = cast(list[Mapping[str, Any]], rows)
        columns: Sequence[Sequence[Any]] = [[row[name] for row in mappings] for name in schema.names]
    else:
        columns = list(zip(*rows, strict=True))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)
