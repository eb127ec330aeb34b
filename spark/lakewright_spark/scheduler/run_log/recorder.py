"""Recorder: writes runs to `ops.job_runs` in the background: at the start, then every 30 seconds, and at the end."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.maintenance.registry import MAINTENANCE_JOBS
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.ops_buffer import OpsBuffer
from lakewright_spark.scheduler.run_log.records import FIRST, RunRecord, RunState

COMMIT_INTERVAL_SECONDS = 30.0
"""Seconds between two commits to one warehouse."""


class Recorder:
    """Observes runs and records them. Failed writes are retried; `close` returns the remaining failures."""

    def __init__(
        self,
        config: CatalogConfig,
        catalogs: Mapping[str, Catalog],
        clock: Callable[[], datetime],
        *,
        every: float = COMMIT_INTERVAL_SECONDS,
        buffer: OpsBuffer | None = None,
    ) -> None:
        """Prepare the thread.

        Args:
            config: The catalog configuration.
            catalogs: Catalogs by warehouse.
            clock: Clock of `recorded_at`.
            every: Seconds between two commits.
            buffer: Rows that the jobs wrote, which are committed before their runs.
        """
        self._buffer = buffer
        self._config, self._catalogs, self._clock, self._every = config, catalogs, clock, every
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._pending: dict[str, RunRecord] = {}
        self._writing: dict[str, RunRecord] = {}
        """Runs of a flush that is in progress."""
        self._flushing = threading.Lock()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job_runs", daemon=True)

    def __call__(self, run: RunRecord) -> None:
        """Handle a run whose state changed. A run that was not begun is recorded only if it is the first of its job."""
        if run.started_at is None and run.state is not RunState.FAILED and not run.metrics.get(FIRST):
            return
        with self._lock:
            self._pending[run.id] = run

    def has_recorded(self, table_uuid: str) -> bool:
        """Return whether all runs on a table are recorded."""
        with self._lock:
            return all(run.table_uuid != table_uuid for run in [*self._pending.values(), *self._writing.values()])

    def record_now(self, run: RunRecord) -> None:
        """Record a run before it begins, since it may kill this process. A failure is reported later."""
        self(run)
        with self._flushing:
            self._flush()

    def start(self) -> None:
        """Write new states at regular intervals."""
        self._thread.start()

    def flush_soon(self) -> None:
        """Write new states now, from the recorder's thread: other runners wait for them."""
        self._wake.set()

    def close(self, lost: frozenset[str] = frozenset()) -> list[str]:
        """Write the rest, and return a sentence for each failure.

        Args:
            lost: Warehouses whose lease was lost. The new holder records their runs.
        """
        self._closed.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            recordable = {key: run for key, run in self._pending.items() if run.table.warehouse not in lost}
            self._pending = recordable
        with self._flushing:
            return self._flush(last=True)

    def _recordable_state(self, run: RunRecord, unwritten: Mapping[str, str], *, last: bool) -> RunRecord | None:
        """Return the state to record for a run, which is no success while its rows are not written.

        Args:
            run: The run as it ended.
            unwritten: Why rows were not written, by table of `ops`.
            last: Whether there is no later flush.

        Returns:
            None if the run is recorded later.
        """
        why = next((unwritten[name] for name in _ops_tables(run.job) if name in unwritten), None)
        if run.state is not RunState.SUCCEEDED or why is None:
            return run
        if last:
            return replace(run, state=RunState.FAILED, reason=why)
        with self._lock:
            self._pending.setdefault(run.id, run)
        return None

    def _run(self) -> None:
        while True:
            with self._flushing:
                self._flush()
            # Several runners of a warehouse must not commit at the same moments.
            self._wake.wait(self._every * random.uniform(0.7, 1.0))  # noqa: S311
            self._wake.clear()
            if self._closed.is_set():
                return

    def _flush(self, *, last: bool = False) -> list[str]:
        # In this order: a run adds its rows to the buffer before it ends.
        with self._lock:
            pending, self._pending = self._pending, {}
            self._writing = pending
        failures: list[str] = []
        for warehouse in dict.fromkeys(run.table.warehouse for run in pending.values()):
            rows = [run for run in pending.values() if run.table.warehouse == warehouse]
            # An empty buffer is falsy, and another thread may be writing its rows.
            failed = self._buffer.flush(warehouse) if self._buffer is not None else []
            failures += [failure.reason for failure in failed]
            if unwritten := {failure.unwritten: failure.reason for failure in failed if failure.unwritten}:
                rows = [self._recordable_state(run, unwritten, last=last) for run in rows]
                rows = [run for run in rows if run is not None]
            if not rows:
                continue
            try:
                with explain_errors(self._config, warehouse, "ops.job_runs"):
                    job_runs.append(self._catalogs[warehouse], rows, self._clock())
            except Exception as error:  # noqa: BLE001  # any error: the work continues, and the rows are kept
                failures.append(f"{len(rows)} runs are not in ops.job_runs: {error}")
                with self._lock:
                    # States that arrived in the meantime are newer.
                    self._pending = {run.id: run for run in rows} | self._pending
        with self._lock:
            self._writing = {}
        return failures


def _ops_tables(job: str) -> list[str]:
    """Return the tables of `ops` that hold the result of a job."""
    return sorted(
        table.name
        for maintenance_job in MAINTENANCE_JOBS
        if maintenance_job.name == job
        for table in maintenance_job.ops_tables
    )
