"""The lease on a warehouse: a table with one row, replaced by commits that hold only on top of its last snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import NestedField, StringType, TimestamptzType

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog_policies import HistoryPolicy, MaintenanceSwitches, TablePolicies
from lakewright_spark.errors import LeaseHeldError, LeaseLostError
from lakewright_spark.pyiceberg_catalog import explained
from lakewright_spark.scheduler.ops import found, made

NAME = "maintenance_lease"
LIFE = timedelta(minutes=3)
"""A runner that gives no sign for so long is taken for dead. Clocks of runners may differ by a part of it."""
_NEVER = datetime.min.replace(tzinfo=UTC)
TIMES = 5
"""Attempts against commits that change nothing of the row, as those of the jobs that maintain this table."""

SCHEMA = Schema(
    NestedField(1, "warehouse", StringType()),
    NestedField(2, "holder", StringType(), doc="HOST/PROCESS/digits of the runner; null: nobody, it was given back"),
    NestedField(3, "since", TimestamptzType()),
    NestedField(4, "heartbeat_at", TimestamptzType()),
    NestedField(5, "expires_at", TimestamptzType()),
)
_KEPT = TablePolicies(
    history=HistoryPolicy(max_age_days=1),
    maintenance=MaintenanceSwitches(disabled_jobs=("compaction", "rewrite-manifests")),
)
PROPERTIES = {
    **_KEPT.properties(),
    # A commit that meets a newer snapshot has lost: it must not be put on top of that.
    "commit.retry.num-retries": "0",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "comment": "Who maintains the warehouse: one row",
}


@dataclass(frozen=True)
class LeaseRow:
    """The one row. Times are UTC."""

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
    _snapshot: int | None = None
    """Ours; while it is the table's last one, the row is ours, too."""
    expires_at: datetime = _NEVER
    """As it stood at our last successful commit."""

    def take(self, now: datetime) -> LeaseRow | None:
        """Become the holder; the row that was there before. LeaseHeldError names who holds it, and until when."""
        self._since = now
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = made(self.catalog, NAME, SCHEMA, PROPERTIES)
                row = _row(table)
                if row and row.held_against(self.who, now):
                    raise LeaseHeldError(
                        f"warehouse {self.warehouse} is maintained by {row.holder} since {_told(row.since)}: expected "
                        f"it to end, or its lease to expire, which is at {_told(row.expires_at)} unless it is renewed"
                    )
                if self._commit(table, self.who, now):
                    return row
        raise LeaseHeldError(f"warehouse {self.warehouse}: others took the lease {TIMES} times; try again")

    def renew(self, now: datetime) -> None:
        """Tell that we live. LeaseLostError if it is somebody else's; other errors leave it as it was."""
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table):
                    raise LeaseLostError(f"warehouse {self.warehouse}: the lease of {self.who} was taken by another")
                if self._commit(table, self.who, now):
                    return
        raise LeaseLostError(f"warehouse {self.warehouse}: others changed the lease's table {TIMES} times")

    def release(self, now: datetime) -> None:
        """Give it back, unless it is somebody else's by now."""
        with explained(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(TIMES):
                table = self.catalog.load_table(("ops", NAME))
                if not self._is_ours(table) or self._commit(table, None, now):
                    return

    def _is_ours(self, table: Table) -> bool:
        current = table.current_snapshot()
        if current and current.snapshot_id == self._snapshot:
            return True
        row = _row(table)
        return row is not None and row.holder == self.who

    def _commit(self, table: Table, holder: str | None, now: datetime) -> bool:
        """Replace the row on top of the snapshot that was read; False if there is a newer one."""
        expires = now + self.life if holder else now
        row = LeaseRow(self.warehouse, holder, self._since, now, expires)
        rows = pa.Table.from_pylist([vars(row)], table.schema().as_arrow())
        try:
            # The transaction asserts that `main` is at the snapshot that was loaded (assert-ref-snapshot-id).
            with table.transaction() as change:
                if table.current_snapshot() is None:
                    change.append(rows)
                else:
                    change.overwrite(rows)
        except (CommitFailedException, ValidationException):
            return False
        current = table.current_snapshot()
        self._snapshot, self.expires_at = current.snapshot_id if current else None, expires
        return True


def read(catalog: Catalog) -> LeaseRow | None:
    """The row of a warehouse whose lease was ever taken."""
    table = found(catalog, NAME)
    return _row(table) if table else None


def _row(table: Table) -> LeaseRow | None:
    rows = table.scan().to_arrow().to_pylist()
    return LeaseRow(**rows[0]) if rows else None


def _told(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
