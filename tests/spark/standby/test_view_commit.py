"""The single commit that gives a copy of a view the later history, applied as Lakekeeper applies it."""

from __future__ import annotations

import time
from typing import Any

from lakewright_sandbox.lakekeeper.catalog.metadata.view_metadata import ViewBuilder, new_view
from lakewright_spark.migration.view_history import build_update, describe_view, limit_history
from rest_views import build_field, build_version, make_current

Json = dict[str, Any]

NOW = time.time_ns() // 1_000_000
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [build_field(1, "id")]}
WIDE_SCHEMA = {"type": "struct", "schema-id": 0, "fields": [build_field(1, "id"), build_field(2, "amount")]}


def build_view(properties: dict[str, str] | None = None) -> Json:
    first = build_version(1, 0, {"spark": "SELECT 1 AS id", "trino": "SELECT 1 AS id"})
    return new_view("uuid", "s3://b/v", schema=SCHEMA, version=first, properties=properties or {}, now=NOW)


def add_version(view: Json, number: int, schema: int = 0, **sql: str) -> Json:
    text = sql or {"spark": f"SELECT {number} AS id", "trino": f"SELECT {number} AS id"}
    return ViewBuilder(view, NOW).apply(make_current(build_version(number, schema, text)))


def update(copy: Json, view: Json) -> Json:
    """Return the copy after the commit, at a time when the versions of the view are old."""
    updates = build_update(view, copy)
    assert updates is not None
    return ViewBuilder(copy, NOW + 3_600_000).apply(updates)


def test_versions_with_a_new_schema_are_a_single_commit() -> None:
    copy = build_view()
    view = ViewBuilder(copy, NOW).apply([{"action": "add-schema", "schema": WIDE_SCHEMA}])
    view = add_version(add_version(add_version(view, 2, 1), 3, 1), 4)
    view = ViewBuilder(view, NOW).apply([{"action": "set-properties", "updates": {"comment": "wide"}}])
    assert describe_view(update(copy, view)) == describe_view(view)
    earlier = ViewBuilder(view, NOW).apply([{"action": "set-current-view-version", "view-version-id": 2}])
    assert describe_view(update(copy, earlier)) == describe_view(earlier), "the newest version is not current"
    assert describe_view(update(view, earlier)) == describe_view(earlier), "no version is new"


def test_versions_that_the_server_deletes_are_a_single_commit() -> None:
    view = build_view()
    for number in range(2, 11):
        view = add_version(view, number)
    copy = view
    for number in range(11, 15):
        view = add_version(view, number)
    assert describe_view(limit_history(update(copy, view))) == describe_view(limit_history(view))


def test_lost_dialect_needs_a_new_view() -> None:
    copy = build_view({"replace.drop-dialect.allowed": "true"})
    view = add_version(copy, 2, spark="SELECT 2 AS id")
    assert describe_view(update(copy, view)) == describe_view(view)
    assert build_update({**view, "properties": {}}, copy) is None


def test_shorter_history_needs_a_new_view() -> None:
    copy = add_version(build_view(), 2)
    view = {**copy, "versions": copy["versions"][1:]}
    assert build_update(view, copy) is None
