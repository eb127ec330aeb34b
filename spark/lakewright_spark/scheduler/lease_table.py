"""The table `ops.maintenance_lease`, whose properties hold the claims of runners and jobs on tables.

Every commit requires that `main` is at the snapshot that was read. Taking, releasing or taking over a claim adds an
empty snapshot, so one of two conflicting commits fails, and so does a renewal that was sent before and arrives late. A
renewal changes only properties: it costs one metadata file (about 2 KB, of which the table keeps 20).

Claims are stored in the warehouse only: claims in a database or in Kubernetes would not exclude runners that do not use
it, such as a job that a user starts on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import TypeAdapter
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    RemoveSnapshotsUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)
from pyiceberg.types import NestedField, StringType, TimestamptzType

from lakewright_spark.catalog.config import CatalogConfig, Kind
from lakewright_spark.errors import LeaseHeldError
from lakewright_spark.iceberg_values import METADATA_LIMITS
from lakewright_spark.policies.builtin import LEASE, OPS
from lakewright_spark.pyiceberg_client.catalog import open_metadata_catalog
from lakewright_spark.scheduler.run_log.ops_tables import create_if_missing
from lakewright_spark.times import format_time

NAME = LEASE
LIFE = timedelta(minutes=3)
"""A runner that is silent for this long counts as dead. Clocks of runners and the server may differ by a minute.

Lakekeeper refuses records that are more than a minute older than the last change of their table."""
NEVER = datetime.min.replace(tzinfo=UTC)
ATTEMPTS = 20
"""Attempts at a commit that conflicts with other commits, such as commits of jobs that maintain this table."""
MAX_SNAPSHOTS, KEPT_SNAPSHOTS = 50, 10
"""A renewal removes old snapshots when there are too many. A night of 10,000 tables adds about 2,000."""

# Earlier releases let one runner at a time hold a lease of the whole warehouse, in rows or in a property.
EARLIER_LEASE = "lakewright.lease"
"""Property in which earlier releases hold the lease as JSON."""
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
    **METADATA_LIMITS,
    "comment": "Claims of the runners and jobs that maintain the warehouse's tables, in properties lakewright.*",
}


@dataclass(frozen=True)
class EarlierLease:
    """The lease of a runner of an earlier release, which works on all tables of the warehouse."""

    warehouse: str
    holder: str | None
    since: datetime
    heartbeat_at: datetime
    expires_at: datetime
    yields: bool = False
    yielded: tuple[str, ...] = ()


_LEASE = TypeAdapter(EarlierLease)


@dataclass
class RenewalCatalog:
    """Loads the table for renewals. They write no file, so they need no credentials of the storage."""

    config: CatalogConfig
    warehouse: str
    catalog: Catalog
    """The warehouse's catalog with credentials."""
    _opened: Catalog | None = field(default=None, init=False, repr=False)

    def load_table(self) -> Table:
        """Return the table. Errors of PyIceberg are raised."""
        # `cached_property` would let a server that does not respond hold up the renewals of other warehouses: until
        # Python 3.12, instances share its lock.
        if self._opened is None:
            self._opened = open_metadata_catalog(self.config, self.warehouse, self.catalog)
        return self._opened.load_table((OPS, NAME))


def open_lease_table(catalog: Catalog) -> Table:
    """Return the table, and create it if it is missing. Errors of PyIceberg are raised."""
    return create_if_missing(catalog, NAME, SCHEMA, PROPERTIES)


def refuse_earlier_lease(table: Table, warehouse: str, now: datetime) -> None:
    """Raise LeaseHeldError if a runner of an earlier release holds the lease of the warehouse."""
    leases = [EarlierLease(**row) for row in _read_rows(table)]
    if (text := table.properties.get(EARLIER_LEASE)) is not None:
        leases.append(_LEASE.validate_json(text))
    latest = max(leases, key=lambda lease: lease.heartbeat_at, default=None)
    if latest and latest.holder is not None and now < latest.expires_at:
        raise LeaseHeldError(
            f"warehouse {warehouse} is maintained by {latest.holder} of an earlier release since "
            f"{format_time(latest.since)}. Wait for it to finish. Its lease expires at "
            f"{format_time(latest.expires_at)} unless renewed."
        )


def _read_rows(table: Table) -> list[dict[str, Any]]:
    current = table.current_snapshot()
    totals = current.summary.additional_properties if current and current.summary else {}
    return [] if totals.get("total-records", "0") == "0" else table.scan().to_arrow().to_pylist()


def add_snapshot(table: Table, properties: Mapping[str, str], removed: Sequence[str] = (), *, kind: Kind) -> bool:
    """Change properties and add a snapshot. Return False if there is a newer snapshot than the loaded one."""
    change = table.transaction()
    if properties:
        change.set_properties(dict(properties))
    if removed:
        change.remove_properties(*removed)
    try:
        change.append(table.schema().as_arrow().empty_table())
        if kind != "lakekeeper":
            change.commit_transaction()
            return True
        # Lakekeeper deletes old metadata files itself. PyIceberg would try again and warn at each commit.
        staged: Any = change
        updates = tuple(_date_snapshot(update, table.metadata.last_updated_ms) for update in staged._updates)
        committed = table.catalog.commit_table(table, staged._requirements, updates)
    except (CommitFailedException, ValidationException):
        return False
    table.metadata = committed.metadata
    return True


def _date_snapshot(update: TableUpdate, earliest: int) -> TableUpdate:
    """Date a new snapshot no earlier than the table's last change, which may have the time of the server.

    Lakekeeper refuses a snapshot that is more than a minute older, as of a runner whose clock is behind.
    """
    if not isinstance(update, AddSnapshotUpdate):
        return update
    snapshot = update.snapshot
    dated = snapshot.model_copy(update={"timestamp_ms": max(snapshot.timestamp_ms, earliest)})
    return update.model_copy(update={"snapshot": dated})


def set_properties(table: Table, properties: Mapping[str, str]) -> bool:
    """Change properties. Return False if there is a newer snapshot than the loaded one."""
    required = (AssertTableUUID(uuid=table.metadata.table_uuid), _require_snapshot(table))
    updates: list[TableUpdate] = [SetPropertiesUpdate(updates=dict(properties))]
    if old := _list_old_snapshots(table):
        updates.append(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": old}))
    try:
        table.catalog.commit_table(table, required, tuple(updates))
    except (CommitFailedException, ValidationException):
        return False
    return True


def remove_properties(table: Table, names: Sequence[str]) -> bool:
    """Remove properties of ended claims. Return False if there is a newer snapshot than the loaded one."""
    required = (AssertTableUUID(uuid=table.metadata.table_uuid), _require_snapshot(table))
    try:
        table.catalog.commit_table(table, required, (RemovePropertiesUpdate(removals=list(names)),))
    except (CommitFailedException, ValidationException):
        return False
    return True


def _require_snapshot(table: Table) -> AssertRefSnapshotId:
    """Require that the loaded snapshot is still current."""
    return AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": table.metadata.current_snapshot_id})


def _list_old_snapshots(table: Table) -> list[int]:
    snapshots = sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0)
    if len(snapshots) <= MAX_SNAPSHOTS:
        return []
    current_snapshots = {ref.snapshot_id for ref in table.metadata.refs.values()}
    return [one.snapshot_id for one in snapshots[:-KEPT_SNAPSHOTS] if one.snapshot_id not in current_snapshots]
