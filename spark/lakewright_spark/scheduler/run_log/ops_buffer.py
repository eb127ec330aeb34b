"""OpsBuffer: commits rows of many tables in `ops` together. Single commits were 30,000 a night for 10,000 tables."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance.table.row_buffer import OpsTable, T
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.scheduler.run_log.ops_tables import append

MAX_ROWS = 20_000
"""Maximum number of waiting rows of one table of `ops`. More rows cause an early commit."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class FlushFailure:
    """A failure of a flush."""

    reason: str
    unwritten: str | None = None
    """Table of `ops` whose rows are still in memory, or None."""


class OpsBuffer:
    """Collects rows until `flush`, or until there are too many. Job threads add rows, the recorder's thread flushes.

    A run is recorded as succeeded only after its rows are committed. If the process dies before, the job runs again.
    """

    def __init__(self, config: CatalogConfig, catalogs: Mapping[str, Catalog], *, max_rows: int = MAX_ROWS) -> None:
        """Start without rows."""
        self._config, self._catalogs, self._max_rows = config, catalogs, max_rows
        self._lock = threading.Lock()
        self._flushing: defaultdict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)
        self._rows: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        self._tables: dict[str, OpsTable] = {}
        self._reading: defaultdict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)
        self._read: dict[tuple[str, str], Any] = {}

    def __len__(self) -> int:
        """Return the number of entries."""
        with self._lock:
            return sum(map(len, self._rows.values()))

    def add(self, warehouse: str, table: OpsTable, rows: Sequence[Row]) -> None:
        """Add rows.

        Raises:
            JobFailedError: The buffer is full and cannot be written. No row was added.
        """
        key = (warehouse, table.name)
        with self._lock:
            self._tables[table.name] = table
            full = len(self._rows[key]) + len(rows) > self._max_rows
        if full and (why := self._flush(key)):
            raise JobFailedError(why)
        with self._lock:
            self._rows[key] += rows

    def read_once(self, warehouse: str, name: str, read: Callable[[], T]) -> T:
        """Return what `read` returned for this name at the first call of the run. Other callers wait for it."""
        key = (warehouse, name)
        with self._lock:
            reading = self._reading[key]
        with reading:
            if key not in self._read:
                self._read[key] = read()
            return self._read[key]

    def flush(self, warehouse: str) -> list[FlushFailure]:
        """Write the rows of a warehouse, in a commit for each table. Wait for rows that another thread is writing."""
        with self._lock:
            # Includes tables without rows: `_flush` removes rows before it writes them.
            keys = [key for key in {**self._rows, **self._flushing} if key[0] == warehouse]
        return [FlushFailure(why, key[1]) for key in keys if (why := self._flush(key))]

    def _flush(self, key: tuple[str, str]) -> str | None:
        warehouse, name = key
        with self._lock:
            writing = self._flushing[key]
        with writing:
            with self._lock:
                rows = self._rows.pop(key, [])
            if not rows:
                return None
            try:
                with explain_errors(self._config, warehouse, f"ops.{name}"):
                    append(self._catalogs[warehouse], self._tables[name], rows)
            except Exception as error:  # noqa: BLE001  # any error: the rows are kept, and the work continues
                with self._lock:
                    self._rows[key] = [*rows, *self._rows[key]]
                return f"{len(rows)} rows are not in ops.{name}: {error}"
        return None
