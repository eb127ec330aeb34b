"""Writes runs to `ops.job_runs` beside the work: what is queued at once, then at most every 30 seconds, and at exit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.policies.builtin import (
    COMMIT_STATISTICS,
    ORPHAN_CANDIDATES,
    PARTITION_STATISTICS,
    TABLE_STATISTICS,
)
from lakewright_spark.pyiceberg_client.catalog import explained
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.ops_buffer import OpsBuffer
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState

KEEP_ROWS: Mapping[str, frozenset[str]] = {
    "statistics": frozenset({TABLE_STATISTICS, PARTITION_STATISTICS, COMMIT_STATISTICS}),
    "orphan-files": frozenset({ORPHAN_CANDIDATES}),
}
"""Jobs whose results are rows in `ops`, and the tables of these rows."""
EVERY = 30.0
"""Seconds between two commits to one warehouse."""


class Recorder:
    """An observer of runs. What cannot be written is kept and tried again; `close` tells what never could be."""

    def __init__(
        self,
        config: CatalogConfig,
        catalogs: Mapping[str, Catalog],
        clock: Callable[[], datetime],
        *,
        every: float = EVERY,
        buffer: OpsBuffer | None = None,
    ) -> None:
        """`buffer` has the rows of runs: those are written first."""
        self._buffer = buffer
        self._config, self._catalogs, self._clock, self._every = config, catalogs, clock, every
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._pending: dict[str, RunRecord] = {}
        self._thread = threading.Thread(target=self._beat, name="job_runs", daemon=True)

    def __call__(self, run: RunRecord) -> None:
        with self._lock:
            self._pending[run.id] = run

    def start(self) -> None:
        """Write what is there, and from now on every so many seconds what came since."""
        self._thread.start()

    def close(self, forgotten: frozenset[str] = frozenset()) -> list[str]:
        """Write the rest; nothing of `forgotten` warehouses, which somebody else records by now.

        What could not be written, in sentences.
        """
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            kept = {key: run for key, run in self._pending.items() if run.table.warehouse not in forgotten}
            self._pending = kept
        return self._flush(last=True)

    def _without_rows(self, run: RunRecord, unwritten: Mapping[str, str], *, last: bool) -> RunRecord | None:
        """Return how a run is recorded while its rows cannot be written: not as a success, so that it runs again.

        Args:
            run: The run as it ended.
            unwritten: Why rows are unwritten, by their table of `ops`.
            last: Whether there is no later flush.

        Returns:
            None if the run is to be recorded later.
        """
        why = next((unwritten[name] for name in sorted(KEEP_ROWS.get(run.job, ())) if name in unwritten), None)
        if run.state is not RunState.SUCCEEDED or why is None:
            return run
        if last:
            return replace(run, state=RunState.FAILED, reason=why)
        with self._lock:
            self._pending.setdefault(run.id, run)
        return None

    def _beat(self) -> None:
        while True:
            self._flush()
            if self._closed.wait(self._every):
                return

    def _flush(self, *, last: bool = False) -> list[str]:
        # In this order: whatever a run kept in the buffer, it kept before it ended.
        with self._lock:
            pending, self._pending = self._pending, {}
        failures: list[str] = []
        for warehouse in dict.fromkeys(run.table.warehouse for run in pending.values()):
            rows = [run for run in pending.values() if run.table.warehouse == warehouse]
            # A buffer without rows is false, and another thread may be writing the rows that it had.
            failed = self._buffer.flush(warehouse) if self._buffer is not None else []
            failures += [one.reason for one in failed]
            if unwritten := {one.unwritten: one.reason for one in failed if one.unwritten}:
                rows = [self._without_rows(run, unwritten, last=last) for run in rows]
                rows = [run for run in rows if run is not None]
            if not rows:
                continue
            try:
                with explained(self._config, warehouse, "ops.job_runs"):
                    job_runs.append(self._catalogs[warehouse], rows, self._clock())
            except Exception as error:  # noqa: BLE001  # of whatever kind: the work goes on, the rows are kept
                failures.append(f"{len(rows)} runs are not in ops.job_runs: {error}")
                with self._lock:
                    # What came meanwhile is newer.
                    self._pending = {run.id: run for run in rows} | self._pending
        return failures
