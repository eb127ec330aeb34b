"""Heartbeat: renews claims in the background, and stops the work before they expire."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from lakewright_spark.errors import LakewrightSparkError, LeaseLostError
from lakewright_spark.scheduler.supervisor import Control
from lakewright_spark.times import format_time

RENEWALS = 6
"""Renewals in the lifetime of a claim, so that one failure does no harm: 120 an hour with the default lifetime."""
EXPIRY_CHECKS = 60
"""Checks for expired claims in the lifetime of the shortest."""
MAX_CLOSE_SECONDS = 10.0
"""Maximum time that the end of a run waits for a hanging renewal."""


class Renewable(Protocol):
    """The claims of a runner in a warehouse, or of a job."""

    life: timedelta
    expires_at: datetime

    @property
    def warehouse(self) -> str:
        """Name of the warehouse."""
        ...

    def renew(self, now: datetime) -> None:
        """Extend it."""
        ...

    def release(self, now: datetime) -> None:
        """Release it."""
        ...


class Heartbeat:
    """Renews leases in one thread each, and watches their expiry in another.

    The watcher sends no requests: even if renewals hang, the work of a warehouse is cancelled a sixth of the lease's
    lifetime before the lease expires.
    """

    def __init__(
        self, leases: Sequence[Renewable], control: Control, *, on_loss: Callable[[], None] = lambda: None
    ) -> None:
        """Prepare the threads.

        Args:
            leases: Leases and claims to renew.
            control: Gets the reason for each lost lease.
            on_loss: Called from another thread when a lease is lost.
        """
        self._leases, self._control, self._on_loss = list(leases), control, on_loss
        self._closed = threading.Event()
        self._failures: dict[str, str] = {}
        self._threads = [
            threading.Thread(target=self._renew, args=(lease,), name=f"lease {lease.warehouse}", daemon=True)
            for lease in self._leases
        ]
        if self._leases:
            self._threads.append(threading.Thread(target=self._watch, name="leases", daemon=True))

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> list[str]:
        """Stop the renewals, release the leases, and return a sentence for each that could not be released."""
        self._closed.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(MAX_CLOSE_SECONDS)
        failures: list[str] = []
        for lease in self._leases:
            if lease.warehouse not in self._control.lost:
                try:
                    lease.release(datetime.now(UTC))
                except LakewrightSparkError as error:
                    failures.append(
                        f"the lease could not be released and expires at {format_time(lease.expires_at)}: {error}"
                    )
        return failures

    def _renew(self, lease: Renewable) -> None:
        every = lease.life.total_seconds() / RENEWALS
        while not self._closed.wait(every) and lease.warehouse not in self._control.lost:
            try:
                lease.renew(datetime.now(UTC))
                self._failures.pop(lease.warehouse, None)
            except LeaseLostError as error:
                self._report_loss(lease, str(error))
            except Exception as error:  # noqa: BLE001  # any error: the watcher stops the work in time
                self._failures[lease.warehouse] = str(error)

    def _watch(self) -> None:
        every = min(lease.life for lease in self._leases).total_seconds() / EXPIRY_CHECKS
        while not self._closed.wait(every):
            now = datetime.now(UTC)
            for lease in self._leases:
                # Another runner may take it from its expiry on, so the work has to stop before.
                if now >= lease.expires_at - _margin(lease) and lease.warehouse not in self._control.lost:
                    why = self._failures.get(lease.warehouse, "no response to the renewal")
                    self._report_loss(
                        lease,
                        f"warehouse {lease.warehouse}: the lease could not be renewed before "
                        f"{format_time(lease.expires_at)}: {why}",
                    )

    def _report_loss(self, lease: Renewable, reason: str) -> None:
        self._control.lost.setdefault(lease.warehouse, reason)
        self._on_loss()


def _margin(lease: Renewable) -> timedelta:
    return lease.life / RENEWALS
