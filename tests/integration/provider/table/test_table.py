"""Tables: creation, evolution while they hold data, drift and its repair, drops only with `purge`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lakewright.lakekeeper.api.connection.errors import ProtectedError
from lakewright.lakekeeper.provider.errors import (
    EvolutionRefusedError,
    HoldsTablesError,
    NotOwnedError,
    ReplacementRefusedError,
)
from lakewright.lakekeeper.table.resource import TableProvider
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table as IcebergTable

from tests.integration.provider.resource import Props, Resource

COLUMNS: list[Props] = [
    {"name": "id", "type": "int", "required": True, "doc": "of the order"},
    {"name": "day", "type": "date"},
    {"name": "note", "type": "string"},
    {"name": "lines", "type": "list<struct<sku: string, count: int>>"},
]
DAY = date(2026, 11, 21)
SOFT = {"type": "soft", "expiration_seconds": 86400}


@pytest.fixture
def orders(warehouse: Resource, server: Props, http: httpx.Client) -> Props:
    """A declared table."""
    http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["sales"]}).raise_for_status()
    return {
        "server": server,
        "warehouse_id": warehouse.id,
        "namespace": "sales",
        "name": "orders",
        "columns": COLUMNS,
        "identifier": ["id"],
        "partition_by": ["days(day)"],
        "sort_by": ["id desc"],
        "properties": {"write.parquet.compression-codec": "zstd"},
    }


@pytest.fixture
def table(orders: Props) -> Resource:
    resource = Resource(TableProvider())
    resource.up(**orders)
    return resource


@pytest.fixture
def iceberg(server: Props, http: httpx.Client, project_id: str, sandbox: Any) -> Callable[..., IcebergTable]:
    """Return a function that loads a table as a job does: by PyIceberg, with the sandbox's keys."""

    def load(name: str = "sales.orders") -> IcebergTable:
        key = sandbox.admin
        request = http.get("/management/v1/info").request
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        catalog = load_catalog(
            "main",
            type="rest",
            uri=f"{server['endpoint']}/catalog",
            warehouse=f"{project_id}/main",
            **{
                "s3.endpoint": sandbox.aws.endpoint,
                "s3.access-key-id": key.access_key_id,
                "s3.secret-access-key": key.secret_access_key.get_secret_value(),
                "header.X-Iceberg-Access-Delegation": "client-managed",
            }
            | ({"token": token} if token else {}),
        )
        return catalog.load_table(name)

    return load


def url(orders: Props, name: str = "orders") -> str:
    return f"/catalog/v1/{orders['warehouse_id']}/namespaces/{orders['namespace']}/tables/{name}"


def metadata(http: httpx.Client, orders: Props) -> Props:
    return http.get(url(orders)).raise_for_status().json()["metadata"]


def columns(http: httpx.Client, orders: Props) -> list[Props]:
    now = metadata(http, orders)
    return next(item["fields"] for item in now["schemas"] if item["schema-id"] == now["current-schema-id"])


def change_column(position: int, **changes: Any) -> list[Props]:
    """Return the columns, one of them changed."""
    return [item | changes if index == position else item for index, item in enumerate(COLUMNS)]


def commit(http: httpx.Client, orders: Props, *updates: Props) -> None:
    """Commit updates as a job does."""
    http.post(url(orders), json={"requirements": [], "updates": list(updates)}).raise_for_status()


def build_schema_updates(fields: list[Props]) -> list[Props]:
    schema = {"type": "struct", "schema-id": 9, "fields": fields}
    return [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]


def test_table_is_created_and_read(table: Resource, orders: Props, http: httpx.Client) -> None:
    now = metadata(http, orders)
    assert table.id == table.outs["table_id"] == now["table-uuid"]
    assert table.outs["table_location"] == now["location"]
    assert table.outs["field_ids"]["lines.element.sku"] == 6
    assert [item["transform"] for item in now["partition-specs"][0]["fields"]] == ["day"]
    assert now["sort-orders"][0]["fields"][0]["direction"] == "desc"
    assert table.up(**orders) == "same"
    assert table.refresh() == "same"


def test_old_rows_stay_readable_beside_new_ones(
    table: Resource, orders: Props, iceberg: Callable[..., IcebergTable]
) -> None:
    table.up(**orders | {"partition_by": ["day"]})
    before = iceberg()
    before.append(_rows(id=pa.array([1], pa.int32()), day=pa.array([DAY]), note=pa.array(["first"])))
    evolved = [
        {"name": "comment", "type": "string", "renamed_from": "note"},
        {"name": "id", "type": "long", "required": True},
        COLUMNS[1],
        {"name": "lines", "type": "list<struct<sku: string, count: long, gift: boolean>>"},
        {"name": "price", "type": "decimal(12,2)"},
    ]

    step = table.up(**orders | {"columns": evolved, "partition_by": ["id"], "sort_by": []})

    assert step == "update"
    after = iceberg()
    assert after.metadata.table_uuid == before.metadata.table_uuid
    after.append(_rows(id=pa.array([2], pa.int64()), comment=pa.array(["second"])))
    rows = sorted(
        after.scan(selected_fields=("id", "comment", "price")).to_arrow().to_pylist(), key=lambda row: row["id"]
    )
    assert rows == [
        {"id": 1, "comment": "first", "price": None},
        {"id": 2, "comment": "second", "price": None},
    ]
    assert str(after.schema().find_field("id").field_type) == "long"
    assert [item.name for item in after.spec().fields] == ["id"]
    assert after.sort_order().fields == []
    assert table.refresh() == "same"
    assert table.up(**orders | {"columns": evolved, "partition_by": ["id"], "sort_by": []}) == "same"


def _rows(**values: pa.Array) -> pa.Table:
    schema = pa.schema([pa.field(name, value.type, nullable=name != "id") for name, value in values.items()])
    return pa.table(values, schema=schema)


def test_preview_refuses_unsafe_changes(table: Resource, orders: Props, http: httpx.Client) -> None:
    before = metadata(http, orders)
    unsafe = [{"name": "id", "type": "string", "required": True}, {"name": "n", "type": "int", "required": True}]
    with pytest.raises(EvolutionRefusedError) as caught:
        table.preview(**orders | {"columns": unsafe, "partition_by": []})
    message = str(caught.value)
    for reason in (
        "`id`: int -> string is another type",
        "`n` would be added as required",
        "`day` is in the table and",
    ):
        assert reason in message
    assert metadata(http, orders) == before


def test_column_is_dropped_only_when_it_is_named(table: Resource, orders: Props, http: httpx.Client) -> None:
    fewer = orders | {"columns": [item for item in COLUMNS if item["name"] != "note"]}
    with pytest.raises(EvolutionRefusedError, match="name it in `dropped_columns`"):
        table.preview(**fewer)
    assert table.up(**fewer, dropped_columns=["note"]) == "update"
    assert [item["name"] for item in columns(http, orders)] == ["id", "day", "lines"]
    assert table.up(**fewer) == "update"  # The state alone.
    assert table.refresh() == "same"


def test_only_declared_properties_are_managed(table: Resource, orders: Props, http: httpx.Client) -> None:
    engine = {"written-by": "an engine", "write.parquet.compression-codec": "gzip"}
    commit(http, orders, {"action": "set-properties", "updates": engine})
    assert table.refresh() == "update"
    assert table.up(**orders) == "update"
    assert metadata(http, orders)["properties"].items() >= {"write.parquet.compression-codec": "zstd"}.items()
    assert table.up(**orders | {"properties": {}}) == "update"
    assert metadata(http, orders)["properties"] == {"written-by": "an engine"}
    assert table.refresh() == "same"


def test_columns_that_jobs_changed_are_drift_and_restored(table: Resource, orders: Props, http: httpx.Client) -> None:
    """Jobs renamed, dropped and made columns optional."""
    loose = orders | {"identifier": [], "partition_by": []}
    table.up(**loose)
    ids = table.outs["field_ids"]
    fields = columns(http, orders)
    fields[1]["name"] = "when"
    commit(
        http, orders, *build_schema_updates([fields[1], fields[0], fields[3]])
    )  # `note` dropped, `day` renamed, columns reordered.
    assert table.refresh() == "update"
    assert [item["name"] for item in table.outs["columns"]] == ["when", "id", "lines"]
    assert table.up(**loose) == "update"
    now = {item["name"]: item["id"] for item in columns(http, orders)}
    assert now == {name: ids[name] for name in ("id", "day", "note", "lines")}
    assert table.refresh() == "same"


def test_column_that_a_job_added_is_reported_and_kept(table: Resource, orders: Props, http: httpx.Client) -> None:
    extra = {"id": 90, "name": "extra", "required": False, "type": "string"}
    commit(http, orders, *build_schema_updates([*columns(http, orders), extra]))
    wider = orders | {"columns": [*COLUMNS, {"name": "more", "type": "long"}], "identifier": []}
    assert table.up(**wider) == "update"  # Without a refresh the unknown column is kept.
    assert [item["name"] for item in columns(http, orders)][-2:] == ["extra", "more"]
    for _ in range(2):  # It remains drift, and is refused, after any number of refreshes.
        assert table.refresh() == "update"
        (refusal,) = table.list_refusals(**wider)
        assert "`extra` is in the table and not declared" in refusal
    assert table.up(**wider, undeclared_columns="keep") == "update"
    assert table.refresh() == "same"
    assert table.up(**wider, undeclared_columns="refuse", dropped_columns=["extra"]) in {"update"}


@pytest.mark.usefixtures("moves_objects")
def test_name_and_namespace_change_in_place(table: Resource, orders: Props, http: httpx.Client) -> None:
    http.post(f"/catalog/v1/{orders['warehouse_id']}/namespaces", json={"namespace": ["old"]}).raise_for_status()
    moved = orders | {"namespace": "old", "name": "purchases"}
    assert table.up(**moved) == "update"
    assert http.get(url(moved, "purchases")).json()["metadata"]["table-uuid"] == table.id
    assert table.refresh() == "same"


def test_taken_name_is_reported(table: Resource, orders: Props, make_table: Any) -> None:
    make_table(orders["warehouse_id"], "sales", "purchases")
    with pytest.raises(NotOwnedError, match="is taken by another table or view"):
        table.up(**orders | {"name": "purchases"})


def test_rename_by_a_job_is_reverted(table: Resource, orders: Props, http: httpx.Client) -> None:
    http.post(f"/catalog/v1/{orders['warehouse_id']}/namespaces", json={"namespace": ["new"]}).raise_for_status()
    for namespace in ("sales", "new"):
        source_and_destination = {"namespace": ["sales"], "name": "orders"}, {"namespace": [namespace], "name": "away"}
        body = dict(zip(("source", "destination"), source_and_destination, strict=True))
        http.post(f"/catalog/v1/{orders['warehouse_id']}/tables/rename", json=body).raise_for_status()
        assert table.refresh() == "update"
        assert (table.outs["namespace"], table.outs["name"]) == (namespace, "away")
        assert table.up(**orders) == "update"
        assert metadata(http, orders)["table-uuid"] == table.id


def test_recreated_table_is_adopted_and_updated(
    table: Resource, orders: Props, http: httpx.Client, make_table: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    first = table.id
    http.delete(url(orders)).raise_for_status()
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "int"}]}
    body = {"name": "orders", "schema": schema}
    http.post(url(orders).removesuffix("/orders"), json=body).raise_for_status()
    assert table.refresh() == "update"
    assert "was dropped and recreated" in capsys.readouterr().err
    assert table.outs["table_id"] != first
    assert table.up(**orders) == "update"
    assert [item["name"] for item in columns(http, orders)] == ["id", "day", "note", "lines"]
    assert table.refresh() == "same"


def test_purged_table_is_recreated(table: Resource, orders: Props, http: httpx.Client) -> None:
    http.delete(url(orders)).raise_for_status()
    assert table.refresh() == "delete"
    assert table.up(**orders) == "create"


def test_soft_deleted_table_is_restored_with_its_data(  # noqa: PLR0917 - fixtures
    table: Resource,
    orders: Props,
    warehouse: Resource,
    warehouse_props: Props,
    http: httpx.Client,
    capsys: pytest.CaptureFixture[str],
) -> None:
    warehouse.up(**warehouse_props, delete_profile=SOFT)
    http.delete(url(orders)).raise_for_status()
    assert table.refresh() == "update"
    assert "`up --refresh` restores it" in capsys.readouterr().err
    assert "can be restored until" in table.outs["drift"][0]
    assert table.up(**orders) == "update"
    assert metadata(http, orders)["table-uuid"] == table.id
    assert table.refresh() == "same"


def test_protection_is_set_and_its_drift_restored(table: Resource, orders: Props, http: httpx.Client) -> None:
    assert table.up(**orders, protected=True) == "update"
    protection = f"/management/v1/warehouse/{orders['warehouse_id']}/table/{table.id}/protection"
    http.post(protection, json={"protected": False}).raise_for_status()
    assert table.refresh() == "update"
    assert table.up(**orders, protected=True, deletion="purge") == "update"
    with pytest.raises(ProtectedError, match="Set `protected: false`"):
        table.destroy()


def test_table_is_dropped_with_purge_only(table: Resource, orders: Props, http: httpx.Client, objects: Any) -> None:
    with pytest.raises(HoldsTablesError, match="its `deletion` is `protect`"):
        table.destroy()
    table.up(**orders, deletion="retain")
    table.provider.delete(table.id, table.outs)
    assert metadata(http, orders)
    table.up(**orders, deletion="purge")
    table.destroy()
    assert http.get(url(orders)).status_code == 404


def test_another_location_replaces_by_the_deletion_rules(table: Resource, orders: Props, storage: Props) -> None:
    moved_orders = orders | {"location": f"s3://{storage['bucket']}/{storage['key_prefix']}/elsewhere/"}
    with pytest.raises(HoldsTablesError, match="would be replaced"):
        table.preview(**moved_orders)
    table.up(**orders, deletion="retain")
    with pytest.raises(ReplacementRefusedError, match="its name remains taken"):
        table.preview(**moved_orders, deletion="retain")
    table.up(**orders, deletion="purge")
    assert table.up(**moved_orders, deletion="purge") == "replace"
    assert table.refresh() == "same"


def test_table_in_an_inactive_warehouse_is_not_gone(
    table: Resource, orders: Props, http: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    http.post(f"/management/v1/warehouse/{orders['warehouse_id']}/deactivate").raise_for_status()
    assert table.refresh() == "same"
    assert "cannot be seen while its warehouse is inactive" in capsys.readouterr().err


def test_killed_create_adopts_its_own_table_only(
    table: Resource, orders: Props, report_interrupted_create: Any
) -> None:
    assert "adopt=True" in Resource(TableProvider()).refusal(**orders)
    report_interrupted_create("Table", orders)
    assert Resource(TableProvider()).up(**orders) == "create"
    other = orders | {"columns": [*COLUMNS, {"name": "more", "type": "long"}], "sort_by": []}
    with pytest.raises(NotOwnedError, match=r"more: added; sort_by: none.*adopt=True"):
        Resource(TableProvider()).up(**other)
    adopted = Resource(TableProvider())
    assert adopted.up(**other, adopt=True) == "create"
    assert adopted.id == table.id
    assert adopted.refresh() == "same"


def test_preview_lists_the_changes_of_adoption_or_refuses(
    table: Resource, orders: Props, capsys: pytest.CaptureFixture[str]
) -> None:
    wider = orders | {"columns": [*COLUMNS, {"name": "more", "type": "long"}], "sort_by": [], "adopt": True}
    Resource(TableProvider()).preview(**wider)
    message = capsys.readouterr().err
    assert f"({table.id}) exists already and is adopted; this changes: more: added; sort_by: none" in message
    Resource(TableProvider()).preview(**orders | {"adopt": True})
    assert "is adopted; nothing of it changes" in capsys.readouterr().err
    refused = Resource(TableProvider()).failures(**orders | {"columns": COLUMNS[:-1], "adopt": True})["adopt"]
    assert "cannot be taken over as it is declared: column `lines` is in the table and not declared" in refused
