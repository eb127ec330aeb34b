"""Metadata documents of tables (Iceberg table spec, format versions 1 to 3): creation, storage form and files."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

from lakewright_sandbox.lakekeeper.catalog.metadata.binding import find_spec_fault
from lakewright_sandbox.lakekeeper.catalog.metadata.document_rules import (
    complete,
    find_document_fault,
    find_missing_key,
    list_version_1_refs,
)
from lakewright_sandbox.lakekeeper.catalog.metadata.fresh_ids import FreshIds
from lakewright_sandbox.lakekeeper.catalog.metadata.stored_rows import check_references
from lakewright_sandbox.lakekeeper.protocol.clock import new_id
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

Json = dict[str, Any]

FIRST_PARTITION_ID = 1000
OPTIONAL_WHEN_EMPTY = (
    "properties",
    "snapshots",
    "snapshot-log",
    "metadata-log",
    "statistics",
    "partition-statistics",
    "encryption-keys",
)


def empty_metadata(table_uuid: str, location: str, format_version: int, now_millis: int) -> Json:
    """Return a table without schema, for commits that bring everything themselves."""
    document: Json = {
        "format-version": format_version,
        "table-uuid": table_uuid,
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": now_millis,
        "last-column-id": 0,
        "schemas": [],
        "current-schema-id": -1,
        "partition-specs": [],
        "default-spec-id": -1,
        "last-partition-id": FIRST_PARTITION_ID - 1,
        "properties": {},
        "sort-orders": [],
        "default-sort-order-id": -1,
        "refs": {},
    }
    if format_version >= 3:
        document["next-row-id"] = 0
    return document


def new_metadata(
    table_uuid: str,
    location: str,
    format_version: int,
    now_millis: int,
    *,
    schema: Json,
    partition_spec: Json | None,
    write_order: Json | None,
    properties: dict[str, str],
) -> Json:
    """Return a new table, with new ids in schema, partition spec and sort order."""
    fresh = FreshIds()
    document = empty_metadata(table_uuid, location, format_version, now_millis)
    document["schemas"], document["current-schema-id"] = [fresh.schema(schema)], 0
    document["last-column-id"] = fresh.last
    spec = [
        _reassign_ids(field, fresh) | {"field-id": FIRST_PARTITION_ID + index}
        for index, field in enumerate((partition_spec or {}).get("fields", []))
    ]
    if fault := find_spec_fault(spec, document["schemas"][0]):
        raise ApiError(400, "CreateTableMetadataError", fault)
    document["partition-specs"], document["default-spec-id"] = [{"spec-id": 0, "fields": spec}], 0
    document["last-partition-id"] += len(spec)
    order = [_reassign_ids(field, fresh) for field in (write_order or {}).get("fields", [])]
    order_id = 1 if order else 0
    document["sort-orders"], document["default-sort-order-id"] = [{"order-id": order_id, "fields": order}], order_id
    document["properties"] = properties
    return document


def _reassign_ids(field: Json, fresh: FreshIds) -> Json:
    changed = dict(field)
    if "source-id" in field:
        changed["source-id"] = fresh.source(field["source-id"])
    if "source-ids" in field:
        changed["source-ids"] = [fresh.source(source) for source in field["source-ids"]]
    return changed


def to_stored_form(document: Json) -> Json:
    """Return the document as it is stored: without empty collections, with the legacy fields of version 1."""
    form = {key: value for key, value in document.items() if value or key not in OPTIONAL_WHEN_EMPTY}
    if form["format-version"] == 1:
        form.pop("last-sequence-number", None)
        form["refs"] = list_version_1_refs(form)
        form["schema"] = next(schema for schema in form["schemas"] if schema["schema-id"] == form["current-schema-id"])
        spec = next(entry for entry in form["partition-specs"] if entry["spec-id"] == form["default-spec-id"])
        form["partition-spec"] = spec["fields"]
    return form


def metadata_file(location: str, version: int, codec: str | None, file_id: str | None = None) -> str:
    """Return a new file name: `00001-<uuid>.gz.metadata.json`, without `.gz` if the codec is `none`."""
    infix = "" if codec == "none" else ".gz"
    return f"{location}/metadata/{version:05d}-{file_id or new_id()}{infix}.metadata.json"


def file_version(metadata_location: str) -> int:
    """Return the number in a metadata file's name, -1 for other names."""
    digits = metadata_location.rpartition("/")[2].partition("-")[0]
    return int(digits) if digits.isdigit() else -1


def encode_metadata(document: Json, uri: str) -> bytes:
    """Return the content of a metadata file."""
    text = json.dumps(document, separators=(",", ":")).encode()
    return gzip.compress(text, compresslevel=6) if ".gz.metadata.json" in uri else text


def decode_metadata(content: bytes, uri: str) -> Json:
    """Return the document in a metadata file, in the form of the database.

    Raises 424 for a file named as compressed that is not, 400 if it is not valid table metadata, and 503 if it refers
    to a schema or snapshot that it lacks.
    """
    if uri.endswith(".gz.metadata.json"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            message = f"Failed to finish decompressing file: {error}"
            raise ApiError(424, "FileDecompression", message) from None
    try:
        document = json.loads(content)
        if missing := find_missing_key(document):
            raise _unreadable(f"data did not match any variant of untagged enum TableMetadataEnum: {missing}")
        complete(document)
        fault = find_document_fault(document)
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise _unreadable(str(error)) from None
    if fault:
        raise _unreadable(f"DataInvalid => {fault}")
    check_references(document)
    return document


def _unreadable(reason: str) -> ApiError:
    return ApiError(400, "Deserialization", f"Failed to deserialize table metadata: {reason}")


def choose_format_version(properties: dict[str, str], allowed: list[int], default: int | None) -> int:
    """Return the format version of a new table. Raises 400 `FormatVersionNotAllowed`."""
    fallback = default or (2 if 2 in allowed else max(allowed))
    requested = properties.pop("format-version", None)
    version = int(requested) if requested and requested.isdigit() else fallback if requested is None else 0
    return check_format_version(version, allowed)


def check_format_version(version: int, allowed: list[int]) -> int:
    """Return the version. Raises 400 `FormatVersionNotAllowed`."""
    if version not in allowed:
        message = f"Format version {version} is not allowed in this warehouse. Allowed: {allowed}"
        raise ApiError(400, "FormatVersionNotAllowed", message)
    return version
