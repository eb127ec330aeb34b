"""Renews the leases of a runner beside its work, and stops the work of a warehouse before its lease can end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Protocol

from lakewright_spark.errors import LakewrightSparkError, LeaseLostError
from lakewright_spark.scheduler.supervisor import Control

RENEWALS = 6
"""In the life of a lease, so that one failure costs nothing."""
LONGEST_LOOK = 5.0
"""Seconds until a holder sees that a job has claimed a table, at most."""
LOOKS = 60
"""At the ends of the leases, in the life of the shortest."""
LONGEST_CLOSE = 10.0
"""Seconds that the end of a run waits for a renewal that hangs."""


class Renewable(Protocol):
    """A lease of a warehouse, or the claim of a table in it."""

    life: timedelta
    expires_at: datetime

    @property
    def warehouse(self) -> str: ...

    def renew(self, now: datetime) -> None: ...

    def release(self, now: datetime) -> None: ...

    def is_asked(self) -> bool:
        """Return whether there is a reason to renew it now."""
        ...


class Heartbeat:
    """A thread for each lease, so that none waits for another's, and one that watches when they end.

    The watcher asks no server: whatever keeps a renewal from being answered, the work of that warehouse is cancelled
    a sixth of the lease's life before its end.
    """

    def __init__(
        self, leases: Sequence[Renewable], control: Control, *, on_loss: Callable[[], None] = lambda: None
    ) -> None:
        """Prepare the threads.

        Args:
            leases: What is to be renewed.
            control: Gets the reason for each lease that is lost.
            on_loss: Called from another thread once a lease is lost.
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
        for thread in self._threads:
            thread.start()

    def close(self) -> list[str]:
        """Stop renewing, and give back what is still ours; what could not be given back, in sentences."""
        self._closed.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(LONGEST_CLOSE)
        left: list[str] = []
        for lease in self._leases:
            if lease.warehouse not in self._control.lost:
                try:
                    lease.release(datetime.now(UTC))
                except LakewrightSparkError as error:
                    left.append(
                        f"the lease could not be given back and expires at {lease.expires_at:%H:%M:%S}: {error}"
                    )
        return left

    def _renew(self, lease: Renewable) -> None:
        while self._wait(lease) and lease.warehouse not in self._control.lost:
            try:
                lease.renew(datetime.now(UTC))
                self._failures.pop(lease.warehouse, None)
            except LeaseLostError as error:
                self._lose(lease, str(error))
            except Exception as error:  # noqa: BLE001  # of whatever kind: the watcher stops the work in time
                self._failures[lease.warehouse] = str(error)

    def _wait(self, lease: Renewable) -> bool:
        """Wait until the lease is to be renewed; False once it is no more."""
        every = lease.life.total_seconds() / RENEWALS
        until = time.monotonic() + every
        while (left := until - time.monotonic()) > 0:
            if self._closed.wait(min(left, every / 2, LONGEST_LOOK)):
                return False
            with suppress(LakewrightSparkError):  # the renewal says what is wrong
                if lease.is_asked():
                    return True
        return True

    def _watch(self) -> None:
        every = min(lease.life for lease in self._leases).total_seconds() / LOOKS
        while not self._closed.wait(every):
            now = datetime.now(UTC)
            for lease in self._leases:
                # From its end on another may have it, whom we could not see: the work has to have stopped by then.
                if now >= lease.expires_at - _margin(lease) and lease.warehouse not in self._control.lost:
                    why = self._failures.get(lease.warehouse, "its renewal was not answered")
                    self._lose(
                        lease,
                        f"warehouse {lease.warehouse}: the lease could not be renewed before "
                        f"{lease.expires_at:%H:%M:%S} UTC: {why}",
                    )

    def _lose(self, lease: Renewable, reason: str) -> None:
        self._control.lost.setdefault(lease.warehouse, reason)
        self._on_loss()


def _margin(lease: Renewable) -> timedelta:
    return lease.life / RENEWALS
