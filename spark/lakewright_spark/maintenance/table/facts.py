"""TableFacts: the metadata of a table that decides which jobs are due. No data file is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyiceberg.schema import index_by_id
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef
from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot
from pyiceberg.types import NestedField

from lakewright_spark.errors import TableUnreadableError
from lakewright_spark.iceberg_values import is_switched_off, optional_span, to_instant
from lakewright_spark.maintenance.table.expiration import Ref, Snapshot, add_departures
from lakewright_spark.maintenance.table.rewrite_estimate import CommittedFiles, read_number
from lakewright_spark.table_identifier import TableIdentifier


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """Metadata of a table. Times are UTC."""

    table: TableIdentifier
    uuid: str
    properties: Mapping[str, str]
    location: str = ""
    locations: frozenset[str] = frozenset()
    """The location and every other folder that the metadata names for the table's files."""
    snapshots: tuple[Snapshot, ...] = ()
    refs: tuple[Ref, ...] = ()
    snapshot: int | None = None
    """Current snapshot. None: nothing was ever written."""
    changed_at: datetime | None = None
    """When rows were last added or removed. Rewritten files do not count."""
    touched_at: datetime
    """When the metadata last changed."""
    data_files: int | None = None
    """None: not in the summary of the last commit."""
    data_bytes: int | None = None
    delete_files: int | None = None
    equality_deletes: int | None = None
    """Number of equality deletes. None: not in the summary of the last commit."""
    deleted_share: float = 0.0
    """Share of the rows in data files that position deletes remove."""
    equality_deleted_share: float = 0.0
    """Number of equality deletes as a share of the rows in data files."""
    format_version: int = 2
    partition_spec: int = 0
    """ID of the default partition spec."""
    partitions: int = 1
    """Most partitions that a commit changed: the number of partitions, as far as commits show it."""
    additions: tuple[CommittedFiles, ...] = ()
    """Data files of each commit that led to the current snapshot, except rewrites."""
    commits_since: datetime | None = None
    """When the oldest known commit was made; earlier commits have expired. None: all commits are known."""
    unreadable_types: tuple[str, ...] = ()
    """Types of columns, nested columns as well, that Spark cannot read."""

    def drop_history(self) -> TableFacts:
        """Return the facts without what only due rules need: a plan holds the facts of every table."""
        return replace(self, properties={}, locations=frozenset(), snapshots=(), refs=(), additions=())

    def only_places(self) -> TableFacts:
        """Return the facts that overlap checks need."""
        return replace(self, properties={}, snapshots=(), refs=(), additions=())

    @property
    def keeps_garbage(self) -> bool:
        """Return whether `gc.enabled=false` forbids to delete files."""
        return is_switched_off(self.properties, "gc.enabled")


def table_facts(table: TableIdentifier, loaded: Table) -> TableFacts:
    """Return the facts of a table that PyIceberg loaded.

    Raises:
        TableUnreadableError: The metadata contradicts itself.
    """
    metadata = loaded.metadata
    _check_snapshots(metadata)
    current = loaded.current_snapshot()
    refs = tuple(_ref(name, ref) for name, ref in metadata.refs.items())
    log = [(entry.snapshot_id, entry.timestamp_ms) for entry in metadata.snapshot_log]
    totals = current.summary.additional_properties if current and current.summary else {}
    # The totals describe the current snapshot. Other branches and undone commits have files beside it.
    ancestors = [*_list_ancestors(loaded)]
    commits = [*_list_commits(ancestors)]
    return TableFacts(
        table=table,
        uuid=str(metadata.table_uuid),
        properties=dict(metadata.properties),
        location=metadata.location,
        locations=frozenset(_places(metadata)),
        snapshots=tuple(add_departures([*map(_snapshot, metadata.snapshots)], refs, log, metadata.last_updated_ms)),
        refs=refs,
        snapshot=current.snapshot_id if current else None,
        changed_at=max(_changes(loaded), default=None),
        touched_at=to_instant(metadata.last_updated_ms),
        data_files=read_number(totals, "total-data-files"),
        data_bytes=read_number(totals, "total-files-size"),
        delete_files=read_number(totals, "total-delete-files"),
        equality_deletes=read_number(totals, "total-equality-deletes"),
        format_version=metadata.format_version,
        partition_spec=metadata.default_spec_id,
        deleted_share=_compute_share(totals, "total-position-deletes"),
        equality_deleted_share=_compute_share(totals, "total-equality-deletes"),
        partitions=max((commit.partitions for commit, _ in commits), default=1),
        commits_since=_find_known_since(ancestors, commits),
        additions=tuple(commit for commit, is_rewrite in commits if not is_rewrite),
        unreadable_types=tuple(sorted(_UNREADABLE & {str(field.field_type) for field in _list_fields(metadata)})),
    )


def _compute_share(totals: Mapping[str, str], deletes: str) -> float:
    """Return a number of deletes as a share of the rows in data files."""
    return (read_number(totals, deletes) or 0) / max(read_number(totals, "total-records") or 0, 1)


_UNREADABLE = {"timestamp_ns", "timestamptz_ns"}
"""Types that Spark cannot read with Iceberg 1.12."""


def format_unreadable(types: Iterable[str]) -> str:
    """Return why jobs that read columns cannot run on a table."""
    return f"Spark cannot read columns of type {', '.join(types)}"


def _list_fields(metadata: TableMetadata) -> Iterable[NestedField]:
    return index_by_id(metadata.schema()).values()


def _check_snapshots(metadata: TableMetadata) -> None:
    """Raise TableUnreadableError if the current snapshot, a branch or a tag refers to a missing snapshot."""
    existing = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    missing = [
        f"{ref.snapshot_ref_type.value} {name} refers to snapshot {ref.snapshot_id}, which does not exist"
        for name, ref in metadata.refs.items()
        if ref.snapshot_id not in existing
    ]
    if metadata.current_snapshot_id is not None and metadata.current_snapshot_id not in existing:
        missing.insert(0, f"current snapshot {metadata.current_snapshot_id} does not exist")
    if missing:
        raise TableUnreadableError(f"inconsistent metadata: {'; '.join(missing)}")


_PATHS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


def _places(metadata: TableMetadata) -> Iterator[str]:
    yield metadata.location
    yield from (metadata.properties[key] for key in _PATHS if key in metadata.properties)
    # A table whose location was changed has older files in the earlier location.
    yield from (snapshot.manifest_list.rpartition("/")[0] for snapshot in metadata.snapshots)


def _changes(loaded: Table) -> Iterator[datetime]:
    for snapshot in loaded.metadata.snapshots:
        if snapshot.summary is None or snapshot.summary.operation.value != "replace":
            yield to_instant(snapshot.timestamp_ms)


def _list_ancestors(loaded: Table) -> Iterator[IcebergSnapshot]:
    """Yield the snapshots that led to the current snapshot, newest first, up to an expired snapshot."""
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in loaded.metadata.snapshots}
    snapshot = loaded.current_snapshot()
    while snapshot is not None and snapshots.pop(snapshot.snapshot_id, None) is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = snapshots.get(parent) if parent is not None else None


def _list_commits(ancestors: Iterable[IcebergSnapshot]) -> Iterator[tuple[CommittedFiles, bool]]:
    """Yield the files of each commit, and whether the commit rewrote files."""
    for snapshot in ancestors:
        if snapshot.summary is not None:
            commit = CommittedFiles.from_summary(snapshot.timestamp_ms, snapshot.summary.additional_properties)
            yield commit, snapshot.summary.operation.value == "replace"


def _find_known_since(
    ancestors: Sequence[IcebergSnapshot], commits: Sequence[tuple[CommittedFiles, bool]]
) -> datetime | None:
    """Return when the oldest ancestor was committed.

    Returns:
        None: It was the first commit, or it rewrote data files. Each commit after the last compaction is known then.

    Some clients remove the parent of a snapshot when the parent expires; then the totals show files before the commit.
    """
    if not ancestors:
        return None
    oldest = ancestors[-1]
    if commits and commits[-1][1] and commits[-1][0].files:
        return None
    summary = oldest.summary.additional_properties if oldest.summary else {}
    earlier_files = (read_number(summary, "total-data-files") or 0) - (read_number(summary, "added-data-files") or 0)
    is_first = oldest.parent_snapshot_id is None and earlier_files <= 0
    return None if is_first else to_instant(oldest.timestamp_ms)


def _snapshot(snapshot: IcebergSnapshot) -> Snapshot:
    summary: dict[str, str] = {}
    if snapshot.summary is not None:
        summary = {**snapshot.summary.additional_properties, "operation": snapshot.summary.operation.value}
    return Snapshot.from_fields(snapshot.snapshot_id, snapshot.parent_snapshot_id, snapshot.timestamp_ms, summary)


def _ref(name: str, ref: SnapshotRef) -> Ref:
    return Ref(
        name,
        ref.snapshot_ref_type.value.upper(),
        ref.snapshot_id,
        max_age=optional_span(ref.max_ref_age_ms),
        min_snapshots=ref.min_snapshots_to_keep,
        max_snapshot_age=optional_span(ref.max_snapshot_age_ms),
    )
