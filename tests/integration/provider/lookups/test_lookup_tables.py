"""Lookups of tables and views: results in the form of a declaration, errors that list what exists."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper import get_table, get_tables, get_view, get_views
from lakewright.lakekeeper.api.connection.errors import NothingFoundError
from lakewright.lakekeeper.table.resource import TableProvider

from tests.integration.provider.resource import Props, Resource

COLUMNS: list[Props] = [
    {"name": "id", "type": "long", "required": True, "doc": "of the order"},
    {"name": "day", "type": "date"},
    {"name": "lines", "type": "list<struct<sku: string, count: int>>"},
]


@pytest.fixture
def sales(warehouse: Resource, server: Props, http: httpx.Client, make_table: Any) -> Props:
    """A warehouse with two namespaces: one with a declared table, the other with another user's table."""
    for namespace in (["sales"], ["sales", "daily"]):
        http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": namespace}).raise_for_status()
    namespace_args = {"server": server, "warehouse_id": warehouse.id, "namespace": "sales"}
    layout = {"identifier": ["id"], "partition_by": ["days(day)"], "sort_by": ["id desc"], "properties": {"a": "b"}}
    Resource(TableProvider()).up(**namespace_args, name="orders", columns=COLUMNS, protected=True, **layout)
    make_table(warehouse.id, "sales.daily", "totals")
    return namespace_args


def test_table_is_returned_as_a_declaration(sales: Props) -> None:
    table = get_table(**sales, name="orders")

    assert [(column.name, column.type, column.required) for column in table.columns] == [
        ("id", "long", True),
        ("day", "date", False),
        ("lines", "list<struct<sku: string, count: int>>", False),
    ]
    assert table.columns[0].doc == "of the order"
    assert (table.identifier, table.partition_by, table.sort_by) == (("id",), ("days(day)",), ("id desc",))
    assert (table.properties, table.format_version, table.snapshot_id) == ({"a": "b"}, 2, None)
    assert table.protected
    assert table.location.startswith("s3://")
    assert table.model_dump()["columns"][2]["field_id"] == 3


def test_tables_are_listed_by_namespace_recursively(sales: Props) -> None:
    direct_tables, all_tables = get_tables(**sales), get_tables(**sales, recursive=True)

    assert [(item.name, item.protected) for item in direct_tables] == [("orders", True)]
    assert [f"{item.namespace}.{item.name}" for item in all_tables] == ["sales.orders", "sales.daily.totals"]
    assert direct_tables[0].tabular_id == get_table(**sales, name="orders").tabular_id


def test_view_is_returned_with_its_definition(sales: Props, http: httpx.Client) -> None:
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 0, "name": "n", "required": False, "type": "int"}]}
    version = {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": ["sales"]}
    version |= {"representations": [{"type": "sql", "sql": "select 1 as n", "dialect": "spark"}]}
    body = {"name": "one", "schema": schema, "view-version": version, "properties": {"owner": "x"}}
    http.post(f"/catalog/v1/{sales['warehouse_id']}/namespaces/sales/views", json=body).raise_for_status()

    view = get_view(**sales, name="one")

    assert (view.sql, view.default_namespace) == ({"spark": "select 1 as n"}, "sales")
    assert [(column.name, column.type) for column in view.columns] == [("n", "int")]
    assert [item.name for item in get_views(**sales)] == ["one"]
    assert view.properties == {"owner": "x"}


def test_missing_object_lists_what_exists(sales: Props, http: httpx.Client) -> None:
    with pytest.raises(NothingFoundError, match=r"table `sales\.lost` is not in .* Available: `orders`\."):
        get_table(**sales, name="lost")
    with pytest.raises(NothingFoundError, match=r"view `sales\.lost` is not in .* Available: none\."):
        get_view(**sales, name="lost")
    with pytest.raises(NothingFoundError, match="namespace `ops` is not in warehouse `main`"):
        get_tables(**sales | {"namespace": "ops"})
    http.post(f"/management/v1/warehouse/{sales['warehouse_id']}/deactivate").raise_for_status()
    with pytest.raises(NothingFoundError, match="is inactive, so its contents cannot be seen"):
        get_table(**sales, name="orders")


@pytest.mark.since("0.12")  # Older servers find nothing for a minute after the status has changed.
def test_lists_follow_a_status_set_outside_the_stack(sales: Props, http: httpx.Client) -> None:
    """Servers cache a status for a minute: an inactive warehouse looks empty, an active warehouse missing."""
    http.post(f"/management/v1/warehouse/{sales['warehouse_id']}/deactivate").raise_for_status()
    with pytest.raises(NothingFoundError, match="is inactive, so its contents cannot be seen"):
        get_tables(**sales)

    http.post(f"/management/v1/warehouse/{sales['warehouse_id']}/activate").raise_for_status()
    assert [table.name for table in get_tables(**sales)] == ["orders"]


def test_lookups_do_not_import_pulumi() -> None:
    script = "import sys; from lakewright.lakekeeper import get_table; sys.exit('pulumi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
