"""Requests for views, and the declarations that metadata shows."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from lakewright.discovery.declaration.view_declaration import declare_view, find_view_differences
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.view.args import ViewArgs
from lakewright.lakekeeper.view.requests import MAY_LOSE_DIALECTS, commit_requests, create_request, observe_view
from lakewright.spec.view import ViewSpec
from lakewright_sandbox.lakekeeper.catalog.metadata.view_metadata import ViewBuilder, new_view
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from pydantic import ValidationError

NOW_MS = 1_700_000_000_000
COLUMNS = [{"name": "id", "type": "long"}, {"name": "tags", "type": "list<string>"}]


def make_args(**changes: Any) -> ViewArgs:
    declaration: dict[str, Any] = {
        "server": {"endpoint": "http://localhost:8181"},
        "warehouse_id": "main",
        "namespace": "sales",
        "name": "large",
        "columns": COLUMNS,
        "sql": {"spark": "SELECT id, tags FROM orders\n", "trino": "SELECT id, tags FROM orders"},
    }
    return ViewArgs.parse(declaration | changes)


def make_metadata(args: ViewArgs) -> dict[str, Any]:
    body = create_request(args, NOW_MS)
    return new_view(
        "0190a1fc",
        "s3://bucket/view",
        schema=body["schema"],
        version=body["view-version"],
        properties=body["properties"],
        now=NOW_MS,
    )


def apply_changes(metadata: dict[str, Any], old: ViewArgs, new: ViewArgs) -> dict[str, Any]:
    for body in commit_requests(metadata, old, new, NOW_MS):
        metadata = ViewBuilder(metadata, NOW_MS).apply(body["updates"])
    return metadata


CHANGES: dict[str, dict[str, Any]] = {
    "query": {"sql": {"spark": "SELECT 1", "trino": "SELECT 1"}},
    "more dialects": {"sql": {"spark": "SELECT 1", "trino": "SELECT 1", "duckdb": "SELECT 1"}},
    "fewer dialects": {"sql": {"spark": "SELECT id, tags FROM orders"}},
    "columns": {"columns": [{"name": "id", "type": "string"}]},
    "default catalog": {"default_catalog": "lake"},
    "default namespace": {"default_namespace": "sales.raw"},
    "properties": {"properties": {"comment": "large orders"}},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_changes_lead_to_the_declaration_and_back(changes: dict[str, Any]) -> None:
    before, after = make_args(), make_args(**changes)
    metadata = make_metadata(before)
    assert observe_view(metadata, before) == before

    changed = apply_changes(metadata, before, after)
    assert observe_view(changed, after) == after
    assert commit_requests(changed, before, after, NOW_MS) == []

    restored = apply_changes(changed, after, before)
    assert observe_view(restored, before) == before
    assert restored["properties"] == {}


def set_default_namespace(metadata: dict[str, Any], path: list[str]) -> dict[str, Any]:
    """Return metadata as the server loads it, whose database may have another spelling or no namespace."""
    (version,) = metadata["versions"]
    return metadata | {"versions": [version | {"default-namespace": path}]}


def test_view_without_default_namespace_can_be_observed() -> None:
    args = make_args()
    metadata = set_default_namespace(make_metadata(args), [])

    assert observe_view(metadata, args).default_namespace == ""
    changed = apply_changes(metadata, args, args)
    assert observe_view(changed, args) == args


@pytest.mark.parametrize("default_namespace", [None, "Sales"])
def test_spelling_of_a_default_namespace_is_no_change(default_namespace: str | None) -> None:
    args = make_args(default_namespace=default_namespace)
    metadata = set_default_namespace(make_metadata(args), ["SALES"])

    assert observe_view(metadata, args) == args
    assert commit_requests(metadata, args, args, NOW_MS) == []


def test_view_without_default_namespace_can_be_declared() -> None:
    metadata = set_default_namespace(make_metadata(make_args()), [])
    view = declare_view("main", Tabular(("sales",), "large", "view"), metadata)

    assert "default_namespace" not in view
    assert find_view_differences(ViewSpec.model_validate(view), metadata) == ["default_namespace: '' -> None"]


def test_properties_of_engines_are_kept() -> None:
    args = make_args(properties={"comment": "old"})
    metadata = make_metadata(args)
    metadata["properties"] |= {"engine_version": "Spark 4.1"}

    changed = apply_changes(metadata, args, make_args())

    assert changed["properties"] == {"engine_version": "Spark 4.1"}


def test_permission_to_lose_dialects_is_temporary() -> None:
    metadata, fewer = make_metadata(make_args()), make_args(sql={"spark": "SELECT 1"})
    first, second = commit_requests(metadata, make_args(), fewer, NOW_MS)

    assert first["updates"][0] == {"action": "set-properties", "updates": {MAY_LOSE_DIALECTS: "true"}}
    assert second["updates"] == [{"action": "remove-properties", "removals": [MAY_LOSE_DIALECTS]}]
    without_permission = copy.deepcopy(first["updates"][1:])
    with pytest.raises(ApiError, match="Cannot replace view due to loss of view dialects"):
        ViewBuilder(metadata, NOW_MS).apply(without_permission)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ({}, "at least 1 item"),
        ({"spark": "  "}, "expected a query"),
        ({"Spark SQL": "SELECT 1"}, "expected the name of a dialect in lower case"),
    ],
)
def test_queries_that_no_engine_reads_are_refused(sql: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_args(sql=sql)
