"""The claim of one table by a job that a user starts, beside the runners of the warehouse.

If a runner works on the table, the job leaves a request. The runner sees it with its next renewal, and releases the
table when its current job on the table has ended. Another job on the table is refused.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LeaseHeldError, LeaseLostError
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.scheduler.claims import CLAIM, REQUEST, ClaimRow, read_claims, read_runners, to_property
from lakewright_spark.scheduler.lease_table import (
    ATTEMPTS,
    LIFE,
    NAME,
    NEVER,
    RenewalCatalog,
    add_snapshot,
    open_lease_table,
    refuse_earlier_lease,
    remove_properties,
    set_properties,
)
from lakewright_spark.table_identifier import TableIdentifier
from lakewright_spark.times import format_time

PATIENCE = timedelta(minutes=2)
"""Time that a job waits for a runner to release the table."""
POLL_SECONDS = 1.0
"""Time between two reads of the claims."""


@dataclass
class TableClaim:
    """The claim of one table, from the view of one job."""

    config: CatalogConfig
    table: TableIdentifier
    uuid: str
    catalog: Catalog
    runner: str
    life: timedelta = LIFE
    patience: timedelta = PATIENCE
    stop: threading.Event = field(default_factory=threading.Event)
    """Ends the wait for a runner."""
    _since: datetime = field(init=False)
    expires_at: datetime = NEVER
    """Instant of expiry, according to this job's last successful commit."""

    def __post_init__(self) -> None:
        """Prepare the renewals."""
        self._renewals = RenewalCatalog(self.config, self.warehouse, self.catalog)

    @property
    def warehouse(self) -> str:
        """Name of the warehouse."""
        return self.table.warehouse

    def take(self, now: datetime) -> None:
        """Claim the table, and wait until no runner works on it.

        Raises:
            LeaseHeldError: Another job holds a claim, or a runner did not release the table.
        """
        self._since = now
        if (holder := self._try_take(now)) is None:
            return
        try:
            holder = self._wait_for_release(holder, now)
        except BaseException:
            self._withdraw()
            raise
        if holder is not None:
            self._withdraw()
            raise LeaseHeldError(
                f"table {self.table} is maintained by {holder.holder} since {format_time(holder.since)}, which did not "
                f"release it within {self.patience}. Wait for it to finish. "
                f"Its claim expires at {format_time(holder.expires_at)} unless renewed."
            )

    def _wait_for_release(self, holder: ClaimRow, now: datetime) -> ClaimRow | None:
        """Request the table, and take it as soon as it is free. Return the holder if it is not free in time."""
        until = time.monotonic() + self.patience.total_seconds()
        requested, current = False, holder
        while time.monotonic() < until and not self.stop.is_set():
            requested = requested or self._request(now)
            self.stop.wait(POLL_SECONDS)
            now = max(now, datetime.now(UTC))
            if (row := self._try_take(now)) is None:
                return None
            current = row
        return current

    def renew(self, now: datetime) -> None:
        """Extend the claim. Other errors than LeaseLostError leave it as it was.

        Raises:
            LeaseLostError: Another runner holds it.
        """
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = self._renewals.load_table()
                if not self._is_ours(table):
                    raise LeaseLostError(f"table {self.table}: another runner took over the claim of {self.runner}")
                claim = self._new_row(now)
                if set_properties(table, to_property(CLAIM, self.uuid, claim)):
                    self.expires_at = claim.expires_at
                    return
        raise LeaseLostError(
            f"table {self.table}: {ATTEMPTS} attempts to renew the claim conflicted with other commits"
        )

    def release(self, now: datetime) -> None:
        """Release the claim, unless another runner holds it. A renewal that arrives later fails."""
        del now  # a release has no time
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table) or add_snapshot(table, {}, [CLAIM + self.uuid], kind=self.config.kind):
                    return

    def _try_take(self, now: datetime) -> ClaimRow | None:
        """Take the claim. Return the claim of a runner that holds the table instead.

        Raises:
            LeaseHeldError: A job holds the table, or a runner of an earlier release the warehouse.
        """
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = open_lease_table(self.catalog)
                refuse_earlier_lease(table, self.warehouse, now)
                current = read_claims(table.properties).get(self.uuid)
                if current and current.is_held_by_other(self.runner, now):
                    if current.holder in read_runners(table.properties):
                        return current
                    raise LeaseHeldError(
                        f"table {self.table} is maintained by {current.holder} since {format_time(current.since)}. "
                        f"Wait for it to finish. Its claim expires at {format_time(current.expires_at)} unless renewed."
                    )
                claim = self._new_row(now)
                removed = [REQUEST + self.uuid] if REQUEST + self.uuid in table.properties else []
                if add_snapshot(table, to_property(CLAIM, self.uuid, claim), removed, kind=self.config.kind):
                    self.expires_at = claim.expires_at
                    return None
                time.sleep(random.uniform(0, 0.1))  # noqa: S311  # spread the attempts of several runners
        raise LeaseHeldError(
            f"table {self.table}: {ATTEMPTS} attempts to claim it conflicted with other runners. Try again."
        )

    def _request(self, now: datetime) -> bool:
        """Ask the runner for the table. Return False if the commit conflicted."""
        row = ClaimRow(str(self.table), self.runner, now, now + self.patience)
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            return set_properties(open_lease_table(self.catalog), to_property(REQUEST, self.uuid, row))

    def _withdraw(self) -> None:
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = open_lease_table(self.catalog)
                if REQUEST + self.uuid not in table.properties or remove_properties(table, [REQUEST + self.uuid]):
                    return

    def _new_row(self, now: datetime) -> ClaimRow:
        return ClaimRow(str(self.table), self.runner, self._since, now + self.life)

    def _is_ours(self, table: Table) -> bool:
        row = read_claims(table.properties).get(self.uuid)
        return row is not None and row.holder == self.runner
