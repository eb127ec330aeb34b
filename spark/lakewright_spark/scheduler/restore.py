"""A restore as a run: it holds the table's claim, ends when the process is told to, and is a row of `ops.job_runs`."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LeaseLostError, StoppedError
from lakewright_spark.maintenance import restore
from lakewright_spark.pyiceberg_client.catalog import explained, open_catalog
from lakewright_spark.scheduler.lease import LIFE, Heartbeat
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.records import RESTORE, RunRecord, RunState
from lakewright_spark.scheduler.runner import this_runner
from lakewright_spark.scheduler.supervisor import Control
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.table_identifier import TableIdentifier


@contextmanager
def exclusive(
    config: CatalogConfig,
    table: TableIdentifier,
    uuid: str,
    runner: str,
    *,
    control: Control,
    cancel: Callable[[], None],
    warn: Callable[[str], None],
    life: timedelta = LIFE,
) -> Iterator[Callable[[], None]]:
    """Keep jobs and other work away from a table for the block.

    Args:
        config: The catalog's configuration.
        table: The table's name.
        uuid: The table's UUID.
        runner: A name that no other process has.
        control: Says that the process is to end.
        cancel: Ends the work of the block; called from another thread if the claim is lost or the process is to end.
        warn: Reports a claim that could not be given back.
        life: How long the claim outlives a process that died.

    Yields:
        A check that raises LeaseLostError or StoppedError if the work is to end.

    Raises:
        LeaseHeldError: Another runner works on the table.
        LeaseLostError: The claim was lost before the block had ended.
        StoppedError: The process was told to end before the block had ended.
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
            raise StoppedError(f"the process was told to end: the work on table {table} was cancelled")

    heartbeat.start()
    watcher = threading.Thread(target=watch, name="end", daemon=True)
    watcher.start()
    try:
        yield check
    except Exception:
        check()  # it is why the work failed
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
    """Reports what could not be recorded, and a claim that could not be given back."""
    _started: list[SparkSession] = field(default_factory=list[SparkSession], init=False)

    def run(self) -> restore.Restored:
        """Restore the backup.

        Raises:
            LeaseHeldError, LeaseLostError, StoppedError: As `exclusive` says.
            NoSuchResultError, JobFailedError: As `maintenance.restore.restore` says.
        """
        catalog = open_catalog(self.config, self.table.warehouse)
        with explained(self.config, self.table.warehouse, f"table {self.table}"):
            metadata = catalog.load_table(self.table.within).metadata
        uuid, runner, now = str(metadata.table_uuid), this_runner(), datetime.now(UTC)
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
        # Two restores at once would add the rows twice.
        with exclusive(
            self.config, self.table, uuid, runner, control=self.control, cancel=self._cancel, warn=self.warn
        ) as check:
            self._record(run)
            try:
                done = self._restore(check)
            except Exception as error:
                cancelled = self.control.ended.is_set() or self.table.warehouse in self.control.lost
                self._record(_ended(run, RunState.CANCELLED if cancelled else RunState.FAILED, str(error)))
                raise
            numbers = {"files": done.files, "rows": done.rows}
            self._record(dataclasses.replace(_ended(run, RunState.SUCCEEDED, run.reason), metrics=numbers))
        return done

    def _restore(self, check: Callable[[], None]) -> restore.Restored:
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
            with explained(self.config, warehouse, "ops.job_runs"):
                job_runs.append(open_catalog(self.config, warehouse), [run], datetime.now(UTC))
        except Exception as error:  # noqa: BLE001  # of whatever kind: the rows of the backup count for more
            self.warn(f"the restore is not in ops.job_runs: {error}")


def _ended(run: RunRecord, state: RunState, reason: str) -> RunRecord:
    first = (reason.strip().splitlines() or [""])[0]
    return dataclasses.replace(run, state=state, reason=first, finished_at=datetime.now(UTC))
