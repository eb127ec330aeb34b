"""Hold the claim of a table for work that is no job, such as a restore."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LeaseLostError, StoppedError
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.heartbeat import Heartbeat
from lakewright_spark.scheduler.lease import LIFE
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
