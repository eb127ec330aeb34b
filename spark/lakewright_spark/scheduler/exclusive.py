"""Hold the lease of a warehouse for work that is no job, such as a restore."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LeaseLostError
from lakewright_spark.pyiceberg_catalog import open_catalog
from lakewright_spark.scheduler.heartbeat import Heartbeat
from lakewright_spark.scheduler.lease import LIFE, Lease
from lakewright_spark.scheduler.supervisor import Control


@contextmanager
def exclusive(
    config: CatalogConfig,
    warehouse: str,
    runner: str,
    *,
    cancel: Callable[[], None],
    warn: Callable[[str], None],
    life: timedelta = LIFE,
) -> Iterator[Callable[[], None]]:
    """Keep jobs and other work out of a warehouse for the block.

    Args:
        config: Of the catalog.
        warehouse: Its name.
        runner: A name that no other process has.
        cancel: Ends the work of the block; called once, from another thread, if the lease is lost.
        warn: Reports a lease that could not be given back.
        life: How long the lease outlives a process that died.

    Yields:
        A check that raises LeaseLostError if the lease is lost by now.

    Raises:
        LeaseHeldError: Another runner works on the warehouse.
        LeaseLostError: The lease was lost before the block had ended.
    """
    lease, control = Lease(config, warehouse, open_catalog(config, warehouse), runner, life), Control()
    lease.take(datetime.now(UTC))
    heartbeat = Heartbeat([lease], control, on_loss=cancel)

    def check() -> None:
        if reason := control.lost.get(warehouse):
            raise LeaseLostError(f"{reason}: the work was cancelled")

    heartbeat.start()
    try:
        yield check
    except Exception:
        check()  # it is why the work failed
        raise
    finally:
        for sentence in heartbeat.close():
            warn(sentence)
