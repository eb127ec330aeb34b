"""Read an execution's tables without a JVM: the number of rows, a page, new rows as they come, batches, or all rows."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from pyiceberg.table import FileScanTask, Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import (
    BadAddressError,
    ConfigMissingError,
    RowsMovedError,
    WarehouseRefusedError,
)
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS, CatalogCache
from lakewright_spark.result_uris import ResultNamespaces, ResultUri
from lakewright_spark.results.file_index import FileIndex, appends_since, plan
from lakewright_spark.results.row_groups import collect_rows, read_batches, read_rows
from lakewright_spark.results.table_credentials import has_expiring_credentials
from lakewright_spark.results.tables import ResultTables

INDEXES = 128
"""Number of tables whose file indexes a reader keeps."""

FOLLOWED_ROWS = 65_536
"""Highest number of rows that `follow` yields at a time: a row group."""

FOLLOWED_BYTES = 32 * 1024 * 1024
"""Bytes of the rows in memory that `follow` yields at a time."""

SHORTEST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Seconds between two calls of `follow` for a result without new rows. Each wait is twice the wait before."""

Wait = Callable[[float], object]
"""A function that waits for a number of seconds."""

_CURSOR = re.compile(r"([0-9a-f-]{36})\.(\d*)\.(\d+)")


@dataclass(frozen=True)
class Cursor:
    """A position between two rows of a result, for `read_after`. Its text form has no blank and no slash."""

    table: str
    snapshot: int | None
    rows: int

    def __str__(self) -> str:
        """Return the text form."""
        return f"{self.table}.{'' if self.snapshot is None else self.snapshot}.{self.rows}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read the text form of a cursor. Raises BadAddressError for any other text."""
        if (match := _CURSOR.fullmatch(text)) is None:
            raise BadAddressError(f"expected a cursor of an earlier response, found {text!r}")
        return cls(match[1], int(match[2]) if match[2] else None, int(match[3]))


@dataclass(frozen=True)
class News:
    """The rows after a cursor, and the cursor after these rows."""

    rows: pa.Table
    cursor: Cursor


class KnowsWarehouses(Protocol):
    """A source of the warehouses that executions wrote to, such as a registry of executions."""

    def find_warehouse(self, workflow: int, execution: int) -> str | None:
        """Return the warehouse that an execution wrote to; None if it is not known."""
        ...


@dataclass(frozen=True)
class ResultReader:
    """Reads results. Rows have the order in which they were committed. Every method raises this package's errors.

    The warehouse of an address is the warehouse that it names; else the warehouse that its execution wrote to according
    to `executions`; else `warehouse`; else the only warehouse in the configuration.
    """

    config: CatalogConfig
    warehouse: str | None = None
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces)
    executions: KnowsWarehouses | None = None
    catalogs: CatalogCache = field(default=CATALOGS, repr=False, compare=False)
    _indexes: OrderedDict[tuple[str, str], FileIndex] = field(
        default_factory=OrderedDict[tuple[str, str], FileIndex], init=False, repr=False, compare=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def count(self, uri: ResultUri) -> int:
        """Return the number of rows, from the manifests alone."""
        return self._index(uri, self.table(uri)).rows

    def range(self, uri: ResultUri, offset: int, limit: int) -> pa.Table:
        """Return up to `limit` rows that begin with row `offset` (0 is the first row); read only their files.

        Each page loads the current table from the catalog: it may have been replaced since the page before.
        """
        table = self.table(uri)
        tasks, before = self._index(uri, table).page(offset, limit)
        return self._read(uri, table, tasks, offset - before, limit)

    def read_after(
        self,
        uri: ResultUri,
        cursor: Cursor | None = None,
        limit: int | None = None,
        *,
        max_bytes: int | None = None,
    ) -> News:
        """Return the rows after the cursor in their order; without a cursor, begin with the first row.

        With `limit` or `max_bytes`, there may be more rows after the returned cursor.

        Args:
            uri: The address of the result.
            cursor: The cursor of the last rows that the caller has processed.
            limit: Highest number of rows.
            max_bytes: Bytes of the rows in memory. A row with more bytes is returned alone. With this limit, files are
                read one after another, by batches. None: no limit.

        Raises:
            RowsMovedError: The cursor is no longer valid: the result was created again, rewritten or cut.
        """
        table = self.table(uri)
        index = self._index(uri, table)
        if cursor is None:
            cursor = Cursor(index.table, None, 0)
        elif cursor.table != index.table:
            raise RowsMovedError(f"{uri} was created again since this cursor was returned: read again without a cursor")
        elif cursor.rows and appends_since(table, cursor.snapshot) is None:
            raise RowsMovedError(f"{uri} was rewritten since this cursor was returned: read again without a cursor")
        tasks, before = index.page(cursor.rows, limit)
        rows = self._read(uri, table, tasks, cursor.rows - before, limit, max_bytes=max_bytes)
        return News(rows, Cursor(index.table, index.snapshot, cursor.rows + rows.num_rows))

    def read_all(self, uri: ResultUri) -> pa.Table:
        """Return every row."""
        table = self.table(uri)
        tasks, _ = self._index(uri, table).page(0)
        return self._read(uri, table, tasks, 0, None)

    def iterate_batches(self, uri: ResultUri, offset: int = 0, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield up to `limit` rows that begin with row `offset`, in batches of at most 4,096 rows and about 16 MiB.

        At most one row group of a file is in memory, or one file of another format than Parquet.
        All rows are in the snapshot that is current at the first batch; rows added later are left out. Credentials are
        renewed for each file, so that reading may take longer than they live.
        """
        table = self.table(uri)
        tasks, before = self._index(uri, table).page(offset, limit)
        with explain_errors(self.config, self.find_warehouse(uri), str(uri)):
            yield from read_batches(table, tasks, offset - before, limit, lambda old: self._renew(uri, old))

    def follow(
        self,
        uri: ResultUri,
        cursor: Cursor | None = None,
        *,
        limit: int = FOLLOWED_ROWS,
        max_bytes: int | None = FOLLOWED_BYTES,
        wait: Wait = time.sleep,
    ) -> Iterator[News]:
        """Yield new rows as they are committed, without an end; close the iterator or leave the loop to stop.

        Args:
            uri: The address of the result.
            cursor: The cursor of the last rows that the caller has processed; None begins with the first row.
            limit: Highest number of rows at a time.
            max_bytes: Bytes of the rows in memory that are yielded at a time, as in `read_after`.
            wait: Is called with SHORTEST_WAIT to LONGEST_WAIT seconds whenever there are no new rows.

        Raises:
            RowsMovedError: The result was created again, rewritten or cut since the cursor.
        """
        pause = SHORTEST_WAIT
        while True:
            news = self.read_after(uri, cursor, limit, max_bytes=max_bytes)
            cursor = news.cursor
            if news.rows.num_rows:
                pause = SHORTEST_WAIT
                yield news
            else:
                wait(pause)
                pause = min(pause * 2, LONGEST_WAIT)

    def table(self, uri: ResultUri) -> Table:
        """Return the current table. Raises NoSuchResultError if it does not exist."""
        return ResultTables(self.config, self.find_warehouse(uri), self.namespaces, self.catalogs).load(uri)

    def find_warehouse(self, uri: ResultUri) -> str:
        """Return the warehouse that the address is read from; it must be in the configuration."""
        run = uri.execution
        name = uri.warehouse
        if name is None and self.executions is not None:
            name = self.executions.find_warehouse(run.workflow, run.execution)
        name = name or self.warehouse
        if name is None:
            names = [warehouse.name for warehouse in self.config.warehouses]
            if len(names) != 1:
                choices = ", ".join(names) or "none"
                raise ConfigMissingError(
                    f"{uri} names no warehouse, and its execution is unknown: set --warehouse: {choices}"
                )
            name = names[0]
        try:
            return self.config.warehouse(name).name
        except KeyError as error:
            raise WarehouseRefusedError(error.args[0]) from None

    def _index(self, uri: ResultUri, table: Table) -> FileIndex:
        key = self._key(uri)
        with self._lock:
            previous_index = self._indexes.get(key)
        with explain_errors(self.config, key[0], str(uri)):
            index = plan(table, previous_index)
        with self._lock:
            self._indexes[key] = index
            self._indexes.move_to_end(key)
            while len(self._indexes) > INDEXES:
                self._indexes.popitem(last=False)
        return index

    def _renew(self, uri: ResultUri, table: Table) -> Table:
        """Return the same snapshot of the table with credentials that are valid for the next file."""
        if not has_expiring_credentials(table):
            return table
        live_table = self.table(uri)
        return Table(table.name(), table.metadata, table.metadata_location, live_table.io, table.catalog)

    def _key(self, uri: ResultUri) -> tuple[str, str]:
        return self.find_warehouse(uri), uri.path

    def _read(
        self,
        uri: ResultUri,
        table: Table,
        tasks: list[FileScanTask],
        skip: int,
        limit: int | None,
        *,
        max_bytes: int | None = None,
    ) -> pa.Table:
        with explain_errors(self.config, self.find_warehouse(uri), str(uri)):
            if max_bytes is None:
                return read_rows(table, tasks, skip, limit)
            batches = read_batches(table, tasks, skip, limit, lambda loaded: loaded)
            return collect_rows(table, batches, max_bytes)
