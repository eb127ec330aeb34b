"""The claim of one table, so that a job on it does not wait for the maintenance of the whole warehouse.

Claims and the lease of the warehouse are properties of one table. Taking either adds a snapshot to that table, in a
commit that requires the loaded snapshot. Therefore either the runner of the warehouse sees the claim when it takes the
lease, or the job sees the lease when it claims the table. In the second case, the job waits until the runner gives up
the table: the runner's next renewal says so, at once if no job runs on the table, otherwise when that job has ended. A
job that stops waiting withdraws its claim, and the runner continues with the table.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LeaseHeldError, LeaseLostError
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.scheduler.claims import PREFIX, ClaimRow, claim_property, read_claims
from lakewright_spark.scheduler.lease import (
    LIFE,
    NAME,
    NEVER,
    PROPERTIES,
    SCHEMA,
    LeaseRow,
    add_snapshot,
    latest_lease,
    set_properties,
)
from lakewright_spark.scheduler.run_log.ops_tables import create_if_missing
from lakewright_spark.table_identifier import TableIdentifier
from lakewright_spark.times import format_time

ATTEMPTS = 20
"""Attempts at a commit that conflicts with others."""
PATIENCE = timedelta(minutes=1)
"""Time that a job waits for the runner of the warehouse to give up the table."""
POLL_SECONDS = 1.0
"""Time between two reads of the lease."""


@dataclass
class TableClaim:
    """The claim of one table, from the view of one runner."""

    config: CatalogConfig
    table: TableIdentifier
    uuid: str
    catalog: Catalog
    runner: str
    life: timedelta = LIFE
    patience: timedelta = PATIENCE
    stop: threading.Event = field(default_factory=threading.Event)
    """Ends the wait for the runner of the warehouse."""
    _since: datetime = field(init=False)
    expires_at: datetime = NEVER
    """Instant of expiry, according to this runner's last successful commit."""

    @property
    def warehouse(self) -> str:
        """Name of the warehouse."""
        return self.table.warehouse

    def take(self, now: datetime) -> None:
        """Claim the table, and wait until no other runner works on it.

        Raises:
            LeaseHeldError: Another job holds a claim, or the runner of the warehouse did not give up the table.
        """
        self._since = now
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = create_if_missing(self.catalog, NAME, SCHEMA, PROPERTIES)
                claims = read_claims(table.properties)
                current_claim = claims.get(self.uuid)
                if current_claim and current_claim.is_held_by_other(self.runner, now):
                    raise LeaseHeldError(
                        f"table {self.table} is maintained by {current_claim.holder} since "
                        f"{format_time(current_claim.since)}. Wait for it to finish. "
                        f"Its claim expires at {format_time(current_claim.expires_at)} unless renewed."
                    )
                claim = self._new_row(now)
                expired = [uuid for uuid, row in claims.items() if uuid != self.uuid and row.expires_at <= now]
                if add_snapshot(table, claim_property(self.uuid, claim), _property_names(expired)):
                    self.expires_at = claim.expires_at
                    break
                time.sleep(random.uniform(0, 0.1))  # noqa: S311  # spread the attempts of several runners
            else:
                raise LeaseHeldError(
                    f"table {self.table}: {ATTEMPTS} attempts to claim it conflicted with other runners. Try again."
                )
        self._wait()

    def renew(self, now: datetime) -> None:
        """Extend the claim. Other errors than LeaseLostError leave it as it was.

        Raises:
            LeaseLostError: Another runner holds it.
        """
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table):
                    raise LeaseLostError(f"table {self.table}: another runner took over the claim of {self.runner}")
                claim = self._new_row(now)
                if set_properties(table, claim_property(self.uuid, claim)):
                    self.expires_at = claim.expires_at
                    return
        raise LeaseLostError(
            f"table {self.table}: {ATTEMPTS} attempts to renew the claim conflicted with other commits"
        )

    def release(self, now: datetime) -> None:
        """Release the claim, unless another runner holds it."""
        del now  # a claim has no release time
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table) or set_properties(table, {}, _property_names([self.uuid])):
                    return

    def needs_renewal(self) -> bool:
        """Return False: a claim never gives up its table."""
        return False

    def _wait(self) -> None:
        """Wait until the runner of the warehouse has given up the table.

        Raises:
            LeaseHeldError: It has not done so in time. The claim is withdrawn.
        """
        until = time.monotonic() + self.patience.total_seconds()
        try:
            while (row := self._find_conflicting_lease()) is not None:
                if not row.yields or time.monotonic() > until or self.stop.wait(POLL_SECONDS):
                    break
        except BaseException:
            self.release(datetime.now(UTC))
            raise
        if row is not None:
            self.release(datetime.now(UTC))
            raise LeaseHeldError(
                f"warehouse {self.warehouse} is maintained by {row.holder} since {format_time(row.since)}, which did "
                f"not give up table {self.table}. Wait for it to finish. Its lease expires at "
                f"{format_time(row.expires_at)} unless renewed."
            )

    def _find_conflicting_lease(self) -> LeaseRow | None:
        """Return the lease of another runner that may work on the table."""
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            row = latest_lease(self.catalog.load_table(("ops", NAME)))
        is_held = (
            row is not None and row.is_held_by_other(self.runner, datetime.now(UTC)) and self.uuid not in row.yielded
        )
        return row if is_held else None

    def _new_row(self, now: datetime) -> ClaimRow:
        return ClaimRow(str(self.table), self.runner, self._since, now + self.life)

    def _is_ours(self, table: Table) -> bool:
        row = read_claims(table.properties).get(self.uuid)
        return row is not None and row.holder == self.runner


def _property_names(uuids: Iterable[str]) -> list[str]:
    return [PREFIX + uuid for uuid in uuids]
