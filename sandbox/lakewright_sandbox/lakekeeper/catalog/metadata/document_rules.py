"""Rules of a whole metadata document, which Iceberg's Rust library checks when it reads or builds one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from lakewright_sandbox.lakekeeper.catalog.metadata.binding import index_columns

Json = dict[str, Any]

MAIN = "main"
ONE_MINUTE = 60_000
"""Milliseconds by which clocks of writers may differ."""
NO_SNAPSHOT = -1
_NEEDED = ("location", "last-updated-ms", "last-column-id")
_NEEDED_SINCE_2 = (
    "table-uuid",
    "last-sequence-number",
    "schemas",
    "current-schema-id",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
)


def find_missing_key(document: Json) -> str | None:
    """Return a key that a document of its format version needs and lacks; None if it has all of them."""
    version = document.get("format-version")
    if version not in (1, 2, 3):
        return "format-version"
    needed = _NEEDED if version == 1 else (*_NEEDED, *_NEEDED_SINCE_2)
    if version == 1 and not document.get("schemas"):
        needed = (*needed, "schema")
    if version >= 3:
        needed = (*needed, "next-row-id")
    return next((key for key in needed if key not in document), None)


def complete(document: Json) -> None:
    """Add what a document may lack: the forms of format version 1, and the branch `main`. Drop keys that are null."""
    for key in [key for key, value in document.items() if value is None]:
        del document[key]
    if document["format-version"] == 1:
        _complete_version_1(document)
    if document.get("current-snapshot-id") in (None, NO_SNAPSHOT):
        document.pop("current-snapshot-id", None)
    elif MAIN not in document.setdefault("refs", {}):
        document["refs"][MAIN] = {"snapshot-id": document["current-snapshot-id"], "type": "branch"}


def list_version_1_refs(document: Json) -> Json:
    """Return the branches and tags of a document of format version 1: it has `main` at the current snapshot alone."""
    current = document.get("current-snapshot-id")
    return {} if current in (None, NO_SNAPSHOT) else {MAIN: {"snapshot-id": current, "type": "branch"}}


def _complete_version_1(document: Json) -> None:
    document["refs"] = list_version_1_refs(document)
    document.setdefault("table-uuid", "00000000-0000-0000-0000-000000000000")
    if "schemas" not in document or "current-schema-id" not in document:
        schema = {"schema-id": 0, **document["schema"]}
        document["schemas"], document["current-schema-id"] = [schema], schema["schema-id"]
    if "partition-specs" not in document:
        document["partition-specs"] = [{"spec-id": 0, "fields": document.get("partition-spec", [])}]
    newest = max((spec["spec-id"] for spec in document["partition-specs"]), default=0)
    document.setdefault("default-spec-id", newest)
    document.setdefault("last-partition-id", newest)
    document.setdefault("sort-orders", [])
    document.setdefault("default-sort-order-id", 0)


def find_document_fault(document: Json) -> str | None:
    """Return which rule a complete document breaks; None if it breaks none."""
    return next(_list_faults(document), None)


def _list_faults(document: Json) -> Iterator[str]:
    yield from _list_id_faults(document)
    yield from _list_reference_faults(document)
    yield from _list_log_faults(document, "snapshot-log", "snapshot log")
    yield from _list_log_faults(document, "metadata-log", "metadata log")
    last = document.get("last-sequence-number", 0)
    if document["format-version"] == 1 and last:
        yield f"Last sequence number must be 0 in v1. Found {last}"
    snapshots: list[Json] = document.get("snapshots", [])
    for snapshot in snapshots:
        if document["format-version"] >= 2 and (number := snapshot.get("sequence-number", 0)) > last:
            yield (
                f"Invalid snapshot with id {snapshot['snapshot-id']} and sequence number {number} greater than last "
                f"sequence number {last}"
            )


def _list_id_faults(document: Json) -> Iterator[str]:
    schemas = {schema["schema-id"]: schema for schema in document["schemas"]}
    specs = {spec["spec-id"]: spec["fields"] for spec in document["partition-specs"]}
    orders = {order["order-id"]: order["fields"] for order in document["sort-orders"]}
    schema, spec = schemas.get(document["current-schema-id"]), specs.get(document["default-spec-id"])
    if schema is None:
        yield f"No schema exists with the current schema id {document['current-schema-id']}."
        return
    if spec is None and document["default-spec-id"] != 0:
        yield f"Default partition spec {document['default-spec-id']} not found"
    columns = {number for number, _, _ in index_columns(schema)}
    fields: list[Json] = spec or []
    for field in fields:
        if "source-id" in field and field["source-id"] not in columns:
            yield f"No column with source column id {field['source-id']} in schema"
    if orders.get(0):
        yield "Sort order ID 0 is reserved for unsorted order"
    if document["default-sort-order-id"] not in {0, *orders}:
        yield f"No sort order exists with the default sort order id {document['default-sort-order-id']}."


def _list_reference_faults(document: Json) -> Iterator[str]:
    snapshots = {snapshot["snapshot-id"] for snapshot in document.get("snapshots", [])}
    refs, current = document.get("refs", {}), document.get("current-snapshot-id")
    if current is not None and current not in snapshots:
        yield f"Snapshot for current snapshot id {current} does not exist in the existing snapshots list"
    for name, ref in refs.items():
        if ref["snapshot-id"] not in snapshots:
            yield f"Snapshot for reference {name} does not exist in the existing snapshots list"
    main = refs[MAIN]["snapshot-id"] if MAIN in refs else None
    if current is None and main is not None:
        yield "Current snapshot is not set, but main branch exists"
    if current is not None and main not in (None, current):
        yield f"Current snapshot id does not match main branch ({current} != {main})"


def _list_log_faults(document: Json, key: str, name: str) -> Iterator[str]:
    times = [entry["timestamp-ms"] for entry in document.get(key, [])]
    if any(later - earlier < -ONE_MINUTE for earlier, later in pairwise(times)):
        yield f"Expected sorted {name} entries"
    if times and document["last-updated-ms"] - times[-1] < -ONE_MINUTE:
        updated = document["last-updated-ms"]
        yield f"Invalid update timestamp {updated}: before last {name} entry at {times[-1]}"
