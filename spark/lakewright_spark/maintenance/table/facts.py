"""What a table's metadata says of it, as far as it decides which jobs are due; no file of the table is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef

from lakewright_spark.errors import TableUnreadableError
from lakewright_spark.iceberg_time import instant_of, optional_span
from lakewright_spark.maintenance.switches import switched_off
from lakewright_spark.maintenance.table.expirable import Ref, Snapshot
from lakewright_spark.table_identifier import TableIdentifier


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """A table as its metadata had it. Times are UTC."""

    table: TableIdentifier
    uuid: str
    properties: Mapping[str, str]
    location: str = ""
    places: frozenset[str] = frozenset()
    """The location and every other folder that the metadata names for files of the table."""
    snapshots: tuple[Snapshot, ...] = ()
    refs: tuple[Ref, ...] = ()
    snapshot: int | None = None
    """The current one; None for a table that was never written."""
    changed_at: datetime | None = None
    """When rows last came or went; rewritten files are no change."""
    touched_at: datetime
    """When anything about it last changed."""
    data_files: int | None = None
    """None where the last commit did not say."""
    data_bytes: int | None = None
    delete_files: int | None = None

    def without_history(self) -> TableFacts:
        """Return what is needed once it is decided which jobs are due: a plan has the facts of every table."""
        return replace(self, properties={}, places=frozenset(), snapshots=(), refs=())

    def only_places(self) -> TableFacts:
        """Return what tells whether locations overlap."""
        return replace(self, properties={}, snapshots=(), refs=())

    @property
    def keeps_garbage(self) -> bool:
        """Whether `gc.enabled` forbids to delete files."""
        return switched_off(self.properties, "gc.enabled")


def table_facts(table: TableIdentifier, loaded: Table) -> TableFacts:
    """Return the facts of a table that PyIceberg loaded. Raises TableUnreadableError."""
    metadata = loaded.metadata
    _check_snapshots(metadata)
    current = loaded.current_snapshot()
    totals = current.summary.additional_properties if current and current.summary else {}
    return TableFacts(
        table=table,
        uuid=str(metadata.table_uuid),
        properties=dict(metadata.properties),
        location=metadata.location,
        places=frozenset(_places(metadata)),
        snapshots=tuple(
            Snapshot.of(
                one.snapshot_id,
                one.parent_snapshot_id,
                one.timestamp_ms,
                one.summary.additional_properties if one.summary else {},
            )
            for one in metadata.snapshots
        ),
        refs=tuple(_ref(name, ref) for name, ref in metadata.refs.items()),
        snapshot=current.snapshot_id if current else None,
        changed_at=max(_changes(loaded), default=None),
        touched_at=instant_of(metadata.last_updated_ms),
        data_files=_number(totals.get("total-data-files")),
        data_bytes=_number(totals.get("total-files-size")),
        delete_files=_number(totals.get("total-delete-files")),
    )


def _check_snapshots(metadata: TableMetadata) -> None:
    """Raise TableUnreadableError if the current snapshot, a branch or a tag is one that the metadata does not have."""
    there = {one.snapshot_id for one in metadata.snapshots}
    lost = [
        f"{ref.snapshot_ref_type.value} {name} refers to snapshot {ref.snapshot_id}, which is not there"
        for name, ref in metadata.refs.items()
        if ref.snapshot_id not in there
    ]
    if metadata.current_snapshot_id is not None and metadata.current_snapshot_id not in there:
        lost.insert(0, f"its current snapshot {metadata.current_snapshot_id} is not there")
    if lost:
        raise TableUnreadableError(f"its metadata contradicts itself: {'; '.join(lost)}")


_PATHS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


def _places(metadata: TableMetadata) -> Iterator[str]:
    yield metadata.location
    yield from (metadata.properties[key] for key in _PATHS if key in metadata.properties)
    # A table whose location was changed has older files where it was before.
    yield from (one.manifest_list.rpartition("/")[0] for one in metadata.snapshots)


def _changes(loaded: Table) -> Iterator[datetime]:
    for one in loaded.metadata.snapshots:
        if one.summary is None or one.summary.operation.value != "replace":
            yield instant_of(one.timestamp_ms)


def _ref(name: str, ref: SnapshotRef) -> Ref:
    return Ref(
        name,
        ref.snapshot_ref_type.value.upper(),
        ref.snapshot_id,
        max_age=optional_span(ref.max_ref_age_ms),
        min_snapshots=ref.min_snapshots_to_keep,
        max_snapshot_age=optional_span(ref.max_snapshot_age_ms),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
