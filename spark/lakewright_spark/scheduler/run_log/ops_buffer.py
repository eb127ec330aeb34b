"""OpsBuffer: commits rows of many tables in `ops` together. Single commits were 30,000 a night for 10,000 tables."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.maintenance.table.row_buffer import OpsTable, T
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.scheduler.run_log.ops_tables import append, find_table

TABLES_PER_COMMIT = 50
"""Tables in the filter of one commit."""


def delete_handled_candidates(catalog: Catalog, handled: Mapping[str, datetime]) -> None:
    """Delete the rows of handled candidates, of many tables in one commit. Errors of PyIceberg are raised.

    `handled` has, by table UUID, the instant up to which candidates were found.
    """
    table = find_table(catalog, CANDIDATES.name) if handled else None
    uuids = list(handled)
    for start in range(0, len(uuids) if table else 0, TABLES_PER_COMMIT):
        assert table
        conditions = (
            f"(table_uuid = '{uuid}' AND first_seen <= '{handled[uuid].isoformat()}')"
            for uuid in uuids[start : start + TABLES_PER_COMMIT]
        )
        table.refresh().delete(" OR ".join(conditions))


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
        self._handled: defaultdict[str, dict[str, datetime]] = defaultdict(dict)
        """Instant up to which candidates are deleted, by warehouse and table UUID."""

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

    def forget_candidates(self, warehouse: str, table_uuid: str, until: datetime) -> None:
        """Delete the candidates of a table that were found up to an instant, with the next flush."""
        with self._lock:
            self._handled[warehouse][table_uuid] = until

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
        """Write the rows of a warehouse, in a commit for each table, and delete its handled candidates.

        It waits for rows that another thread is writing.
        """
        with self._lock:
            # Includes tables without rows: `_flush` removes rows before it writes them.
            keys = [key for key in {**self._rows, **self._flushing} if key[0] == warehouse]
        failures = [FlushFailure(why, key[1]) for key in keys if (why := self._flush(key))]
        if why := self._forget(warehouse):
            failures.append(FlushFailure(why))
        return failures

    def _forget(self, warehouse: str) -> str | None:
        with self._lock:
            handled = self._handled.pop(warehouse, {})
        if not handled:
            return None
        try:
            with explain_errors(self._config, warehouse, f"ops.{CANDIDATES.name}"):
                delete_handled_candidates(self._catalogs[warehouse], handled)
        except Exception as error:  # noqa: BLE001  # as below
            with self._lock:
                self._handled[warehouse] = handled | self._handled[warehouse]
            return f"candidates of {len(handled)} tables are still in ops.{CANDIDATES.name}: {error}"
        return None

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
