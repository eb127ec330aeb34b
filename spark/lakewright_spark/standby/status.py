"""The status of the tables and views of a standby: how each relates to its source, and how far it is behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import pairwise
from typing import Any

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.view_history import Json, limit_history, list_missing_versions
from lakewright_spark.standby.mark import StandbyMark
from lakewright_spark.standby.tables import StandbyTable
from lakewright_spark.standby.views import StandbyView, compute_content, is_written
from lakewright_spark.times import format_json_time


class State(Enum):
    """How a table or view of the standby relates to its source."""

    CURRENT = "current"
    BEHIND = "behind"
    MISSING = "missing"
    """The standby does not have it."""
    DROPPED = "dropped"
    """The source no longer has it."""
    UNKNOWN = "unknown"
    """The source does not respond."""
    WRITTEN = "written"
    """Other writers have changed it in the standby."""
    PROMOTED = "promoted"
    FAILED = "failed"


@dataclass(frozen=True)
class TableStatus:
    """The state of one table or view."""

    name: str
    state: State
    copied_at: datetime | None = None
    """Time of the last copy (UTC)."""
    lag: timedelta = timedelta()
    """Time since the first commit that the standby lacks; age of the last copy if the source has expired that commit
    or does not respond."""
    snapshots: int = 0
    """Number of the source's snapshots, or versions of a view, that the standby lacks."""
    detail: str = ""
    """The parts that were compared, or why the table failed."""
    is_view: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the status for JSON."""
        return {
            **asdict(self),
            "state": self.state.value,
            "copied_at": format_json_time(self.copied_at) if self.copied_at else None,
            "lag": round(self.lag.total_seconds(), 3),
        }


def measure_table(table: StandbyTable, source: Endpoint, now: datetime) -> TableStatus:
    """Compare a table with its source. Nothing is changed."""
    name = table.name
    source_table, copy = source.find_table(table.identifier), table.find_copy()
    if copy is None:
        return TableStatus(name, State.MISSING, lag=_find_age(source_table, now), detail="never copied")
    standby_table, mark = copy
    if mark.promoted_at:
        return TableStatus(name, State.PROMOTED, mark.copied_at)
    if table.is_written(standby_table, mark):
        return TableStatus(name, State.WRITTEN, mark.copied_at, now - mark.copied_at)
    if source_table is None:
        return TableStatus(name, State.DROPPED, mark.copied_at)
    if source_table.metadata_location == mark.metadata:
        return TableStatus(name, State.CURRENT, mark.copied_at)
    copied = {snapshot.snapshot_id for snapshot in standby_table.snapshots()}
    missing = [snapshot for snapshot in source_table.snapshots() if snapshot.snapshot_id not in copied]
    behind_since = _find_first_commit(source_table, missing, standby_table, mark)
    return TableStatus(name, State.BEHIND, mark.copied_at, max(now - behind_since, timedelta()), len(missing))


def measure_view(view: StandbyView, now: datetime) -> TableStatus:
    """Compare a view with its source. Nothing is changed."""

    def build_status(
        state: State, copied_at: datetime | None = None, lag: timedelta = timedelta(), versions: int = 0
    ) -> TableStatus:
        return TableStatus(view.name, state, copied_at, max(lag, timedelta()), versions, "view", is_view=True)

    source_view, copy = view.find_in_source(), view.find_copy()
    if copy is None or not view.has_name:
        times = [version["timestamp-ms"] for version in source_view.metadata["versions"]] if source_view else []
        copied_at = copy[1].copied_at if copy else None
        return build_status(State.MISSING, copied_at, now - _to_time(min(times)) if times else timedelta())
    standby_view, mark = copy
    if mark.promoted_at:
        return build_status(State.PROMOTED, mark.copied_at)
    if is_written(standby_view, mark):
        return build_status(State.WRITTEN, mark.copied_at, now - mark.copied_at)
    if source_view is None:
        return build_status(State.DROPPED, mark.copied_at)
    if compute_content(source_view) == mark.content:
        return build_status(State.CURRENT, mark.copied_at)
    missing = list_missing_versions(limit_history(source_view.metadata), standby_view.metadata)
    first = _find_first_version(source_view.metadata, standby_view.metadata)
    # Changes of properties, and of the current version to an earlier version, have no time.
    behind_since = _to_time(first["timestamp-ms"]) if first else mark.copied_at
    return build_status(State.BEHIND, mark.copied_at, now - behind_since, len(missing))


def measure_without_source(copy: StandbyTable | StandbyView, reason: str, now: datetime) -> TableStatus:
    """Return the age of a copy whose source does not respond."""
    mark, is_view = copy.require_copy()[1], isinstance(copy, StandbyView)
    if mark.promoted_at:
        return TableStatus(copy.name, State.PROMOTED, mark.copied_at, is_view=is_view)
    lag = now - mark.copied_at
    return TableStatus(copy.name, State.UNKNOWN, mark.copied_at, lag, detail=reason, is_view=is_view)


def find_problems(statuses: Sequence[TableStatus], max_lag: timedelta | None = None) -> list[str]:
    """Return a sentence for each table that failed, was written, or is further behind than the limit."""
    problems = [f"{status.name}: {status.detail}" for status in statuses if status.state is State.FAILED]
    problems += [f"{s.name}: other writers changed it in the standby" for s in statuses if s.state is State.WRITTEN]
    if max_lag is not None:
        problems += [f"{s.name}: the source no longer has it" for s in statuses if s.state is State.DROPPED]
        behind = [status for status in statuses if status.lag > max_lag and status.state is not State.WRITTEN]
        problems += [f"{status.name}: {format_lag(status.lag)} behind its source" for status in behind]
    return problems


def format_lag(lag: timedelta) -> str:
    """Return a lag in whole seconds."""
    return str(timedelta(seconds=round(lag.total_seconds())))


def _to_time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _find_first_commit(source: Table, missing: Sequence[Snapshot], copy: Table, mark: StandbyMark) -> datetime:
    """Return the time of the first commit that a copy lacks; the time of the copy if the source has expired it."""
    if not missing:
        return _to_time(source.metadata.last_updated_ms)
    if any(_is_successor(snapshot, copy) for snapshot in missing):
        return _to_time(min(snapshot.timestamp_ms for snapshot in missing))
    return mark.copied_at


def _is_successor(snapshot: Snapshot, copy: Table) -> bool:
    """Return whether a snapshot is the first after a copy."""
    if copy.metadata.format_version == 1:  # no sequence numbers
        return snapshot.parent_snapshot_id in ({copied.snapshot_id for copied in copy.snapshots()} or {None})
    return snapshot.sequence_number == copy.metadata.last_sequence_number + 1


def _find_first_version(source: Json, copy: Json) -> Json | None:
    """Return the first version that a copy lacks; None if there is none, or if the source has deleted it."""
    missing = list_missing_versions(source, copy)
    versions = sorted(source["versions"], key=lambda version: version["version-id"])
    return next((later for earlier, later in pairwise(versions) if later in missing and earlier not in missing), None)


def _find_age(table: Table | None, now: datetime) -> timedelta:
    """Return the time since a table's first snapshot."""
    times = [_to_time(snapshot.timestamp_ms) for snapshot in table.snapshots()] if table else []
    return now - min(times, default=now)
