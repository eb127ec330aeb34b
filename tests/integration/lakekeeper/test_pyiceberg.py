"""PyIceberg works unmodified with the sandbox's Lakekeeper, with vended credentials and with remote signing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceNotEmptyError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import LongType, NestedField, StringType, StructType, TimestampType
from pyiceberg.utils.concurrent import ExecutorFactory
from typing_extensions import override

FLIGHTS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "carrier": ["AA", "UA", "AA"]})


class InlineExecutor(Executor):
    """Runs each function at once, in the thread that submits it."""

    @override
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = Future[Any]()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  # as executors do: the future raises it
            future.set_exception(error)
        return future


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Use the main thread alone, since PyIceberg 0.12 sends unsigned requests with several threads.

    It removes the signer of a file system and adds it again. The threads share the file system since fsspec 2026.9, so
    a request in between is unsigned, for any catalog. One worker beside the main thread is enough for it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExecutorFactory, "get_or_create", InlineExecutor)
        yield


@pytest.fixture(scope="module", params=["vended-credentials", "remote-signing"])
def catalog(request: Any, lakekeeper: Any, make_warehouse: Any) -> Catalog:
    name = f"py-{request.param}"
    make_warehouse(lakekeeper, name)
    return _catalog(lakekeeper, name, request.param)


def _catalog(lakekeeper: Any, warehouse: str, delegation: str, **more: str) -> Catalog:
    options = {
        "type": "rest",
        "uri": f"{lakekeeper.base_url}/catalog".replace("//catalog", "/catalog"),
        "warehouse": warehouse,
        "header.X-Iceberg-Access-Delegation": delegation,
    }
    return load_catalog(warehouse, **options, **more)


@pytest.fixture
def table(request: Any, catalog: Catalog) -> Iterator[Table]:
    namespace = request.node.name.partition("[")[0]
    catalog.create_namespace_if_not_exists(namespace)
    yield catalog.create_table(f"{namespace}.flights", FLIGHTS.schema)
    catalog.drop_table(f"{namespace}.flights")


def test_append_and_scan(table: Table) -> None:
    table.append(FLIGHTS)
    table.append(FLIGHTS)
    assert table.scan(row_filter="carrier = 'AA'").to_arrow().num_rows == 4
    assert len(table.snapshots()) == 2


def test_overwrite_and_delete(table: Table) -> None:
    table.append(FLIGHTS)
    table.delete("carrier = 'AA'")
    assert table.scan().to_arrow()["id"].to_pylist() == [2]
    table.overwrite(FLIGHTS.slice(0, 1))
    assert table.scan().to_arrow()["id"].to_pylist() == [1]


def test_upsert(table: Table) -> None:
    table.append(FLIGHTS)
    changed = pa.table({"id": pa.array([3, 4], pa.int64()), "carrier": ["DL", "DL"]})
    result = table.upsert(changed, join_cols=["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [row["carrier"] for row in rows] == ["AA", "UA", "DL", "DL"]


def test_schema_evolution(table: Table) -> None:
    table.append(FLIGHTS)
    with table.update_schema() as update:
        update.add_column("distance", LongType())
        update.rename_column("carrier", "airline")
    assert table.scan().to_arrow().column_names == ["id", "airline", "distance"]
    with table.update_schema() as update:
        update.delete_column("distance")
    assert [field.name for field in table.schema().fields] == ["id", "airline"]


def test_time_travel_branches_and_tags(table: Table) -> None:
    table.append(FLIGHTS)
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(first.snapshot_id, "v1").create_branch(first.snapshot_id, "work").commit()
    table.append(FLIGHTS)
    assert table.scan(snapshot_id=first.snapshot_id).to_arrow().num_rows == 3
    assert set(table.refs()) == {"main", "v1", "work"}
    table.manage_snapshots().remove_tag("v1").remove_branch("work").commit()
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    assert len(table.snapshots()) == 1


def test_partitioned_nested_and_sorted(catalog: Catalog) -> None:
    catalog.create_namespace_if_not_exists("nested")
    schema = Schema(
        NestedField(7, "id", LongType(), required=True),
        NestedField(9, "at", TimestampType()),
        NestedField(11, "who", StructType(NestedField(12, "name", StringType()))),
        identifier_field_ids=[7],
    )
    with (
        catalog.create_table_transaction(
            "nested.events", schema, properties={"commit.retry.num-retries": "10"}
        ) as transaction,
        transaction.update_spec() as spec,
    ):
        spec.add_field("id", BucketTransform(4), "id_bucket")
        spec.add_field("at", DayTransform(), "day")
    table = catalog.load_table("nested.events")
    assert [field.name for field in table.spec().fields] == ["id_bucket", "day"]
    assert table.schema().identifier_field_names() == {"id"}
    assert table.properties == {"commit.retry.num-retries": "10"}
    catalog.drop_table("nested.events")


def test_a_staged_table_does_not_exist_before_its_commit(catalog: Catalog) -> None:
    catalog.create_namespace_if_not_exists("staged")
    transaction = catalog.create_table_transaction("staged.t", FLIGHTS.schema)
    with pytest.raises(NoSuchTableError):
        catalog.load_table("staged.t")
    assert catalog.list_tables("staged") == []
    transaction.commit_transaction()
    assert catalog.list_tables("staged") == [("staged", "t")]
    catalog.drop_table("staged.t")


def test_rename_register_and_conflicts(catalog: Catalog) -> None:
    catalog.create_namespace_if_not_exists("renames")
    table = catalog.create_table("renames.before", FLIGHTS.schema)
    table.append(FLIGHTS)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("renames.BEFORE", FLIGHTS.schema)
    catalog.rename_table("renames.before", "renames.after")
    assert catalog.load_table("renames.after").scan().to_arrow().num_rows == 3
    location = catalog.load_table("renames.after").metadata_location
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("renames")
    catalog._session.delete(
        catalog.url("namespaces/renames/tables/after", prefixed=True), params={"purgeRequested": "false"}
    )
    registered_table = catalog.register_table("renames.again", location)
    assert registered_table.scan().to_arrow().num_rows == 3
    catalog.drop_table("renames.again")


def test_a_stale_commit_is_refused(catalog: Catalog) -> None:
    catalog.create_namespace_if_not_exists("stale")
    table = catalog.create_table("stale.t", FLIGHTS.schema)
    other = catalog.load_table("stale.t")
    with table.update_schema() as update:
        update.add_column("more", StringType())
    stale = other.update_schema()
    stale.add_column("another", StringType())
    with pytest.raises(CommitFailedException):
        stale.commit()
    catalog.drop_table("stale.t")


def test_views(lakekeeper: Any, make_warehouse: Any) -> None:
    warehouse = make_warehouse(lakekeeper, "py-views")
    catalog = _catalog(lakekeeper, "py-views", "vended-credentials")
    catalog.create_namespace("v")
    view = {
        "name": "all",
        "schema": {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 0, "name": "a", "type": "int", "required": False}],
        },
        "view-version": {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
            "default-namespace": ["v"],
        },
        "properties": {},
    }
    lakekeeper.post(f"/catalog/v1/{warehouse}/namespaces/v/views", json=view).raise_for_status()
    assert catalog.list_views("v") == [("v", "all")]
    assert catalog.view_exists("v.all")
    catalog.drop_view("v.all")
    assert not catalog.view_exists("v.all")
