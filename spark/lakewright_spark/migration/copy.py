"""Copy a table to another location: its store or this process copies the data, this process rewrites the metadata.

Manifests, manifest lists and the metadata file have the full address of every file, so they are written again with the
new addresses. Every file keeps its name and its path below the table's location. Files that the new location has are
not copied again: object stores show a file only when it is complete.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import fastavro
from pyiceberg.table import Table

from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.copy_stores import CopyStore
from lakewright_spark.migration.delete_files import POSITION_DELETES, relocate_delete_file, relocate_entry

Json = dict[str, Any]

LOCATION_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})
_REMOVED = 2
"""Value of `status` of a file that a snapshot removed."""


@dataclass
class _Relocation:
    """Addresses of files below one location, and their addresses below another."""

    source: str
    target: str
    copied_files: dict[str, str] = field(default_factory=dict[str, str])
    """Files whose content does not change, by source address."""
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """Bytes of these files, by source address."""

    def move(self, path: str) -> str:
        """Return the new address of a file.

        Raises:
            MigrationError: The file is not below the table's location.
        """
        if not path.startswith(f"{self.source}/"):
            raise MigrationError(f"{path} is not below the table's location {self.source}, so it cannot be copied")
        return self.target + path.removeprefix(self.source)

    def copy(self, path: str, size: int) -> str:
        """Return the new address of a file, and add it to the files to copy."""
        self.copied_files[path], self.sizes[path] = self.move(path), size
        return self.copied_files[path]


def copy_table(table: Table, target: str, store: CopyStore, properties: Mapping[str, str] = NO_PROPERTIES) -> str:
    """Copy all files of a table's current metadata to a location, and return the address of the metadata file there.

    A call for the same metadata continues an earlier call. A call for later metadata copies the new files alone. The
    copy has every snapshot, branch, tag, schema and ID; earlier metadata files are not copied.

    Args:
        table: The table.
        target: Location of the copy.
        store: Stores of both locations.
        properties: Properties of the copy that replace or extend the table's.

    Raises:
        MigrationError: The table has files outside of its location.
    """
    source = table.metadata.location.rstrip("/")
    relocation = _Relocation(source, target.rstrip("/"))
    existing = store.list_files(target)
    metadata = _read_json(store.read(table.metadata_location), table.metadata_location)
    new_metadata = relocate_metadata(metadata, relocation)
    new_metadata["properties"] = {**new_metadata.get("properties", {}), **properties}
    location = name_metadata(table.metadata_location, relocation.target)
    snapshots = [snapshot for snapshot in metadata.get("snapshots", []) if "manifest-list" in snapshot]
    snapshots.sort(key=lambda snapshot: (snapshot.get("sequence-number", 0), snapshot["timestamp-ms"]))
    lists = [snapshot["manifest-list"] for snapshot in snapshots]
    # The last copied list shares most manifests with a later list.
    copied_lists = [path for path in lists if relocation.move(path) in existing]
    new_lists = sorted({*lists} - {*copied_lists})
    manifests = _ManifestCopy(relocation, store, dict(existing))
    if new_lists and copied_lists:
        manifests.skip_list(copied_lists[-1])
    written_lists = {relocation.move(path): manifests.copy_list(path) for path in new_lists}
    # A file of another size is what an interrupted copy left.
    sizes = relocation.sizes
    pending = {old: new for old, new in relocation.copied_files.items() if existing.get(new) != sizes[old]}
    # A killed copy may have left copies that it did not compare.
    store.compare({old: new for old, new in relocation.copied_files.items() if old not in pending})
    store.copy(pending)
    # Lists come after their manifests and data, so that an existing list has complete files.
    for path, content in written_lists.items():
        store.write(path, content)
    if location not in existing:
        store.write(location, json.dumps(new_metadata, separators=(",", ":")).encode())
    return location


def name_metadata(source: str, target: str) -> str:
    """Return the address of the copy of a metadata file for a table's new location."""
    number = source.rpartition("/")[2].partition("-")[0].lstrip("v").partition(".")[0]
    name = f"{int(number) if number.isdecimal() else 0:05}-{uuid5(NAMESPACE_URL, source)}"
    return f"{target.rstrip('/')}/metadata/{name}.metadata.json"


def list_copied_files(metadata_location: str, store: CopyStore) -> set[str]:
    """Return the addresses of all files that the metadata file of a copy refers to, and its own address."""
    metadata = _read_json(store.read_copy(metadata_location), metadata_location)
    lists = [snapshot["manifest-list"] for snapshot in metadata.get("snapshots", [])]
    statistics = [*metadata.get("statistics", []), *metadata.get("partition-statistics", [])]
    manifests = {record["manifest_path"] for path in lists for record in _read_avro(store.read_copy(path))[1]}
    data = {
        record["data_file"]["file_path"]
        for path in manifests
        for record in _read_avro(store.read_copy(path))[1]
        if record["status"] != _REMOVED
    }
    return {metadata_location, *lists, *manifests, *data, *(file["statistics-path"] for file in statistics)}


def relocate_metadata(metadata: Json, relocation: _Relocation) -> Json:
    """Return a table's metadata with the new addresses, and collect its statistics files to copy."""
    document = json.loads(json.dumps(metadata))
    document["location"] = relocation.target
    document["metadata-log"] = []
    for snapshot in document.get("snapshots", []):
        if "manifest-list" not in snapshot:
            raise MigrationError(
                "a snapshot has manifests without a list, as format version 1 allows; rewrite the table"
            )
        snapshot["manifest-list"] = relocation.move(snapshot["manifest-list"])
    for section in ("statistics", "partition-statistics"):
        for statistics in document.get(section, []):
            statistics["statistics-path"] = relocation.copy(
                statistics["statistics-path"], statistics["file-size-in-bytes"]
            )
    properties = document.get("properties", {})
    for name in LOCATION_PROPERTIES:
        if name in properties:
            properties[name] = relocation.move(properties[name].rstrip("/"))
    return document


def find_copy_obstacles(table: Table) -> list[str]:
    """Return the reason why a table cannot be copied, if its metadata shows a reason."""
    outside = [
        name
        for name in LOCATION_PROPERTIES
        if name in table.properties and not table.properties[name].startswith(f"{table.metadata.location}/")
    ]
    return [f"files outside of its location ({', '.join(outside)})"] if outside else []


@dataclass
class _ManifestCopy:
    """Writes manifests and delete files with the new addresses."""

    relocation: _Relocation
    store: CopyStore
    sizes: dict[str, int]
    """Bytes of files at the new location, by address."""
    copied_manifests: set[str] = field(default_factory=set[str])
    """Manifests of the source whose files are copied, or are about to be."""

    def skip_list(self, manifest_list: str) -> None:
        """Read no manifest of a list that the new location has: their files were copied before the list."""
        records = _read_avro(self.store.read(manifest_list))[1]
        self.copied_manifests.update(record["manifest_path"] for record in records)

    def copy_list(self, manifest_list: str) -> bytes:
        """Write the manifests of a list, and return the content of the new list."""
        header, records = _read_avro(self.store.read(manifest_list))
        for record in records:
            old_path = record["manifest_path"]
            path = self.relocation.move(old_path)
            if old_path not in self.copied_manifests or path not in self.sizes:
                self._write(path, self._relocate(self.store.read(old_path)))
                self.copied_manifests.add(old_path)
            record["manifest_path"], record["manifest_length"] = path, self.sizes[path]
        return _write_avro(header, records)

    def _relocate(self, content: bytes) -> bytes:
        header, records = _read_avro(content)
        for record in records:
            file, is_removed = record["data_file"], record["status"] == _REMOVED
            if is_removed:  # it may no longer exist
                file["file_path"] = self.relocation.move(file["file_path"])
            elif file.get("content") == POSITION_DELETES:
                self._copy_deletes(file)
            else:
                file["file_path"] = self.relocation.copy(file["file_path"], file["file_size_in_bytes"])
        return _write_avro(header, records)

    def _copy_deletes(self, file: Json) -> None:
        path, move = self.relocation.move(file["file_path"]), self.relocation.move
        if path not in self.sizes:
            self._write(path, relocate_delete_file(file, self.store.read(file["file_path"]), move))
        relocate_entry(file, self.sizes[path], move)
        file["file_path"] = path

    def _write(self, path: str, content: bytes) -> None:
        if path not in self.sizes:
            self.store.write(path, content)
            self.sizes[path] = len(content)


def _read_avro(content: bytes) -> tuple[Mapping[str, str], list[Json]]:
    try:
        reader = fastavro.reader(io.BytesIO(content))
        return reader.metadata, list(reader)
    except (ValueError, OverflowError, EOFError) as error:  # such as an encrypted file
        raise MigrationError(f"a manifest or its list cannot be read as Avro: {error}") from error


def _write_avro(header: Mapping[str, str], records: Collection[Json]) -> bytes:
    output = io.BytesIO()
    schema = json.loads(header["avro.schema"])
    metadata = {key: value for key, value in header.items() if not key.startswith("avro.")}
    fastavro.writer(output, schema, records, codec="deflate", metadata=metadata)
    return output.getvalue()


def _read_json(content: bytes, location: str) -> Json:
    is_compressed = location.endswith((".gz.metadata.json", ".metadata.json.gz"))
    return json.loads(gzip.decompress(content) if is_compressed else content)
