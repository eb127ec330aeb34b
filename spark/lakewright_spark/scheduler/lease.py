"""The lease on a warehouse: a property of `ops.maintenance_lease`, changed by commits that exclude each other.

Every commit requires that `main` is at the snapshot that was read. Taking the lease adds a snapshot without files, so
that of two takers one fails, and so does the renewal of a holder whose lease was taken. A renewal changes the property
alone: it costs one metadata file (about 2 KB, of which the table keeps 20), no snapshot and no data file. With the
default life, that is 120 small commits for an hour of maintenance.

The lease is in the warehouse itself, and nowhere else: a lease in a database or in Kubernetes would not exclude a
runner that does not know of it, such as a job that is started by hand from another machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, SetPropertiesUpdate
from pyiceberg.types import NestedField, StringType, TimestamptzType

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LeaseHeldError, LeaseLostError
from lakewright_spark.maintenance.ops_policies import LEASE
from lakewright_spark.pyiceberg_catalog import explained
from lakewright_spark.scheduler.ops import found, made

NAME = LEASE
PROPERTY = "lakewright.lease"
"""Of the table: the lease as JSON."""
LIFE = timedelta(minutes=3)
"""A runner that gives no sign for so long is taken for dead. Clocks of runners may differ by a part of it."""
_NEVER = datetime.min.replace(tzinfo=UTC)
TIMES = 5
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
    expires_at: datetime = _NEVER
    """As it stood at our last successful commit."""

    def take(self, now: datetime) -> LeaseRow | None:
        """Become the holder; the lease that was there before. LeaseHeldError names who holds it, and until when."""
        self._since = now
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = made(self.catalog, NAME, SCHEMA, PROPERTIES)
                row = _row(table)
                if row and row.held_against(self.who, now):
                    raise LeaseHeldError(
                        f"warehouse {self.warehouse} is maintained by {row.holder} since {_told(row.since)}. "
                        f"Wait for it to finish: its lease expires at {_told(row.expires_at)} unless it is renewed"
                    )
                mine = self._mine(self.who, now)
                if _take(table, mine):
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
                mine = self._mine(self.who, now)
                if _replace(table, mine):
                    self.expires_at = mine.expires_at
                    return
        raise LeaseLostError(f"warehouse {self.warehouse}: others changed the lease's table {TIMES} times")

    def release(self, now: datetime) -> None:
        """Give it back, unless another runner has it by now."""
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table) or _replace(table, self._mine(None, now)):
                    return

    def _mine(self, holder: str | None, now: datetime) -> LeaseRow:
        return LeaseRow(self.warehouse, holder, self._since, now, now + self.life if holder else now)

    def _is_ours(self, table: Table) -> bool:
        row = _stated(table)
        return row is not None and row.holder == self.who


def read(catalog: Catalog) -> LeaseRow | None:
    """The lease of a warehouse, if it was ever taken."""
    table = found(catalog, NAME)
    return _row(table) if table else None


def _take(table: Table, row: LeaseRow) -> bool:
    """Put the lease on top of the snapshot that was read, with a snapshot of its own; False if there is a newer one."""
    try:
        # An append asserts that `main` is at the snapshot that was loaded (assert-ref-snapshot-id).
        with table.transaction() as change:
            change.set_properties({PROPERTY: _LEASE.dump_json(row).decode()})
            change.append(table.schema().as_arrow().empty_table())
    except (CommitFailedException, ValidationException):
        return False
    return True


def _replace(table: Table, row: LeaseRow) -> bool:
    """Change the lease that was read; False if somebody has taken it since."""
    required = (AssertTableUUID(uuid=table.metadata.table_uuid), _at(table))
    update = SetPropertiesUpdate(updates={PROPERTY: _LEASE.dump_json(row).decode()})
    try:
        table.catalog.commit_table(table, required, (update,))
    except (CommitFailedException, ValidationException):
        return False
    return True


def _at(table: Table) -> AssertRefSnapshotId:
    """Require that nobody has committed a snapshot since."""
    return AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": table.metadata.current_snapshot_id})


_LEASE = TypeAdapter(LeaseRow)


def _stated(table: Table) -> LeaseRow | None:
    text = table.properties.get(PROPERTY)
    return _LEASE.validate_json(text) if text is not None else None


def _row(table: Table) -> LeaseRow | None:
    """The newest of what this release and earlier ones have written."""
    rows = [LeaseRow(**row) for row in table.scan().to_arrow().to_pylist()]
    if stated := _stated(table):
        rows.append(stated)
    return max(rows, key=lambda row: row.heartbeat_at, default=None)


def _told(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
