"""OpsBuffer: rows that jobs keep in `ops`, of many tables in one commit. 10,000 tables made 30,000 commits a night."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.maintenance.table.ops_tables import OpsTable
from lakewright_spark.pyiceberg_client.catalog import explained
from lakewright_spark.scheduler.run_log.ops_tables import append, found

AT_ONCE = 50
"""Tables in the filter of one commit."""


def forget_handled_candidates(catalog: Catalog, handled: Mapping[str, datetime]) -> None:
    """Delete the rows of candidates that are done with, of many tables in one commit.

    `handled`: until when candidates were found that are done with, by the table's UUID. Raises what PyIceberg raises.
    """
    table = found(catalog, CANDIDATES.name) if handled else None
    uuids = list(handled)
    for start in range(0, len(uuids) if table else 0, AT_ONCE):
        assert table
        each = (
            f"(table_uuid = '{uuid}' AND first_seen <= '{handled[uuid].isoformat()}')"
            for uuid in uuids[start : start + AT_ONCE]
        )
        table.refresh().delete(" OR ".join(each))


ROWS = 20_000
"""Rows of one table of `ops` that wait at most; a commit then comes before its time."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class FlushFailure:
    """What a flush could not do, in a sentence."""

    reason: str
    unwritten: str | None = None
    """The table of `ops` whose rows are still in memory; None if no rows are."""


class OpsBuffer:
    """Keeps rows until `flush`, or until there are too many. Threads of jobs add, the recorder's thread flushes.

    A run counts as succeeded in `ops.job_runs` only after its rows are committed, so that a process that dies with
    rows in here has its jobs run again.
    """

    def __init__(self, config: CatalogConfig, catalogs: Mapping[str, Catalog], *, most: int = ROWS) -> None:
        self._config, self._catalogs, self._most = config, catalogs, most
        self._lock = threading.Lock()
        self._flushing: defaultdict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)
        self._rows: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        self._tables: dict[str, OpsTable] = {}
        self._handled: defaultdict[str, dict[str, datetime]] = defaultdict(dict)
        """Warehouse -> table's UUID -> until when its candidates are to be forgotten."""

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._rows.values()))

    def add(self, warehouse: str, kept: OpsTable, rows: Sequence[Row]) -> None:
        """Keep rows; JobFailedError, with none of them kept, if as many as may wait cannot be written."""
        key = (warehouse, kept.name)
        with self._lock:
            self._tables[kept.name] = kept
            full = len(self._rows[key]) + len(rows) > self._most
        if full and (why := self._flush(key)):
            raise JobFailedError(why)
        with self._lock:
            self._rows[key] += rows

    def forget_candidates(self, warehouse: str, table_uuid: str, until: datetime) -> None:
        """Forget the candidates of a table that were found until then, with those of other tables."""
        with self._lock:
            self._handled[warehouse][table_uuid] = until

    def flush(self, warehouse: str) -> list[FlushFailure]:
        """Write every row that was added for a warehouse, in a commit for each table, and forget its candidates.

        Waits for rows that another thread is writing.
        """
        with self._lock:
            # Also tables without rows here: `_flush` takes the rows out before it writes them.
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
            with explained(self._config, warehouse, f"ops.{CANDIDATES.name}"):
                forget_handled_candidates(self._catalogs[warehouse], handled)
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
                with explained(self._config, warehouse, f"ops.{name}"):
                    append(self._catalogs[warehouse], self._tables[name], rows)
            except Exception as error:  # noqa: BLE001  # of whatever kind: the rows are kept, and the work goes on
                with self._lock:
                    self._rows[key] = [*rows, *self._rows[key]]
                return f"{len(rows)} rows are not in ops.{name}: {error}"
        return None
