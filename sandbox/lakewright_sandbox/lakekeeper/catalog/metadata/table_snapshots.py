"""Updates of snapshots: snapshots themselves, branches and tags, statistics files."""

from __future__ import annotations

from collections.abc import Callable

from lakewright_sandbox.lakekeeper.catalog.metadata.table_builder import Json, TableBuilder
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

MAIN = "main"
REFERENCE_FIELDS = ("snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")


def _add_snapshot(builder: TableBuilder, update: Json) -> None:
    snapshot, document = update["snapshot"], builder.document
    number = snapshot["snapshot-id"]
    if any(existing["snapshot-id"] == number for existing in document["snapshots"]):
        raise ApiError(409, "CommitFailedException", f"Snapshot {number} already exists in the table.")
    version = document["format-version"]
    if version >= 2:
        sequence, last = snapshot["sequence-number"], document["last-sequence-number"]
        if sequence <= last and snapshot.get("parent-snapshot-id") is not None:
            message = f"Cannot add a snapshot with sequence number {sequence}, older than the last number, {last}."
            raise ApiError(409, "CommitFailedException", message)
        document["last-sequence-number"] = max(sequence, last)
    if version >= 3:
        _assign_rows(document, snapshot)
    document["snapshots"].append(snapshot)
    document["last-updated-ms"] = snapshot["timestamp-ms"]
    builder.added_snapshots[number] = snapshot


def _assign_rows(document: Json, snapshot: Json) -> None:
    """Row lineage: number a snapshot's rows from the table's `next-row-id` on."""
    first, next_row = snapshot.get("first-row-id"), document["next-row-id"]
    if first is None:
        raise ApiError(400, "InvalidTableUpdate", "A snapshot of format version 3 needs `first-row-id`.")
    if first < next_row:
        message = f"Cannot add a snapshot whose first row id {first} is behind the table's next row ID, {next_row}."
        raise ApiError(409, "CommitFailedException", message)
    document["next-row-id"] = first + snapshot.get("added-rows", 0)


def _set_reference(builder: TableBuilder, update: Json) -> None:
    document, name, number = builder.document, update["ref-name"], update["snapshot-id"]
    snapshot = builder.find("snapshots", "snapshot-id", number)
    reference = {key: update[key] for key in REFERENCE_FIELDS if update.get(key) is not None}
    if document["refs"].get(name) == reference:
        return
    document["refs"][name] = reference
    moment = snapshot["timestamp-ms"] if number in builder.added_snapshots else builder.now_millis
    document["last-updated-ms"] = moment
    if name == MAIN:
        document["current-snapshot-id"] = number
        document["snapshot-log"].append({"timestamp-ms": moment, "snapshot-id": number})


def _remove_reference(builder: TableBuilder, update: Json) -> None:
    builder.document["refs"].pop(update["ref-name"], None)
    if update["ref-name"] == MAIN:
        builder.document.pop("current-snapshot-id", None)
        builder.document["snapshot-log"] = []


def _remove_snapshots(builder: TableBuilder, update: Json) -> None:
    document, removed_ids = builder.document, set(update["snapshot-ids"])
    for collection in ("snapshots", "statistics", "partition-statistics"):
        document[collection] = [entry for entry in document[collection] if entry["snapshot-id"] not in removed_ids]
    for name, reference in list(document["refs"].items()):
        if reference["snapshot-id"] in removed_ids:
            _remove_reference(builder, {"ref-name": name})
    _forget_history(document, removed_ids)


def _forget_history(document: Json, removed_ids: set[int]) -> None:
    """Start the log after the last entry whose snapshot was removed, so that it has no gaps."""
    log = document["snapshot-log"]
    last = max((index for index, entry in enumerate(log) if entry["snapshot-id"] in removed_ids), default=-1)
    document["snapshot-log"] = log[last + 1 :]


def _set_statistics(collection: str) -> Callable[[TableBuilder, Json], None]:
    key = collection

    def apply(builder: TableBuilder, update: Json) -> None:
        file = update[key]
        _drop_statistics(builder, collection, file["snapshot-id"])
        builder.document[collection].append(file)

    return apply


def _remove_statistics(collection: str) -> Callable[[TableBuilder, Json], None]:
    def apply(builder: TableBuilder, update: Json) -> None:
        _drop_statistics(builder, collection, update["snapshot-id"])

    return apply


def _drop_statistics(builder: TableBuilder, collection: str, snapshot_id: int) -> None:
    files = builder.document[collection]
    builder.document[collection] = [file for file in files if file["snapshot-id"] != snapshot_id]


SNAPSHOT_UPDATES: dict[str, Callable[[TableBuilder, Json], None]] = {
    "add-snapshot": _add_snapshot,
    "set-snapshot-ref": _set_reference,
    "remove-snapshot-ref": _remove_reference,
    "remove-snapshots": _remove_snapshots,
    "set-statistics": _set_statistics("statistics"),
    "remove-statistics": _remove_statistics("statistics"),
    "set-partition-statistics": _set_statistics("partition-statistics"),
    "remove-partition-statistics": _remove_statistics("partition-statistics"),
}
