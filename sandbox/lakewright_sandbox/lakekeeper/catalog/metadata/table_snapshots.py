"""Updates of snapshots: snapshots themselves, branches and tags, statistics files."""

from __future__ import annotations

from collections.abc import Callable

from lakewright_sandbox.lakekeeper.catalog.metadata.document_rules import MAIN, ONE_MINUTE
from lakewright_sandbox.lakekeeper.catalog.metadata.table_builder import Json, TableBuilder
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

REFERENCE_FIELDS = ("snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")


def _add_snapshot(builder: TableBuilder, update: Json) -> None:
    snapshot, document = update["snapshot"], builder.document
    number = snapshot["snapshot-id"]
    if any(existing["snapshot-id"] == number for existing in document["snapshots"]):
        raise _invalid(f"Snapshot already exists for: '{number}'")
    version = document["format-version"]
    if version >= 2:
        sequence, last = snapshot["sequence-number"], document["last-sequence-number"]
        if sequence <= last and snapshot.get("parent-snapshot-id") is not None:
            raise _invalid(
                f"Cannot add snapshot with sequence number {sequence} older than last sequence number {last}"
            )
    _check_time(builder, snapshot["timestamp-ms"])
    if version >= 3:
        _assign_rows(document, snapshot)
    if version >= 2:
        document["last-sequence-number"] = snapshot["sequence-number"]
    document["snapshots"].append(snapshot)
    builder.last_updated = snapshot["timestamp-ms"]
    builder.added_snapshots[number] = snapshot


def _check_time(builder: TableBuilder, time: int) -> None:
    """Refuse a snapshot that is more than a minute older than the newest snapshot or the last change."""
    log = builder.document["snapshot-log"]
    if log and time - log[-1]["timestamp-ms"] < -ONE_MINUTE:
        last = log[-1]["timestamp-ms"]
        raise _invalid(f"Invalid snapshot timestamp {time}: before last snapshot timestamp {last}")
    updated = max(builder.last_updated or 0, builder.previous_update)
    if time - updated < -ONE_MINUTE:
        raise _invalid(f"Invalid snapshot timestamp {time}: before last updated timestamp {updated}")


def _assign_rows(document: Json, snapshot: Json) -> None:
    """Row lineage: number a snapshot's rows from the table's `next-row-id` on."""
    first, next_row = snapshot.get("first-row-id"), document["next-row-id"]
    if first is None:
        raise _invalid("Cannot add a snapshot: first-row-id is null. first-row-id must be set for format version >= v3")
    if first < next_row:
        raise _invalid(f"Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {next_row}")
    document["next-row-id"] += snapshot.get("added-rows", 0)


def _invalid(message: str) -> ApiError:
    return ApiError(400, "InvalidTableUpdate", message)


def _set_reference(builder: TableBuilder, update: Json) -> None:
    document, name, number = builder.document, update["ref-name"], update["snapshot-id"]
    snapshot = builder.find("snapshots", "snapshot-id", number)
    reference = {key: update[key] for key in REFERENCE_FIELDS if update.get(key) is not None}
    if document["refs"].get(name) == reference:
        return
    document["refs"][name] = reference
    if number in builder.added_snapshots:
        builder.last_updated = snapshot["timestamp-ms"]
    if name == MAIN:
        builder.last_updated = builder.last_updated or builder.now_millis
        document["current-snapshot-id"] = number
        document["snapshot-log"].append({"timestamp-ms": builder.last_updated, "snapshot-id": number})


def _remove_reference(builder: TableBuilder, update: Json) -> None:
    builder.document["refs"].pop(update["ref-name"], None)
    if update["ref-name"] == MAIN:
        builder.document.pop("current-snapshot-id", None)


def _remove_snapshots(builder: TableBuilder, update: Json) -> None:
    document, removed_ids = builder.document, set(update["snapshot-ids"])
    remaining = [entry for entry in document["snapshots"] if entry["snapshot-id"] not in removed_ids]
    builder.removes_snapshots |= len(remaining) < len(document["snapshots"])
    document["snapshots"] = remaining
    refs = document["refs"].items()
    document["refs"] = {name: reference for name, reference in refs if reference["snapshot-id"] not in removed_ids}
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
