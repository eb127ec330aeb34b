"""The claim of one table: a job on it need not wait until the maintenance of its whole warehouse ends.

Claims and the lease of the warehouse are properties of one table. Taking either adds a snapshot to that table, by a
commit that requires the snapshot that was read. So either the runner of the warehouse sees the claim when it takes the
lease, or the job sees the lease when it claims the table, and then waits until the runner has given the table up: its
next renewal says so, at once if it is not at work on the table, else when its present job on the table has ended.
A job that does not wait any longer withdraws its claim, and the runner goes on with the table.
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
from lakewright_spark.pyiceberg_client.catalog import explained
from lakewright_spark.scheduler.claims import PREFIX, ClaimRow, claim_property, read_claims
from lakewright_spark.scheduler.lease import (
    LIFE,
    NAME,
    NEVER,
    PROPERTIES,
    SCHEMA,
    LeaseRow,
    add_snapshot,
    set_properties,
    stated_row,
    utc_text,
)
from lakewright_spark.scheduler.run_log.ops_tables import made
from lakewright_spark.table_identifier import TableIdentifier

TIMES = 20
"""Attempts against commits of others."""
PATIENCE = timedelta(minutes=1)
"""Until the runner of the warehouse is to have given the table up."""
LOOK = 1.0
"""Seconds between two looks at what it says."""


@dataclass
class TableClaim:
    """One runner's way to the claim of one table."""

    config: CatalogConfig
    table: TableIdentifier
    uuid: str
    catalog: Catalog
    who: str
    life: timedelta = LIFE
    patience: timedelta = PATIENCE
    stop: threading.Event = field(default_factory=threading.Event)
    """Ends the wait for the runner of the warehouse."""
    _since: datetime = field(init=False)
    expires_at: datetime = NEVER
    """As it stood at our last successful commit."""

    @property
    def warehouse(self) -> str:
        return self.table.warehouse

    def take(self, now: datetime) -> None:
        """Claim the table, and wait until nobody else works on it.

        Raises:
            LeaseHeldError: Another job works on the table, or the runner of the warehouse did not give it up.
        """
        self._since = now
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = made(self.catalog, NAME, SCHEMA, PROPERTIES)
                claims = read_claims(table.properties)
                held = claims.get(self.uuid)
                if held and held.held_against(self.who, now):
                    raise LeaseHeldError(
                        f"table {self.table} is maintained by {held.holder} since {utc_text(held.since)}. Wait for it "
                        f"to finish: its claim expires at {utc_text(held.expires_at)} unless it is renewed"
                    )
                mine = self._mine(now)
                expired = [uuid for uuid, row in claims.items() if uuid != self.uuid and row.expires_at <= now]
                if add_snapshot(table, claim_property(self.uuid, mine), _names(expired)):
                    self.expires_at = mine.expires_at
                    break
                time.sleep(random.uniform(0, 0.1))  # noqa: S311  # apart from the others
            else:
                raise LeaseHeldError(f"table {self.table}: others changed the claims {TIMES} times; try again")
        self._wait()

    def renew(self, now: datetime) -> None:
        """Extend the claim. LeaseLostError if another runner has it; other errors leave it as it was."""
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table):
                    raise LeaseLostError(f"table {self.table}: the claim of {self.who} was taken by another")
                mine = self._mine(now)
                if set_properties(table, claim_property(self.uuid, mine)):
                    self.expires_at = mine.expires_at
                    return
        raise LeaseLostError(f"table {self.table}: others changed the claims {TIMES} times")

    def release(self, now: datetime) -> None:
        """Give it back, unless another runner has it by now."""
        del now  # of leases
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table) or set_properties(table, {}, _names([self.uuid])):
                    return

    def is_asked(self) -> bool:
        """Nobody asks a job to give its table up."""
        return False

    def _wait(self) -> None:
        """Wait until the runner of the warehouse has given the table up. LeaseHeldError, and the claim is no more."""
        until = time.monotonic() + self.patience.total_seconds()
        try:
            while (row := self._other()) is not None:
                if not row.yields or time.monotonic() > until or self.stop.wait(LOOK):
                    break
        except BaseException:
            self.release(datetime.now(UTC))
            raise
        if row is not None:
            self.release(datetime.now(UTC))
            raise LeaseHeldError(
                f"warehouse {self.warehouse} is maintained by {row.holder} since {utc_text(row.since)}, which did not "
                f"give up table {self.table}. Wait for it to finish: its lease expires at {utc_text(row.expires_at)} "
                "unless it is renewed"
            )

    def _other(self) -> LeaseRow | None:
        """Return the lease of a runner that may work on the table."""
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            row = stated_row(self.catalog.load_table(("ops", NAME)))
        held = row is not None and row.held_against(self.who, datetime.now(UTC)) and self.uuid not in row.yielded
        return row if held else None

    def _mine(self, now: datetime) -> ClaimRow:
        return ClaimRow(str(self.table), self.who, self._since, now + self.life)

    def _is_ours(self, table: Table) -> bool:
        row = read_claims(table.properties).get(self.uuid)
        return row is not None and row.holder == self.who


def _names(uuids: Iterable[str]) -> list[str]:
    return [PREFIX + uuid for uuid in uuids]
