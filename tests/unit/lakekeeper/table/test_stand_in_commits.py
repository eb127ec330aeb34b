"""The stand-in of Lakekeeper refuses and stores commits, and registers metadata files, as the server does."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from lakewright_sandbox.lakekeeper.catalog.metadata.table_builder import TableBuilder
from lakewright_sandbox.lakekeeper.catalog.metadata.table_metadata import decode_metadata, new_metadata, to_stored_form
from lakewright_sandbox.lakekeeper.catalog.metadata.table_updates import apply_updates
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

Json = dict[str, Any]

NOW = 1_000_000_000
COLUMNS = [{"id": number, "name": name, "type": "string", "required": False} for number, name in enumerate("ab", 1)]
PLAIN, PACKED = "s3://b/t/metadata/v1.metadata.json", "s3://b/t/metadata/v1.gz.metadata.json"


def create_table(version: int = 2, partitions: list[Json] | None = None) -> Json:
    spec = {"fields": partitions or []}
    schema = {"type": "struct", "fields": COLUMNS}
    return new_metadata(
        "u", "s3://b/t", version, NOW, schema=schema, partition_spec=spec, write_order=None, properties={}
    )


def apply(document: Json, *updates: Json, now: int = NOW + 1) -> Json:
    return apply_updates(TableBuilder(document, [1, 2, 3], now), list(updates))


def refuse(document: Json, *updates: Json) -> tuple[int, str, str]:
    with pytest.raises(ApiError) as refusal:
        apply(document, *updates)
    return refusal.value.status, refusal.value.kind, refusal.value.message


def add_snapshot(number: int, parent: int | None = None, time: int = NOW, **changes: Any) -> Json:
    snapshot = {"snapshot-id": number, "sequence-number": number, "timestamp-ms": time, "schema-id": 0, **changes}
    return {"action": "add-snapshot", "snapshot": snapshot | ({} if parent is None else {"parent-snapshot-id": parent})}


def set_ref(number: int, name: str = "main") -> Json:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": number}


def remove_ref(name: str) -> Json:
    return {"action": "remove-snapshot-ref", "ref-name": name}


def set_statistics(number: int, path: str) -> Json:
    return {"action": "set-statistics", "statistics": {"snapshot-id": number, "statistics-path": path}}


def add_rows(document: Json, *numbers: int) -> Json:
    for number in numbers:
        document = apply(document, add_snapshot(number, number - 1 or None), set_ref(number))
    return document


def test_old_sequence_numbers_are_invalid_updates() -> None:
    """A write to another branch raises the number; the requirements of a write to `main` hold nevertheless."""
    table = apply(add_rows(create_table(), 1), add_snapshot(2, 1), set_ref(2, "audit"))

    status, kind, message = refuse(table, add_snapshot(3, 1, **{"sequence-number": 2}), set_ref(3))

    assert (status, kind) == (400, "InvalidTableUpdate")
    assert message == "Cannot add snapshot with sequence number 2 older than last sequence number 2"


def test_used_snapshot_ids_are_invalid_updates() -> None:
    assert refuse(add_rows(create_table(), 1), add_snapshot(1))[:2] == (400, "InvalidTableUpdate")


def test_row_ids_behind_the_table_are_invalid_updates() -> None:
    table = apply(create_table(3), add_snapshot(1, **{"first-row-id": 0, "added-rows": 5}))
    refusal = refuse(table, add_snapshot(2, 1, **{"first-row-id": 4, "added-rows": 1}))
    message = "Cannot add a snapshot, first-row-id is behind table next-row-id: 4 < 5"
    assert refusal == (400, "InvalidTableUpdate", message)


@pytest.mark.parametrize(("age", "is_refused"), [(60_000, False), (60_001, True)])
def test_snapshots_older_than_a_minute_are_refused(age: int, *, is_refused: bool) -> None:
    table = apply(create_table(), {"action": "set-properties", "updates": {"a": "b"}}, now=NOW + 90_000)
    old = add_snapshot(1, time=NOW + 90_000 - age)
    if is_refused:
        assert "before last updated timestamp" in refuse(table, old)[2]
    else:
        assert apply(table, old)["last-updated-ms"] == NOW + 30_000


def test_history_remains_when_the_branch_main_is_removed() -> None:
    table = apply(add_rows(create_table(), 1), set_ref(1, "audit"))
    table = apply(table, remove_ref("main"))
    assert "current-snapshot-id" not in table
    assert table["refs"].keys() == {"audit"}
    assert [entry["snapshot-id"] for entry in table["snapshot-log"]] == [1]


def test_last_branch_is_not_removed() -> None:
    table = apply(add_rows(create_table(), 1), remove_ref("main"))
    assert (table["refs"].keys(), table["current-snapshot-id"]) == ({"main"}, 1)


def test_current_snapshot_is_not_removed() -> None:
    removal = {"action": "remove-snapshots", "snapshot-ids": [2]}
    assert refuse(add_rows(create_table(), 1, 2), removal)[:2] == (409, "CommitFailedException")


def test_statistics_of_a_snapshot_are_stored_once() -> None:
    table = apply(add_rows(create_table(), 1, 2), set_statistics(1, "first"), set_statistics(2, "last"))
    table = apply(table, set_statistics(1, "second"))
    assert [file["statistics-path"] for file in table["statistics"]] == ["last", "first"]

    table = apply(table, {"action": "remove-statistics", "snapshot-id": 1})
    table = apply(table, set_statistics(1, "third"))
    assert {file["statistics-path"] for file in table["statistics"]} == {"last", "third"}
    table = apply(table, {"action": "remove-snapshots", "snapshot-ids": [1]})
    assert [file["statistics-path"] for file in table["statistics"]] == ["last"]


def test_statistics_of_a_missing_snapshot_fail() -> None:
    status, kind, message = refuse(add_rows(create_table(), 1), set_statistics(7, "lost"))
    assert (status, kind) == (503, "CatalogBackendError")
    assert "table_statistics_table_id_snapshot_id_fkey" in message


def void(source: int, number: int) -> Json:
    return {"source-id": source, "transform": "void", "name": f"gone_{number}", "field-id": number}


def add_spec(*fields: Json) -> list[Json]:
    return [
        {"action": "add-spec", "spec": {"spec-id": 1, "fields": list(fields)}},
        {"action": "set-default-spec", "spec-id": -1},
    ]


def set_columns(*columns: Json) -> list[Json]:
    return [
        {"action": "add-schema", "schema": {"type": "struct", "fields": list(columns)}},
        {"action": "set-current-schema", "schema-id": -1},
    ]


def test_two_void_fields_of_a_column_are_refused() -> None:
    table = apply(create_table(1), *add_spec(void(1, 1000), void(2, 1001)))
    status, kind, message = refuse(table, *add_spec(void(1, 1000), void(2, 1001), void(1, 1002)))
    assert (status, kind) == (400, "InvalidTableUpdate")
    assert "Cannot add redundant partition with source id `1` and transform `void`" in message


def test_column_of_a_void_field_is_not_dropped() -> None:
    table = apply(create_table(1), *add_spec(void(1, 1000)))
    refusal = refuse(table, *set_columns(COLUMNS[1]))
    message = "Cannot find partition source field with id `1` in schema"
    assert refusal == (409, "CommitFailedException", message)
    assert apply(create_table(2), *set_columns(COLUMNS[1]))["current-schema-id"] == 1


def test_new_column_named_like_a_former_partition_field() -> None:
    day = {"source-id": 1, "transform": "bucket[4]", "name": "shard"}
    table = apply(create_table(partitions=[day]), *add_spec())
    shard = {"id": 3, "name": "shard", "type": "string", "required": False}
    status, kind, message = refuse(table, *set_columns(*COLUMNS, shard))
    assert (status, kind) == (400, "InvalidTableUpdate")
    assert "Cannot add schema field 'shard'" in message


def test_partition_ids_belong_to_column_and_transform() -> None:
    shard = {"source-id": 1, "transform": "bucket[4]", "name": "shard"}
    table = apply(create_table(partitions=[shard]), *add_spec(shard | {"name": "part"}))
    assert table["partition-specs"][-1]["fields"][0]["field-id"] == 1000
    assert apply(table, *add_spec(shard))["default-spec-id"] == 0


def test_partition_ids_follow_the_last_id_of_the_table() -> None:
    table = create_table(1) | {"last-partition-id": 0}
    letter = {"source-id": 1, "transform": "identity", "name": "a"}
    message = "Cannot add partition spec with non-sequential field ids to format version 1 table"
    assert refuse(table, *add_spec(letter)) == (400, "InvalidTableUpdate", message)
    assert apply(table, *add_spec(letter | {"field-id": 1000}))["last-partition-id"] == 1000


def test_tables_of_version_1_have_no_tags() -> None:
    """A metadata file of this version has no branches and tags, so `main` comes from the current snapshot."""
    form = to_stored_form(apply(add_rows(create_table(1), 1), set_ref(1, "audit")))
    main = {"main": {"snapshot-id": 1, "type": "branch"}}
    assert form["refs"] == main
    form["refs"] = {"close": {"snapshot-id": 1, "type": "tag"}, "main": main["main"] | {"min-snapshots-to-keep": 3}}
    assert decode_metadata(json.dumps(form).encode(), PLAIN)["refs"] == main


def register(change: Callable[[Json], Any] = dict, uri: str = PLAIN, pack: Callable[[bytes], bytes] = bytes) -> Json:
    document = to_stored_form(add_rows(create_table(), 1, 2))
    change(document)
    return decode_metadata(pack(json.dumps(document).encode()), uri)


def test_metadata_files_are_registered() -> None:
    assert register()["current-snapshot-id"] == 2
    assert register(uri=PACKED, pack=gzip.compress)["current-snapshot-id"] == 2
    assert register(lambda document: document.pop("refs"))["refs"]["main"]["snapshot-id"] == 2


@pytest.mark.parametrize(
    ("uri", "pack", "refusal"),
    [
        (PLAIN, gzip.compress, (400, "Deserialization")),
        ("s3://b/t/metadata/v1.metadata.json.gz", gzip.compress, (400, "Deserialization")),
        (PACKED, bytes, (424, "FileDecompression")),
    ],
)
def test_compression_follows_the_name(uri: str, pack: Callable[[bytes], bytes], refusal: tuple[int, str]) -> None:
    with pytest.raises(ApiError) as error:
        register(uri=uri, pack=pack)
    assert (error.value.status, error.value.kind) == refusal


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (lambda document: document.pop("sort-orders"), 400, "untagged enum TableMetadataEnum"),
        (lambda document: document["snapshot-log"][1].update({"timestamp-ms": 1}), 400, "sorted snapshot log"),
        (lambda document: document.update({"last-updated-ms": 1}), 400, "Invalid update timestamp 1"),
        (lambda document: document["refs"].update(old={"snapshot-id": 7, "type": "tag"}), 400, "reference old"),
        (lambda document: document.update({"current-snapshot-id": 1}), 400, "does not match main branch"),
        (lambda document: document.update({"last-sequence-number": 1}), 400, "greater than last sequence number 1"),
        (lambda document: document.update({"default-sort-order-id": 3}), 400, "default sort order id 3"),
        (lambda document: document["snapshots"][0].update({"schema-id": 9}), 503, "table_snapshot_table_id_schema_id"),
        (
            lambda document: document.update({"partition-statistics": [{"snapshot-id": 7}]}),
            503,
            "partition_statistics_table_id_snapshot_id",
        ),
    ],
)
def test_invalid_metadata_is_not_registered(change: Callable[[Json], Any], status: int, reason: str) -> None:
    with pytest.raises(ApiError) as error:
        register(change)
    assert error.value.status == status
    assert reason in error.value.message
