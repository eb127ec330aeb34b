"""The lease of a warehouse and its heartbeat. The lease is a property of the table `ops.maintenance_lease`.

Every commit requires that `main` is at the snapshot that was read. Taking the lease adds an empty snapshot, so one of
two runners that take it at the same time fails, and so does a renewal after the lease was taken over. A renewal changes
only the property: it costs one metadata file (about 2 KB, of which the table keeps 20), no snapshot and no data file.
With the default lifetime, an hour of maintenance makes 120 small commits.

The lease is stored in the warehouse only: a lease in a database or in Kubernetes would not exclude runners that do not
use it, such as a job that a user starts on another machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from pydantic import TypeAdapter
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)
from pyiceberg.types import NestedField, StringType, TimestamptzType

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError, LeaseHeldError, LeaseLostError
from lakewright_spark.policies.builtin import LEASE
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.scheduler.claims import ClaimedTables, read_claims
from lakewright_spark.scheduler.run_log.ops_tables import create_if_missing, find_table
from lakewright_spark.scheduler.supervisor import Control
from lakewright_spark.times import format_time

NAME = LEASE
PROPERTY = "lakewright.lease"
"""Table property that holds the lease as JSON."""
LIFE = timedelta(minutes=3)
"""A runner that is silent for this long counts as dead. Clocks of runners may differ by a fraction of it."""
NEVER = datetime.min.replace(tzinfo=UTC)
ATTEMPTS = 15
"""Attempts at a commit that conflicts with other commits, such as commits of jobs that maintain this table."""

# Earlier releases kept the lease in rows, which are still read.
SCHEMA = Schema(
    NestedField(1, "warehouse", StringType()),
    NestedField(2, "holder", StringType(), doc="HOST/PROCESS/digits of the runner; null: released"),
    NestedField(3, "since", TimestamptzType()),
    NestedField(4, "heartbeat_at", TimestamptzType()),
    NestedField(5, "expires_at", TimestamptzType()),
)
PROPERTIES = {
    # A commit that conflicts with a newer snapshot must fail, not be repeated on top of it.
    "commit.retry.num-retries": "0",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "comment": f"Lease of the runner that maintains the warehouse, in the property {PROPERTY}",
}


@dataclass(frozen=True)
class LeaseRow:
    """The holder of the lease and its times (UTC)."""

    warehouse: str
    holder: str | None
    since: datetime
    heartbeat_at: datetime
    expires_at: datetime
    yields: bool = False
    """Whether the holder gives up claimed tables; earlier releases do not."""
    yielded: tuple[str, ...] = ()
    """UUIDs of the tables that the holder has given up."""

    def is_held_by_other(self, runner: str, now: datetime) -> bool:
        """Return whether another runner holds it now."""
        return self.holder is not None and self.holder != runner and now < self.expires_at


@dataclass
class Lease:
    """The lease of one warehouse, from the view of one runner."""

    config: CatalogConfig
    warehouse: str
    catalog: Catalog
    runner: str
    life: timedelta = LIFE
    _since: datetime = field(init=False)
    expires_at: datetime = NEVER
    """Instant of expiry, according to this runner's last successful commit."""
    claimed: ClaimedTables | None = None
    """Claimed tables, which the runner leaves to others. None: it gives up no tables."""
    _yielded: frozenset[str] = frozenset()

    def take(self, now: datetime) -> LeaseRow | None:
        """Take the lease, and return the previous lease.

        Raises:
            LeaseHeldError: Another runner holds it. The message names the runner and the expiry.
        """
        self._since = now
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = create_if_missing(self.catalog, NAME, SCHEMA, PROPERTIES)
                row = latest_lease(table)
                if row and row.is_held_by_other(self.runner, now):
                    raise LeaseHeldError(
                        f"warehouse {self.warehouse} is maintained by {row.holder} since {format_time(row.since)}. "
                        f"Wait for it to finish. Its lease expires at {format_time(row.expires_at)} unless renewed."
                    )
                lease = self._new_row(self.runner, now, table)
                # An append asserts that `main` is at the loaded snapshot (assert-ref-snapshot-id).
                if add_snapshot(table, _to_property(lease)):
                    self.expires_at = lease.expires_at
                    return row
        raise LeaseHeldError(
            f"warehouse {self.warehouse}: {ATTEMPTS} attempts to take the lease conflicted with others. Try again."
        )

    def renew(self, now: datetime) -> None:
        """Extend the lease. Other errors than LeaseLostError leave it as it was.

        Raises:
            LeaseLostError: Another runner holds it.
        """
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table):
                    raise LeaseLostError(
                        f"warehouse {self.warehouse}: another runner took over the lease of {self.runner}"
                    )
                lease = self._new_row(self.runner, now, table)
                if set_properties(table, _to_property(lease)):
                    self.expires_at = lease.expires_at
                    return
        raise LeaseLostError(
            f"warehouse {self.warehouse}: {ATTEMPTS} attempts to renew the lease conflicted with other commits"
        )

    def release(self, now: datetime) -> None:
        """Release the lease, unless another runner holds it."""
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table) or set_properties(table, _to_property(self._new_row(None, now, table))):
                    return

    def needs_renewal(self) -> bool:
        """Return whether the lease has to list another table as given up."""
        if self.claimed is None:
            return False
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            table = self.catalog.load_table(("ops", NAME))
        # Only the renewal gives tables up, since a claim may be withdrawn before it.
        return not self.claimed.update(self.warehouse, self._claims(table, datetime.now(UTC))) <= self._yielded

    def _new_row(self, holder: str | None, now: datetime, table: Table) -> LeaseRow:
        row = LeaseRow(self.warehouse, holder, self._since, now, now + self.life if holder else now)
        if holder is None or self.claimed is None:
            return row
        self._yielded = self.claimed.give_up(self.warehouse, self._claims(table, now))
        return replace(row, yields=True, yielded=tuple(sorted(self._yielded)))

    def _claims(self, table: Table, now: datetime) -> dict[str, str]:
        """Return the holder of each valid claim of another runner, by table UUID."""
        claims = read_claims(table.properties)
        return {uuid: row.holder for uuid, row in claims.items() if row.is_held_by_other(self.runner, now)}

    def _is_ours(self, table: Table) -> bool:
        row = property_lease(table)
        return row is not None and row.holder == self.runner


def read_lease(catalog: Catalog) -> LeaseRow | None:
    """Return the lease of a warehouse; None if it was never taken."""
    table = find_table(catalog, NAME)
    return latest_lease(table) if table else None


def active_runners(catalog: Catalog, now: datetime) -> frozenset[str]:
    """Return the runners that hold the lease of the warehouse or a claim of a table."""
    if (table := find_table(catalog, NAME)) is None:
        return frozenset()
    row = latest_lease(table)
    lease = {row.holder} if row and row.holder and now < row.expires_at else set[str]()
    return frozenset(
        lease | {claim.holder for claim in read_claims(table.properties).values() if now < claim.expires_at}
    )


def add_snapshot(table: Table, properties: Mapping[str, str], removed: Sequence[str] = ()) -> bool:
    """Change properties and add a snapshot. Return False if there is a newer snapshot than the loaded one."""
    try:
        with table.transaction() as change:
            change.set_properties(dict(properties))
            if removed:
                change.remove_properties(*removed)
            change.append(table.schema().as_arrow().empty_table())
    except (CommitFailedException, ValidationException):
        return False
    return True


def set_properties(table: Table, properties: Mapping[str, str], removed: Sequence[str] = ()) -> bool:
    """Change properties. Return False if there is a newer snapshot than the loaded one."""
    required = (AssertTableUUID(uuid=table.metadata.table_uuid), _require_snapshot(table))
    updates: list[TableUpdate] = [SetPropertiesUpdate(updates=dict(properties))] if properties else []
    if removed:
        updates.append(RemovePropertiesUpdate(removals=list(removed)))
    try:
        table.catalog.commit_table(table, required, tuple(updates))
    except (CommitFailedException, ValidationException):
        return False
    return True


def _require_snapshot(table: Table) -> AssertRefSnapshotId:
    """Require that the loaded snapshot is still current."""
    return AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": table.metadata.current_snapshot_id})


_LEASE = TypeAdapter(LeaseRow)


def _to_property(row: LeaseRow) -> dict[str, str]:
    return {PROPERTY: _LEASE.dump_json(row).decode()}


def property_lease(table: Table) -> LeaseRow | None:
    """Return the lease in the table's property; None if there is none."""
    text = table.properties.get(PROPERTY)
    return _LEASE.validate_json(text) if text is not None else None


def latest_lease(table: Table) -> LeaseRow | None:
    """Return the newest lease that this release or earlier releases wrote."""
    rows = [LeaseRow(**row) for row in table.scan().to_arrow().to_pylist()]
    if row := property_lease(table):
        rows.append(row)
    return max(rows, key=lambda row: row.heartbeat_at, default=None)


RENEWALS = 6
"""Renewals in the lifetime of a lease, so that one failure does no harm."""
MAX_LOOK_SECONDS = 5.0
"""Maximum time until a holder notices a claim."""
EXPIRY_CHECKS = 60
"""Checks for expired leases in the lifetime of the shortest lease."""
MAX_CLOSE_SECONDS = 10.0
"""Maximum time that the end of a run waits for a hanging renewal."""


class Renewable(Protocol):
    """The lease of a warehouse, or a claim of a table in it."""

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

    def needs_renewal(self) -> bool:
        """Return whether it has to be renewed now."""
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
        while self._wait(lease) and lease.warehouse not in self._control.lost:
            try:
                lease.renew(datetime.now(UTC))
                self._failures.pop(lease.warehouse, None)
            except LeaseLostError as error:
                self._report_loss(lease, str(error))
            except Exception as error:  # noqa: BLE001  # any error: the watcher stops the work in time
                self._failures[lease.warehouse] = str(error)

    def _wait(self, lease: Renewable) -> bool:
        """Wait until the lease has to be renewed. Return False once renewals have stopped."""
        every = lease.life.total_seconds() / RENEWALS
        until = time.monotonic() + every
        while (remaining := until - time.monotonic()) > 0:
            if self._closed.wait(min(remaining, every / 2, MAX_LOOK_SECONDS)):
                return False
            with suppress(LakewrightSparkError):  # the renewal reports the error
                if lease.needs_renewal():
                    return True
        return True

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
