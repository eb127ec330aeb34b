"""Reading an execution's tables without a JVM: how many rows there are, a page of them, what is new, or all."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
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
from lakewright_spark.results.row_groups import read_rows
from lakewright_spark.results.tables import ResultTables

INDEXES = 128
"""Tables whose planned files a reader keeps in mind."""

_CURSOR = re.compile(r"([0-9a-f-]{36})\.(\d*)\.(\d+)")


@dataclass(frozen=True)
class Cursor:
    """A place between two rows of a result, for `after`. As text it holds no blank and no slash."""

    table: str
    snapshot: int | None
    rows: int

    def __str__(self) -> str:
        """Return the text form."""
        return f"{self.table}.{'' if self.snapshot is None else self.snapshot}.{self.rows}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read what `str` wrote; BadAddressError if it is something else."""
        if (match := _CURSOR.fullmatch(text)) is None:
            raise BadAddressError(f"expected a cursor as an earlier answer gave it, found {text!r}")
        return cls(match[1], int(match[2]) if match[2] else None, int(match[3]))


@dataclass(frozen=True)
class News:
    """What came after a cursor, and the cursor after it."""

    rows: pa.Table
    cursor: Cursor


class KnowsWarehouses(Protocol):
    """Who knows in which warehouse an execution wrote, such as a registry of executions."""

    def warehouse_of(self, workflow: int, execution: int) -> str | None:
        """Return the warehouse that an execution wrote to; None if it is not known."""
        ...


@dataclass(frozen=True)
class ResultReader:
    """Reads results. Rows have the order in which they were committed. Every method raises this package's errors.

    The warehouse of an address is the one that it names; else the one that `executions` knows its execution to have
    written to; else `warehouse`; else the only one in the configuration.
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
        """How many rows there are, from the manifests alone."""
        return self._index(uri, self.table(uri)).rows

    def range(self, uri: ResultUri, offset: int, limit: int) -> pa.Table:
        """Up to `limit` rows from row `offset` (0 is the first) on; only files that hold some of them are read.

        Each page asks the catalog for the table as it is now: it may have been replaced since the page before.
        """
        table = self.table(uri)
        tasks, before = self._index(uri, table).page(offset, limit)
        return self._read(uri, table, tasks, offset - before, limit)

    def after(self, uri: ResultUri, cursor: Cursor | None = None, limit: int | None = None) -> News:
        """Up to `limit` rows after the cursor, in their order; without one, from the first on.

        Raises RowsMovedError where the cursor means nothing any more: the result was made anew, rewritten or cut.
        """
        table = self.table(uri)
        index = self._index(uri, table)
        if cursor is None:
            cursor = Cursor(index.table, None, 0)
        elif cursor.table != index.table:
            raise RowsMovedError(f"{uri} was made anew since this cursor was given: read again without one")
        elif cursor.rows and appends_since(table, cursor.snapshot) is None:
            raise RowsMovedError(f"{uri} was rewritten since this cursor was given: read again without one")
        tasks, before = index.page(cursor.rows, limit)
        rows = self._read(uri, table, tasks, cursor.rows - before, limit)
        return News(rows, Cursor(index.table, index.snapshot, cursor.rows + rows.num_rows))

    def whole(self, uri: ResultUri) -> pa.Table:
        """Every row."""
        table = self.table(uri)
        tasks, _ = self._index(uri, table).page(0)
        return self._read(uri, table, tasks, 0, None)

    def table(self, uri: ResultUri) -> Table:
        """The table as it is now; NoSuchResultError if there is none."""
        return ResultTables(self.config, self.warehouse_of(uri), self.namespaces, self.catalogs).load(uri)

    def warehouse_of(self, uri: ResultUri) -> str:
        """The warehouse that the address is read from; it must be in the configuration."""
        run = uri.execution
        name = uri.warehouse
        if name is None and self.executions is not None:
            name = self.executions.warehouse_of(run.workflow, run.execution)
        name = name or self.warehouse
        if name is None:
            names = [warehouse.name for warehouse in self.config.warehouses]
            if len(names) != 1:
                listed = ", ".join(names) or "none"
                raise ConfigMissingError(f"{uri} names no warehouse, and nobody knows it: give --warehouse: {listed}")
            name = names[0]
        try:
            return self.config.warehouse(name).name
        except KeyError as error:
            raise WarehouseRefusedError(error.args[0]) from None

    def _index(self, uri: ResultUri, table: Table) -> FileIndex:
        key = self._key(uri)
        with self._lock:
            known = self._indexes.get(key)
        with explain_errors(self.config, key[0], str(uri)):
            index = plan(table, known)
        with self._lock:
            self._indexes[key] = index
            self._indexes.move_to_end(key)
            while len(self._indexes) > INDEXES:
                self._indexes.popitem(last=False)
        return index

    def _key(self, uri: ResultUri) -> tuple[str, str]:
        return self.warehouse_of(uri), uri.path

    def _read(self, uri: ResultUri, table: Table, tasks: list[FileScanTask], skip: int, limit: int | None) -> pa.Table:
        with explain_errors(self.config, self.warehouse_of(uri), str(uri)):
            return read_rows(table, tasks, skip, limit)
