"""The files of a table with one snapshot: a data file, its manifest and the manifest list (Iceberg specification)."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCHEMA: Mapping[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "n", "required": False, "type": "long"}],
}
"""Schema of the table: one column `n`."""

ROWS = 1
DATA_FILE = base64.b64decode(
    "UEFSMRUAFRwVHCwVAhUAFQYVBhwAAAACAAAAAgEqAAAAAAAAABUEGSw1ABgGc2NoZW1hFQIAFQQlAhgBblUCABYCGRwZHCYAHBUE"
    "GSUGABkYAW4VABYCFkIWQiYISRwVABUAFQIAPCkGGSYAAgAAABZCFgImCBZCACggcGFycXVldC1jcHAtYXJyb3cgdmVyc2lvbiAy"
    "Ni4wLjEZHBwAAAB8AAAAUEFSMQ=="
)
"""A Parquet file with one row, n = 42, whose column has the field ID 1."""


@dataclass(frozen=True)
class ProbeSnapshot:
    """The files of a snapshot, and the entry of the table's metadata."""

    data_path: str
    manifest_path: str
    manifest: bytes
    manifest_list_path: str
    manifest_list: bytes
    entry: dict[str, Any]


def make_snapshot(metadata: Mapping[str, Any], snapshot_id: int, timestamp_ms: int) -> ProbeSnapshot:
    """Return a snapshot that appends the data file to an empty, unpartitioned table of format version 1, 2 or 3."""
    version, location = int(metadata["format-version"]), str(metadata["location"]).rstrip("/")
    sequence = 0 if version == 1 else int(metadata.get("last-sequence-number") or 0) + 1
    first_row = int(metadata.get("next-row-id") or 0)
    data_path = f"{location}/data/{snapshot_id}.parquet"
    manifest_path = f"{location}/metadata/{snapshot_id}-m0.avro"
    manifest = _encode_manifest(version, snapshot_id, data_path)
    entry = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": timestamp_ms,
        "manifest-list": f"{location}/metadata/snap-{snapshot_id}.avro",
        "schema-id": 0,
        "summary": {"operation": "append", "added-data-files": "1", "added-records": str(ROWS)},
        **({"sequence-number": sequence} if version > 1 else {}),
        **({"first-row-id": first_row, "added-rows": ROWS} if version > 2 else {}),
    }
    manifest_list = _encode_manifest_list(version, entry, manifest_path, len(manifest))
    return ProbeSnapshot(data_path, manifest_path, manifest, str(entry["manifest-list"]), manifest_list, entry)


def list_data_paths(manifest: bytes) -> list[str]:
    """Return the paths of the data files in a manifest."""
    return [str(record["data_file"]["file_path"]) for record in _read(manifest)]


def list_manifest_paths(manifest_list: bytes) -> list[str]:
    """Return the paths of the manifests in a manifest list."""
    return [str(record["manifest_path"]) for record in _read(manifest_list)]


def _encode_manifest(version: int, snapshot_id: int, data_path: str) -> bytes:
    data_file: dict[str, Any] = {
        "content": 0,
        "file_path": data_path,
        "file_format": "PARQUET",
        "partition": {},
        "record_count": ROWS,
        "file_size_in_bytes": len(DATA_FILE),
        "block_size_in_bytes": 67_108_864,
    }
    newer = [
        _make_field("sequence_number", 3, "long", optional=True),
        _make_field("file_sequence_number", 4, "long", optional=True),
    ]
    fields = [
        _make_field("content", 134, "int"),
        _make_field("file_path", 100, "string"),
        _make_field("file_format", 101, "string"),
        _make_field("partition", 102, {"type": "record", "name": "r102", "fields": []}),
        _make_field("record_count", 103, "long"),
        _make_field("file_size_in_bytes", 104, "long"),
        _make_field("block_size_in_bytes", 105, "long"),
    ]
    fields = fields[1:] if version == 1 else fields[:-1]
    schema = _make_record(
        "manifest_entry",
        [
            _make_field("status", 0, "int"),
            _make_field("snapshot_id", 1, "long", optional=version > 1),
            *(newer if version > 1 else []),
            _make_field("data_file", 2, _make_record("r2", fields)),
        ],
    )
    header = {
        "schema": _to_json(SCHEMA),
        "schema-id": "0",
        "partition-spec": "[]",
        "partition-spec-id": "0",
        "format-version": str(version),
        **({"content": "data"} if version > 1 else {}),
    }
    names = {str(part["name"]) for part in fields}
    record = {name: value for name, value in data_file.items() if name in names}
    return _write(schema, {"status": 1, "snapshot_id": snapshot_id, "data_file": record}, header)


def _encode_manifest_list(version: int, entry: Mapping[str, Any], manifest_path: str, length: int) -> bytes:
    sequence = entry.get("sequence-number", 0)
    values: list[tuple[dict[str, Any], Any]] = [
        (_make_field("manifest_path", 500, "string"), manifest_path),
        (_make_field("manifest_length", 501, "long"), length),
        (_make_field("partition_spec_id", 502, "int"), 0),
        *([(_make_field("content", 517, "int"), 0)] if version > 1 else []),
        *([(_make_field("sequence_number", 515, "long"), sequence)] if version > 1 else []),
        *([(_make_field("min_sequence_number", 516, "long"), sequence)] if version > 1 else []),
        (_make_field("added_snapshot_id", 503, "long"), entry["snapshot-id"]),
        (_make_field("added_files_count", 504, "int"), 1),
        (_make_field("existing_files_count", 505, "int"), 0),
        (_make_field("deleted_files_count", 506, "int"), 0),
        (_make_field("added_rows_count", 512, "long"), ROWS),
        (_make_field("existing_rows_count", 513, "long"), 0),
        (_make_field("deleted_rows_count", 514, "long"), 0),
        *([(_make_field("first_row_id", 520, "long", optional=True), entry["first-row-id"])] if version > 2 else []),
    ]
    schema = _make_record("manifest_file", [part for part, _ in values])
    header = {"format-version": str(version), "snapshot-id": str(entry["snapshot-id"])}
    return _write(schema, {part["name"]: value for part, value in values}, header)


def _make_record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def _make_field(name: str, field_id: int, kind: Any, *, optional: bool = False) -> dict[str, Any]:
    if optional:
        return {"name": name, "field-id": field_id, "type": ["null", kind], "default": None}
    return {"name": name, "field-id": field_id, "type": kind}


def _to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _write(schema: Mapping[str, Any], record: Mapping[str, Any], header: Mapping[str, str]) -> bytes:
    import fastavro  # noqa: PLC0415 - slow to load

    file = io.BytesIO()
    fastavro.writer(file, schema, [record], metadata=header)
    return file.getvalue()


def _read(content: bytes) -> list[dict[str, Any]]:
    import fastavro  # noqa: PLC0415 - slow to load

    return list(fastavro.reader(io.BytesIO(content)))
