"""Size of a table, counted from the manifests of all its snapshots. Each manifest is read once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True, kw_only=True)
class TableSize:
    """Bytes and files of data and of deletes; metadata files are not counted."""

    bytes_live: int = 0
    """Bytes of files that the current snapshot, a branch or a tag refers to."""
    bytes_reclaimable: int = 0
    """Bytes of files that only older snapshots refer to. Expiration of these snapshots would free them."""
    bytes_current: int = 0
    """Bytes of files that the current snapshot refers to."""
    files: int = 0
    """Number of files that the current snapshot, a branch or a tag refers to."""
    snapshots: int = 0


def measure(table: Table) -> TableSize:
    """Measure a table from the manifest lists of all snapshots and their manifests.

    Raises OSError if a manifest cannot be read.
    """
    metadata = table.metadata
    manifests: dict[str, dict[str, int]] = {}
    files_by_snapshot = {snapshot.snapshot_id: _files(table, snapshot, manifests) for snapshot in metadata.snapshots}
    current = files_by_snapshot.get(metadata.current_snapshot_id or 0, {})
    live = _together([current, *(files_by_snapshot.get(ref.snapshot_id, {}) for ref in metadata.refs.values())])
    every = _together(files_by_snapshot.values())
    return TableSize(
        bytes_live=sum(live.values()),
        bytes_reclaimable=sum(size for path, size in every.items() if path not in live),
        bytes_current=sum(current.values()),
        files=len(live),
        snapshots=len(metadata.snapshots),
    )


def _files(table: Table, snapshot: Snapshot, manifests: dict[str, dict[str, int]]) -> dict[str, int]:
    """Return the bytes of each file that the snapshot refers to, by address. `manifests` caches the files read."""
    lists: list[ManifestFile] = snapshot.manifests(table.io)
    for manifest in lists:
        if manifest.manifest_path not in manifests:
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            # Several deletion vectors share a file: its address counts once.
            manifests[manifest.manifest_path] = {
                entry.data_file.file_path: entry.data_file.file_size_in_bytes for entry in entries
            }
    return _together(manifests[manifest.manifest_path] for manifest in lists)


def _together(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    return {path: size for part in parts for path, size in part.items()}
