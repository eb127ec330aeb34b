"""Copy a table to another location of the same store: its service copies the data, this process rewrites the metadata.

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
from typing import Any, Protocol, cast
from uuid import NAMESPACE_URL, uuid5

import fastavro
import s3fs
from pyiceberg.table import Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import MigrationError

Json = dict[str, Any]

_POSITION_DELETES = 1
"""Value of `content` of a file with positions of deleted rows, which has the addresses of data files inside."""
_LOCATION_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
BATCH = 64
"""Files that are copied at the same time."""


class CopyStore(Protocol):
    """An object store that copies files itself."""

    def list_files(self, location: str) -> Mapping[str, int]:
        """Return the bytes of each file below a location, by address."""
        ...

    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files by source address. No bytes pass through this process."""
        ...

    def read(self, location: str) -> bytes:
        """Return the content of a file."""
        ...

    def write(self, location: str, content: bytes) -> None:
        """Write a file, in one step."""
        ...


@dataclass
class S3Store:
    """An S3 store, used with keys that may read the source and write the target."""

    files: s3fs.S3FileSystem

    @classmethod
    def open(cls, config: CatalogConfig, warehouse: str) -> S3Store:
        """Open the store of a warehouse whose configuration has S3 keys.

        Raises:
            MigrationError: The warehouse has no keys.
            IdentityError: A key cannot be read.
        """
        settings = config.warehouse(warehouse)
        if settings.s3_keys is None:
            raise MigrationError(
                f"warehouse {warehouse} of --from: expected `s3_keys`, a key that may read the source's files and write"
                " to the target's locations; found none. Tables are copied with it"
            )
        secrets = settings.s3_keys.secret_options()
        files = s3fs.S3FileSystem(
            key=secrets["s3.access-key-id"],
            secret=secrets["s3.secret-access-key"],
            token=secrets.get("s3.session-token"),
            endpoint_url=settings.s3.get("s3.endpoint"),
            client_kwargs={"region_name": settings.s3.get("s3.region") or settings.s3.get("client.region")},
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        return cls(files)

    def list_files(self, location: str) -> Mapping[str, int]:
        """Return the bytes of each file below a location, by address."""
        scheme = location.partition("://")[0]
        found_files = cast(dict[str, Json], self.files.find(location, detail=True))
        return {f"{scheme}://{path}": file["size"] for path, file in found_files.items()}

    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files with CopyObject, in parts above 5 GB. Compare sizes and, if both are MD5 sums, ETags."""
        if not pairs:
            return
        self.files.copy(list(pairs), list(pairs.values()), batch_size=BATCH)
        for source, target in pairs.items():
            one, other = self.files.info(source), self.files.info(target)
            one_tag, other_tag = (str(file.get("ETag", "")).strip('"') for file in (one, other))
            # The tag of a file that was written in parts depends on its parts.
            is_comparable = len(one_tag) == len(other_tag) == 32
            if one["size"] != other["size"] or (is_comparable and one_tag != other_tag):
                raise MigrationError(f"{target}: expected a copy of {source} with its size and checksum")

    def read(self, location: str) -> bytes:
        """Return the content of a file."""
        return self.files.cat_file(location)

    def write(self, location: str, content: bytes) -> None:
        """Write a file, in one step."""
        self.files.pipe_file(location, content)


@dataclass
class _Relocation:
    """Addresses of files below one location, and their addresses below another."""

    source: str
    target: str
    copied_files: dict[str, str] = field(default_factory=dict[str, str])
    """Files whose content does not change, by source address."""

    def move(self, path: str) -> str:
        """Return the new address of a file.

        Raises:
            MigrationError: The file is not below the table's location.
        """
        if not path.startswith(f"{self.source}/"):
            raise MigrationError(f"{path} is not below the table's location {self.source}, so it cannot be copied")
        return self.target + path.removeprefix(self.source)

    def copy(self, path: str) -> str:
        """Return the new address of a file, and add it to the files to copy."""
        self.copied_files[path] = self.move(path)
        return self.copied_files[path]


def copy_table(table: Table, target: str, store: CopyStore) -> str:
    """Copy all files of a table's current metadata to a location, and return the address of the metadata file there.

    A call for the same metadata continues an earlier call. A call for later metadata copies the new files alone. The
    copy has every snapshot, branch, tag, schema and ID; earlier metadata files are not copied.

    Raises:
        MigrationError: The table has files outside of its location, or position deletes.
    """
    source = table.metadata.location.rstrip("/")
    relocation = _Relocation(source, target.rstrip("/"))
    existing = store.list_files(target)
    metadata = _read_json(store.read(table.metadata_location), table.metadata_location)
    new_metadata = relocate_metadata(metadata, relocation)
    number = table.metadata_location.rpartition("/")[2].partition("-")[0].lstrip("v").partition(".")[0]
    name = f"{int(number) if number.isdecimal() else 0:05}-{uuid5(NAMESPACE_URL, table.metadata_location)}"
    location = f"{relocation.target}/metadata/{name}.metadata.json"
    lists = {snapshot["manifest-list"] for snapshot in metadata.get("snapshots", []) if "manifest-list" in snapshot}
    manifest_sizes = dict(existing)
    written_lists: dict[str, bytes] = {}
    for manifest_list in sorted(lists):
        if relocation.move(manifest_list) in existing:
            continue
        written_lists[relocation.move(manifest_list)] = _copy_manifests(
            manifest_list, relocation, store, manifest_sizes
        )
    pending = {old: new for old, new in relocation.copied_files.items() if new not in existing}
    store.copy(pending)
    # Lists come after their manifests and data, so that an existing list has complete files.
    for path, content in written_lists.items():
        store.write(path, content)
    if location not in existing:
        store.write(location, json.dumps(new_metadata, separators=(",", ":")).encode())
    return location


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
            statistics["statistics-path"] = relocation.copy(statistics["statistics-path"])
    properties = document.get("properties", {})
    for name in _LOCATION_PROPERTIES:
        if name in properties:
            properties[name] = relocation.move(properties[name].rstrip("/"))
    return document


def find_copy_obstacles(table: Table) -> list[str]:
    """Return the reason why a table cannot be copied, if its metadata shows a reason."""
    obstacles: list[str] = []
    snapshot = table.current_snapshot()
    summary = snapshot.summary if snapshot else None
    if summary and int(summary["total-position-deletes"] or 0):
        obstacles.append("position deletes; compact the table first")
    outside = [
        name
        for name in _LOCATION_PROPERTIES
        if name in table.properties and not table.properties[name].startswith(f"{table.metadata.location}/")
    ]
    if outside:
        obstacles.append(f"files outside of its location ({', '.join(outside)})")
    return obstacles


def _copy_manifests(manifest_list: str, relocation: _Relocation, store: CopyStore, sizes: dict[str, int]) -> bytes:
    """Write the manifests of a list, and return the content of the new list."""
    header, records = _read_avro(store.read(manifest_list))
    for record in records:
        path = relocation.move(record["manifest_path"])
        content = _relocate_manifest(store.read(record["manifest_path"]), relocation)
        if path not in sizes:
            store.write(path, content)
            sizes[path] = len(content)
        record["manifest_path"], record["manifest_length"] = path, sizes[path]
    return _write_avro(header, records)


def _relocate_manifest(content: bytes, relocation: _Relocation) -> bytes:
    header, records = _read_avro(content)
    for record in records:
        file = record["data_file"]
        if file.get("content") == _POSITION_DELETES:
            raise MigrationError(
                f"{file['file_path']} has positions of deleted rows, with the addresses of data files inside, so it "
                "cannot be copied. Compact the table and expire its old snapshots first"
            )
        # A removed file is listed as removed; it may no longer exist.
        is_removed = record["status"] == 2
        file["file_path"] = relocation.move(file["file_path"]) if is_removed else relocation.copy(file["file_path"])
    return _write_avro(header, records)


def _read_avro(content: bytes) -> tuple[Mapping[str, str], list[Json]]:
    reader = fastavro.reader(io.BytesIO(content))
    return reader.metadata, list(reader)


def _write_avro(header: Mapping[str, str], records: Collection[Json]) -> bytes:
    output = io.BytesIO()
    schema = json.loads(header["avro.schema"])
    metadata = {key: value for key, value in header.items() if not key.startswith("avro.")}
    fastavro.writer(output, schema, records, codec="deflate", metadata=metadata)
    return output.getvalue()


def _read_json(content: bytes, location: str) -> Json:
    is_compressed = location.endswith((".gz.metadata.json", ".metadata.json.gz"))
    return json.loads(gzip.decompress(content) if is_compressed else content)
