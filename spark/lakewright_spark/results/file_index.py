"""FileIndex: the files of a result in a snapshot, in the order of their rows, and the files that a page needs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of
from pyiceberg.utils.concurrent import ExecutorFactory

from lakewright_spark.errors import RowsDeletedError


@dataclass(frozen=True)
class FileIndex:
    """The files of one snapshot, sorted by (sequence number, path): the order in which their rows were committed."""

    table: str
    """The table's UUID."""
    snapshot: int | None
    """None for a table without a snapshot."""
    files: tuple[tuple[int, DataFile], ...]
    """Sequence numbers, and files without the statistics of their columns."""

    @cached_property
    def ends(self) -> list[int]:
        """The number of rows up to the end of each file."""
        return list(accumulate(file.record_count for _, file in self.files))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.ends[-1] if self.ends else 0

    def page(self, offset: int, limit: int | None = None) -> tuple[list[FileScanTask], int]:
        """Return the files with rows `offset` to `offset + limit`, and the number of rows before the first file."""
        end = self.rows if limit is None else min(offset + limit, self.rows)
        if offset >= end:
            return [], offset
        first = bisect_right(self.ends, offset)
        last = bisect_right(self.ends, end - 1)
        tasks = [FileScanTask(file) for _, file in self.files[first : last + 1]]
        return tasks, self.ends[first - 1] if first else 0


def plan(table: Table, previous: FileIndex | None = None) -> FileIndex:
    """Return the index of the table's current snapshot.

    The files of `previous` are reused if only appends followed; then only the manifests of the appends are read. Raises
    RowsDeletedError for a table with delete files.
    """
    current = table.current_snapshot()
    identity = str(table.metadata.table_uuid)
    if current is None:
        return FileIndex(identity, None, ())
    if previous is not None and previous.table == identity:
        if previous.snapshot == current.snapshot_id:
            return previous
        if (since := appends_since(table, previous.snapshot)) is not None:
            added = _sort_files(_read_added_entries(table, since))
            # Sequence numbers only grow, so new files come after earlier files.
            return FileIndex(identity, current.snapshot_id, (*previous.files, *added))
    return FileIndex(identity, current.snapshot_id, tuple(_sort_files(_read_live_entries(table, current))))


def appends_since(table: Table, snapshot: int | None) -> list[Snapshot] | None:
    """Return the snapshots after `snapshot`, newest first; None if it is not an ancestor or rows may have moved."""
    since: list[Snapshot] = []
    for ancestor in ancestors_of(table.current_snapshot(), table.metadata):
        if ancestor.snapshot_id == snapshot:
            return since
        if not _keeps_rows(ancestor):
            return None
        since.append(ancestor)
    complete = not since or since[-1].parent_snapshot_id is None
    return since if snapshot is None and complete else None


def _keeps_rows(snapshot: Snapshot) -> bool:
    summary = snapshot.summary
    if summary is None:
        return False
    if summary.operation == Operation.APPEND:
        return True
    # Manifests that were rewritten: the files are the same.
    return summary.operation == Operation.REPLACE and not any(
        int(summary[key] or 0) for key in ("added-data-files", "deleted-data-files", "added-delete-files")
    )


def _read_live_entries(table: Table, snapshot: Snapshot) -> Iterator[ManifestEntry]:
    manifests = snapshot.manifests(table.io)
    for manifest in manifests:
        if manifest.content == ManifestContent.DELETES and (
            manifest.existing_files_count or manifest.added_files_count
        ):
            raise RowsDeletedError(
                f"{'.'.join(table.name())} has delete files; results are expected to be appended only"
            )
    yield from _read_entries(table, (m for m in manifests if m.content == ManifestContent.DATA))


def _read_added_entries(table: Table, since: list[Snapshot]) -> Iterator[ManifestEntry]:
    numbers = {snapshot.snapshot_id for snapshot in since}
    manifests = {
        manifest
        for snapshot in since
        for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DATA and manifest.added_snapshot_id in numbers
    }
    for entry in _read_entries(table, manifests):
        if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id in numbers:
            yield entry


def _read_entries(table: Table, manifests: Iterable[ManifestFile]) -> Iterator[ManifestEntry]:
    io = table.io

    def fetch(manifest: ManifestFile) -> list[ManifestEntry]:
        return manifest.fetch_manifest_entry(io)

    for entries in ExecutorFactory.get_or_create().map(fetch, manifests):
        yield from entries


def _sort_files(entries: Iterable[ManifestEntry]) -> list[tuple[int, DataFile]]:
    files = [(entry.sequence_number or 0, _drop_statistics(entry.data_file)) for entry in entries]
    return sorted(files, key=lambda entry: (entry[0], entry[1].file_path))


def _drop_statistics(file: DataFile) -> DataFile:
    """Return the fields that reading needs. Bounds and counts of every column would fill the memory without use."""
    slim_file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.file_path,
        file_format=file.file_format,
        partition=file.partition,
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
    )
    slim_file.spec_id = file.spec_id
    return slim_file
