"""RestoreRun: restore a backup while holding the table's claim, and record the restore in `ops.job_runs`."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LeaseLostError, StoppedError
from lakewright_spark.maintenance import restore
from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog
from lakewright_spark.pyiceberg_client.table_metadata import load_metadata
from lakewright_spark.scheduler.heartbeat import Heartbeat
from lakewright_spark.scheduler.lease_table import LIFE
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.records import RESTORE, RunRecord, RunState
from lakewright_spark.scheduler.runner import new_runner_name
from lakewright_spark.scheduler.supervisor import Control
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.table_identifier import TableIdentifier


@contextmanager
def exclusive_access(
    config: CatalogConfig,
    table: TableIdentifier,
    uuid: str,
    runner: str,
    *,
    control: Control,
    cancel: Callable[[], None],
    warn: Callable[[str], None],
    life: timedelta = LIFE,
) -> Generator[Callable[[], None], None, None]:
    """Hold the claim of a table for the block.

    Args:
        config: The catalog's configuration.
        table: The table's name.
        uuid: The table's UUID.
        runner: Unique name of this process.
        control: Has the stop requests.
        cancel: Ends the work of the block. Called from another thread if the claim is lost or a stop is requested.
        warn: Reports a claim that could not be released.
        life: Lifetime of the claim without renewals.

    Yields:
        A function that raises LeaseLostError or StoppedError if the work has to end.

    Raises:
        LeaseHeldError: Another runner works on the table.
        LeaseLostError: The claim was lost during the block.
        StoppedError: A stop was requested during the block.
    """
    claim = TableClaim(config, table, uuid, open_catalog(config, table.warehouse), runner, life, stop=control.ended)
    claim.take(datetime.now(UTC))
    heartbeat = Heartbeat([claim], control, on_loss=cancel)
    closed = threading.Event()

    def watch() -> None:
        while not closed.wait(0.2):
            if control.ended.is_set():
                cancel()
                return

    def check() -> None:
        if reason := control.lost.get(table.warehouse):
            raise LeaseLostError(f"{reason}: the work was cancelled")
        if control.ended.is_set():
            raise StoppedError(f"the process was asked to stop: the work on table {table} was cancelled")

    heartbeat.start()
    watcher = threading.Thread(target=watch, name="end", daemon=True)
    watcher.start()
    try:
        yield check
    except Exception:
        check()  # raises the cause, if there is one
        raise
    finally:
        closed.set()
        watcher.join()
        for sentence in heartbeat.close():
            warn(sentence)


@dataclass
class RestoreRun:
    """One restore of one backup."""

    config: CatalogConfig
    table: TableIdentifier
    backup: str
    start_spark: Callable[[], SparkSession]
    control: Control
    warn: Callable[[str], None]
    """Reports a failed record, and a claim that could not be released."""
    _started: list[SparkSession] = field(default_factory=list[SparkSession], init=False)

    def run(self) -> restore.RestoreResult:
        """Restore the backup.

        Raises:
            LeaseHeldError, LeaseLostError, StoppedError: As in `exclusive_access`.
            NoSuchResultError, JobFailedError: As in `maintenance.restore.restore`.
        """
        catalog = open_catalog(self.config, self.table.warehouse)
        with explain_errors(self.config, self.table.warehouse, f"table {self.table}"):
            metadata = load_metadata(catalog, self.table.within).metadata
        uuid, runner, now = str(metadata.table_uuid), new_runner_name(), datetime.now(UTC)
        run = RunRecord(
            runner=runner,
            table=self.table,
            table_uuid=uuid,
            job=RESTORE,
            state=RunState.RUNNING,
            reason=f"backup {self.backup}",
            snapshot=metadata.current_snapshot_id,
            queued_at=now,
            started_at=now,
        )
        # Two simultaneous restores would add the rows twice.
        with exclusive_access(
            self.config, self.table, uuid, runner, control=self.control, cancel=self._cancel, warn=self.warn
        ) as check:
            self._record(run)
            try:
                result = self._restore(check)
            except Exception as error:
                cancelled = self.control.ended.is_set() or self.table.warehouse in self.control.lost
                self._record(_end_run(run, RunState.CANCELLED if cancelled else RunState.FAILED, str(error)))
                raise
            metrics = {"files": result.files, "rows": result.rows}
            self._record(dataclasses.replace(_end_run(run, RunState.SUCCEEDED, run.reason), metrics=metrics))
        return result

    def _restore(self, check: Callable[[], None]) -> restore.RestoreResult:
        check()
        self._started.append(self.start_spark())
        self.control.listen()
        try:
            check()
            return restore.restore(self._started[0], self.table, self.backup)
        finally:
            self._cancel()

    def _cancel(self) -> None:
        for spark in self._started:
            spark.stop()

    def _record(self, run: RunRecord) -> None:
        warehouse = self.table.warehouse
        try:
            with explain_errors(self.config, warehouse, "ops.job_runs"):
                job_runs.append(open_catalog(self.config, warehouse), [run], datetime.now(UTC))
        except Exception as error:  # noqa: BLE001  # any error: the restored rows matter more
            self.warn(f"the restore is not in ops.job_runs: {error}")


def _end_run(run: RunRecord, state: RunState, reason: str) -> RunRecord:
    first = (reason.strip().splitlines() or [""])[0]
    return dataclasses.replace(run, state=state, reason=first, finished_at=datetime.now(UTC))
