"""Renews the leases of a runner beside its work, and stops the work of a warehouse whose lease is lost."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

from lakewright_spark.errors import LakewrightSparkError, LeaseLostError
from lakewright_spark.scheduler.lease import Lease
from lakewright_spark.scheduler.supervisor import Control


class Heartbeat:
    """One thread for all leases. A lease is renewed six times in its life, so that one failure costs nothing."""

    def __init__(self, leases: Sequence[Lease], control: Control) -> None:
        self._leases, self._control = list(leases), control
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)

    def start(self) -> None:
        if self._leases:
            self._thread.start()

    def close(self) -> list[str]:
        """Stop renewing, and give back what is still ours; what could not be given back, in sentences."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
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

    def _run(self) -> None:
        every = min(lease.life for lease in self._leases).total_seconds() / 6
        while not self._closed.wait(every):
            for lease in self._leases:
                if lease.warehouse not in self._control.lost:
                    self._renew(lease)

    def _renew(self, lease: Lease) -> None:
        try:
            lease.renew(datetime.now(UTC))
        except LeaseLostError as error:
            self._control.lost[lease.warehouse] = str(error)
        except Exception as error:  # noqa: BLE001  # whatever it is, work must not outlive the lease
            # From its expiry on another may have it, whom we could not see: the work has to have stopped by then.
            if datetime.now(UTC) >= lease.expires_at - lease.life / 6:
                self._control.lost[lease.warehouse] = (
                    f"warehouse {lease.warehouse}: the lease could not be renewed before {lease.expires_at:%H:%M:%S} "
                    f"UTC: {error}"
                )
