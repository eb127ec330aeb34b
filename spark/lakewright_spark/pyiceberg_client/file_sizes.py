"""FileSizes: bytes of the files of many manifests, each file counted once, in a few bytes of memory per file."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b

import pyarrow as pa
from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
)
from pyiceberg.table import Table


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


class Reach(IntEnum):
    """Which snapshots refer to a file. A larger value includes the smaller values."""

    OLD = 0
    """Only snapshots that are no longer the head of a branch or a tag."""
    LIVE = 1
    """A branch or a tag."""
    CURRENT = 2


def read_files(table: Table, manifest_path: str) -> Iterator[tuple[str, int]]:
    """Yield address and bytes of each file that a manifest refers to. Raises OSError if it cannot be read.

    `ManifestFile.fetch_manifest_entry` returns a list, whose column statistics take kilobytes per file.
    """
    with AvroFile[ManifestEntry](
        table.io.new_input(manifest_path),
        MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as entries:
        for entry in entries:
            if entry.status != ManifestEntryStatus.DELETED:
                yield entry.data_file.file_path, entry.data_file.file_size_in_bytes


_PENDING = 1_000_000
"""Files that are collected before repeated files are merged: about 20 MB."""


class FileSizes:
    """Files by a hash of their address, with their bytes and their largest reach.

    A million files take 24 MB. Two of a million addresses have the same hash of 64 bits with a probability of 3e-8.
    """

    def __init__(self) -> None:
        """Begin without files."""
        self._merged = _to_table(array("q"), array("q"), array("q"))
        self._clear()

    def add(self, path: str, size: int, reach: Reach) -> None:
        """Add a file. Several deletion vectors share a file, and several manifests a data file: it counts once."""
        self._keys.append(int.from_bytes(blake2b(path.encode(), digest_size=8).digest(), "little", signed=True))
        self._sizes.append(size)
        self._reaches.append(reach)
        if len(self._keys) >= _PENDING:
            self._merge()

    def total(self, snapshots: int) -> TableSize:
        """Return the size of a table with this number of snapshots."""
        self._merge()
        by_reach = self._merged.group_by("reach", use_threads=False).aggregate([("size", "sum"), ("key", "count")])
        rows = {Reach(row["reach"]): row for row in by_reach.to_pylist()}
        live = [row for reach, row in rows.items() if reach >= Reach.LIVE]
        return TableSize(
            bytes_live=sum(row["size_sum"] for row in live),
            bytes_reclaimable=rows[Reach.OLD]["size_sum"] if Reach.OLD in rows else 0,
            bytes_current=rows[Reach.CURRENT]["size_sum"] if Reach.CURRENT in rows else 0,
            files=sum(row["key_count"] for row in live),
            snapshots=snapshots,
        )

    def _merge(self) -> None:
        pending = _to_table(self._keys, self._sizes, self._reaches)
        self._clear()
        groups = pa.concat_tables([self._merged, pending]).group_by("key", use_threads=False)
        merged = groups.aggregate([("size", "max"), ("reach", "max")])
        self._merged = pa.table({name: merged[column] for name, column in _COLUMNS.items()})

    def _clear(self) -> None:
        self._keys, self._sizes, self._reaches = array("q"), array("q"), array("q")


_COLUMNS = {"key": "key", "size": "size_max", "reach": "reach_max"}
"""Columns of the merged files, and of the aggregation that merges them."""


def _to_table(keys: array[int], sizes: array[int], reaches: array[int]) -> pa.Table:
    columns = {"key": keys, "size": sizes, "reach": reaches}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
