"""The object under a table's location that names the catalog to which a migration gave the table."""

from __future__ import annotations

import json

import pytest
from lakewright_spark.handed_over import HandedOverTable, build_address, is_key, parse_document

OWNER = HandedOverTable("sales.orders", "results", "https://new.example/catalog", "019d-id", "run-1")
TABLE_ID = "019d0000-0000-7000-8000-000000000000"


def test_document_is_read_as_written() -> None:
    assert parse_document(OWNER.to_document()) == OWNER
    assert is_key(build_address("s3://lake/acme/table", TABLE_ID))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        json.dumps({**json.loads(OWNER.to_document()), "version": 2}).encode(),
        json.dumps({**json.loads(OWNER.to_document()), "warehouse_id": 3}).encode(),
        json.dumps({**json.loads(OWNER.to_document()), "more": "text"}).encode(),
        json.dumps({"version": 1, "table": "sales.orders"}).encode(),
    ],
)
def test_other_content_names_no_owner(content: bytes) -> None:
    assert parse_document(content) is None


@pytest.mark.parametrize(
    "key", ["a/_lakewright/handed-over/orders.json", f"a/handed-over/{TABLE_ID}.json", f"{TABLE_ID}.metadata.json"]
)
def test_other_keys_are_not_taken_for_it(key: str) -> None:
    assert not is_key(key)
