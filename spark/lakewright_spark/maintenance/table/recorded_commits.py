"""RecordedCommits: the commits in `ops.commit_statistics`, read once for all tables of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

from lakewright_spark.iceberg_values import to_instant
from lakewright_spark.maintenance.table.expiration import Snapshot
from lakewright_spark.maintenance.table.iceberg import IcebergTable, SqlSession, instant_sql
from lakewright_spark.table_identifier import literal

_CLOCKS = timedelta(minutes=2)
"""Commits of this time before the newest are compared by ID. Iceberg lets clocks of writers differ by a minute."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RecordedCommits:
    """The newest recorded commits of each table, by its UUID. All earlier commits are recorded as well."""

    newest: Mapping[str, datetime]
    ids: Mapping[str, frozenset[int]]
    """Snapshots of the last minutes before the newest commit."""
    collected: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """When the newest commits were recorded (UTC)."""

    def has_commit(self, table_uuid: str, snapshot: Snapshot) -> bool:
        """Return whether an earlier run recorded the commit."""
        newest = self.newest.get(table_uuid)
        if newest is None:
            return False
        return snapshot.committed_at < newest - _CLOCKS or snapshot.id in self.ids[table_uuid]

    def find_changes_since(self, table_uuid: str, now: datetime, every: timedelta) -> datetime | None:
        """Return the instant (UTC) since which changes may be unrecorded.

        Returns:
            None if all of the table has to be recorded again, which is once in each period of `every`.
        """
        collected, newest = self.collected.get(table_uuid), self.newest.get(table_uuid)
        if collected is None or newest is None or (collected - _EPOCH) // every != (now - _EPOCH) // every:
            return None
        return newest - _CLOCKS


def read_recorded_commits(opened: IcebergTable, commits: str, *, oldest: datetime | None = None) -> RecordedCommits:
    """Read the recorded commits of all tables, or of the opened table only.

    Args:
        opened: A table of the warehouse.
        commits: Name of `ops.commit_statistics` for Spark SQL.
        oldest: Commit time (UTC) of the opened table's oldest snapshot. Default: read the commits of all tables.
    """
    # The partition is the day, so rows of older snapshots are not read.
    this_table = oldest and f"WHERE committed_at >= {instant_sql(oldest)} AND table_uuid = {literal(opened.uuid)}"
    rows = cast(SqlSession, opened.spark).sql(
        "SELECT table_uuid, snapshot_id, unix_millis(newest) AS newest, unix_millis(collected) AS collected FROM "  # noqa: S608
        "(SELECT table_uuid, snapshot_id, committed_at, max(committed_at) OVER (PARTITION BY table_uuid) AS newest, "
        f"max(collected_at) OVER (PARTITION BY table_uuid) AS collected FROM {commits} {this_table or ''}) "
        f"WHERE committed_at >= newest - INTERVAL {_CLOCKS.seconds} SECONDS"
    )
    newest: dict[str, datetime] = {}
    collected: dict[str, datetime] = {}
    ids: defaultdict[str, set[int]] = defaultdict(set)
    for row in rows.collect():
        newest[row.table_uuid] = to_instant(row.newest)
        collected[row.table_uuid] = to_instant(row.collected)
        ids[row.table_uuid].add(row.snapshot_id)
    return RecordedCommits(newest, {uuid: frozenset(snapshots) for uuid, snapshots in ids.items()}, collected)
