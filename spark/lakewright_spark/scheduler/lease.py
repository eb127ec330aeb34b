"""The lease on a warehouse: a property of `ops.maintenance_lease`, changed by commits that exclude each other.

Every commit requires that `main` is at the snapshot that was read. Taking the lease adds a snapshot without files, so
that of two takers one fails, and so does the renewal of a holder whose lease was taken. A renewal changes the property
alone: it costs one metadata file (about 2 KB, of which the table keeps 20), no snapshot and no data file. With the
default life, that is 120 small commits for an hour of maintenance.

The lease is in the warehouse itself, and nowhere else: a lease in a database or in Kubernetes would not exclude a
runner that does not know of it, such as a job that is started by hand from another machine.
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
from lakewright_spark.pyiceberg_client.catalog import explained
from lakewright_spark.scheduler.claims import ClaimedTables, read_claims
from lakewright_spark.scheduler.run_log.ops_tables import found, made
from lakewright_spark.scheduler.supervisor import Control

NAME = LEASE
PROPERTY = "lakewright.lease"
"""Of the table: the lease as JSON."""
LIFE = timedelta(minutes=3)
"""A runner that gives no sign for so long is taken for dead. Clocks of runners may differ by a part of it."""
NEVER = datetime.min.replace(tzinfo=UTC)
TIMES = 15
"""Attempts against commits of others, as those of the jobs that maintain this table."""

# Rows are what earlier releases kept the lease in; they are still read.
SCHEMA = Schema(
    NestedField(1, "warehouse", StringType()),
    NestedField(2, "holder", StringType(), doc="HOST/PROCESS/digits of the runner; null: nobody, it was given back"),
    NestedField(3, "since", TimestamptzType()),
    NestedField(4, "heartbeat_at", TimestamptzType()),
    NestedField(5, "expires_at", TimestamptzType()),
)
PROPERTIES = {
    # A commit that meets a newer snapshot has lost: it must not be put on top of that.
    "commit.retry.num-retries": "0",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "comment": f"Who maintains the warehouse: see the property {PROPERTY}",
}


@dataclass(frozen=True)
class LeaseRow:
    """Who has the lease, and how long. Times are UTC."""

    warehouse: str
    holder: str | None
    since: datetime
    heartbeat_at: datetime
    expires_at: datetime
    yields: bool = False
    """Whether the holder gives up tables that others claim; earlier releases do not."""
    yielded: tuple[str, ...] = ()
    """UUIDs of the tables that it has given up."""

    def held_against(self, who: str, now: datetime) -> bool:
        """Whether another than `who` holds it now."""
        return self.holder is not None and self.holder != who and now < self.expires_at


@dataclass
class Lease:
    """One runner's way to the lease of one warehouse."""

    config: CatalogConfig
    warehouse: str
    catalog: Catalog
    who: str
    life: timedelta = LIFE
    _since: datetime = field(init=False)
    expires_at: datetime = NEVER
    """As it stood at our last successful commit."""
    claimed: ClaimedTables | None = None
    """Which tables the work under this lease leaves to others; by default it gives none up."""
    _yielded: frozenset[str] = frozenset()

    def take(self, now: datetime) -> LeaseRow | None:
        """Become the holder; the lease that was there before. LeaseHeldError names who holds it, and until when."""
        self._since = now
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = made(self.catalog, NAME, SCHEMA, PROPERTIES)
                row = stated_row(table)
                if row and row.held_against(self.who, now):
                    raise LeaseHeldError(
                        f"warehouse {self.warehouse} is maintained by {row.holder} since {utc_text(row.since)}. "
                        f"Wait for it to finish: its lease expires at {utc_text(row.expires_at)} unless it is renewed"
                    )
                mine = self._mine(self.who, now, table)
                # An append asserts that `main` is at the snapshot that was loaded (assert-ref-snapshot-id).
                if add_snapshot(table, _as_property(mine)):
                    self.expires_at = mine.expires_at
                    return row
        raise LeaseHeldError(f"warehouse {self.warehouse}: others took the lease {TIMES} times; try again")

    def renew(self, now: datetime) -> None:
        """Extend the lease. LeaseLostError if another runner has it; other errors leave it as it was."""
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table):
                    raise LeaseLostError(f"warehouse {self.warehouse}: the lease of {self.who} was taken by another")
                mine = self._mine(self.who, now, table)
                if set_properties(table, _as_property(mine)):
                    self.expires_at = mine.expires_at
                    return
        raise LeaseLostError(f"warehouse {self.warehouse}: others changed the lease's table {TIMES} times")

    def release(self, now: datetime) -> None:
        """Give it back, unless another runner has it by now."""
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table) or set_properties(table, _as_property(self._mine(None, now, table))):
                    return

    def is_asked(self) -> bool:
        """Return whether a table is given up that the lease does not say yet, so that it is to be renewed now."""
        if self.claimed is None:
            return False
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            table = self.catalog.load_table(("ops", NAME))
        # A claim may be withdrawn before the renewal: only that gives tables up.
        return not self.claimed.note(self.warehouse, self._claims(table, datetime.now(UTC))) <= self._yielded

    def _mine(self, holder: str | None, now: datetime, table: Table) -> LeaseRow:
        row = LeaseRow(self.warehouse, holder, self._since, now, now + self.life if holder else now)
        if holder is None or self.claimed is None:
            return row
        self._yielded = self.claimed.give_up(self.warehouse, self._claims(table, now))
        return replace(row, yields=True, yielded=tuple(sorted(self._yielded)))

    def _claims(self, table: Table, now: datetime) -> dict[str, str]:
        """Return the holder of each claim of others that has not expired, by the table's UUID."""
        claims = read_claims(table.properties)
        return {uuid: row.holder for uuid, row in claims.items() if row.held_against(self.who, now)}

    def _is_ours(self, table: Table) -> bool:
        row = lease_of(table)
        return row is not None and row.holder == self.who


def read(catalog: Catalog) -> LeaseRow | None:
    """The lease of a warehouse, if it was ever taken."""
    table = found(catalog, NAME)
    return stated_row(table) if table else None


def holders(catalog: Catalog, now: datetime) -> frozenset[str]:
    """Return the runners that hold the lease of the warehouse or a claim of a table."""
    if (table := found(catalog, NAME)) is None:
        return frozenset()
    row = stated_row(table)
    lease = {row.holder} if row and row.holder and now < row.expires_at else set[str]()
    return frozenset(lease | {one.holder for one in read_claims(table.properties).values() if now < one.expires_at})


def add_snapshot(table: Table, properties: Mapping[str, str], removed: Sequence[str] = ()) -> bool:
    """Change properties with a snapshot on top of the one that was read; False if there is a newer one."""
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
    """Change properties of the table that was read; False if there is a newer snapshot."""
    required = (AssertTableUUID(uuid=table.metadata.table_uuid), _at(table))
    updates: list[TableUpdate] = [SetPropertiesUpdate(updates=dict(properties))] if properties else []
    if removed:
        updates.append(RemovePropertiesUpdate(removals=list(removed)))
    try:
        table.catalog.commit_table(table, required, tuple(updates))
    except (CommitFailedException, ValidationException):
        return False
    return True


def _at(table: Table) -> AssertRefSnapshotId:
    """Require that nobody has committed a snapshot since."""
    return AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": table.metadata.current_snapshot_id})


_LEASE = TypeAdapter(LeaseRow)


def _as_property(row: LeaseRow) -> dict[str, str]:
    return {PROPERTY: _LEASE.dump_json(row).decode()}


def lease_of(table: Table) -> LeaseRow | None:
    """Return the lease as the table's property has it."""
    text = table.properties.get(PROPERTY)
    return _LEASE.validate_json(text) if text is not None else None


def stated_row(table: Table) -> LeaseRow | None:
    """The newest of what this release and earlier ones have written."""
    rows = [LeaseRow(**row) for row in table.scan().to_arrow().to_pylist()]
    if stated := lease_of(table):
        rows.append(stated)
    return max(rows, key=lambda row: row.heartbeat_at, default=None)


def utc_text(moment: datetime) -> str:
    """Return a moment for messages."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


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
