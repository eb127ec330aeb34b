"""A view `sales.large_orders` behind Iceberg REST, with three versions, and changes of it."""

from __future__ import annotations

import time
from typing import Any

from lakewright_spark.migration.view_catalog import StoredView, ViewCatalog
from lakewright_spark.migration.view_history import describe_view
from pyiceberg.typedef import Identifier

VIEW = ("sales", "large_orders")


def create_view(views: ViewCatalog, name: str = VIEW[-1]) -> None:
    """Create a view whose first version became current again after the second, and whose third lost a dialect."""
    body = {
        "name": name,
        "schema": {"type": "struct", "schema-id": 0, "fields": [build_field(1, "id")]},
        "view-version": build_version(1, 0, {"spark": "SELECT id FROM orders", "trino": "SELECT id FROM orders"}),
        "properties": {"comment": "large", "replace.drop-dialect.allowed": "true"},
    }
    views._request("POST", "namespaces/{namespace}/views", VIEW, body)
    if name != VIEW[-1]:
        return
    schema = {"type": "struct", "schema-id": 1, "fields": [build_field(1, "id"), build_field(2, "amount")]}
    second = build_version(2, -1, {"spark": "SELECT id, amount FROM orders", "trino": "SELECT id, amount FROM orders"})
    commit(views, {"action": "add-schema", "schema": schema}, *make_current(second))
    commit(views, {"action": "set-current-view-version", "view-version-id": 1})
    commit(views, *make_current(build_version(3, 0, {"spark": "SELECT id FROM orders WHERE amount > 1000"})))


def build_field(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "name": name, "type": "long", "required": False}


def build_version(number: int, schema: int, sql: dict[str, str]) -> dict[str, Any]:
    return {
        "version-id": number,
        "schema-id": schema,
        "timestamp-ms": time.time_ns() // 1_000_000 + number,
        "summary": {"engine-name": "spark"},
        "representations": [{"type": "sql", "dialect": dialect, "sql": text} for dialect, text in sql.items()],
        "default-namespace": ["sales"],
    }


def make_current(version: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]


def commit(views: ViewCatalog, *updates: dict[str, Any]) -> None:
    views._request("POST", "namespaces/{namespace}/views/{view}", VIEW, {"updates": list(updates)})


def set_comment(views: ViewCatalog, comment: str) -> None:
    commit(views, {"action": "set-properties", "updates": {"comment": comment}})


def find_location(catalog: ViewCatalog, identifier: Identifier = VIEW) -> str:
    """Return the address of a view's metadata file. Each commit changes it; the order in lists, each response may."""
    view = catalog.find(identifier)
    assert view is not None, identifier
    return view.location


def require(view: StoredView | None) -> dict[str, Any]:
    assert view is not None
    return describe_view(view.metadata)


def list_names(views: ViewCatalog) -> list[str]:
    return [identifier[-1] for identifier in views.endpoint.catalog.list_views("sales")]
