"""`protected: true` stops a destroy and an `up` before they delete anything, also under `deletion: purge`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import ProtectedError
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider

from tests.integration.provider.resource import Props, Resource

Protect = Callable[..., None]


@pytest.fixture
def protect(http: httpx.Client, warehouse: Resource) -> Protect:
    """Return a function that protects the warehouse, a namespace or a table outside the stack."""
    management_url, namespaces_url = (
        f"/management/v1/warehouse/{warehouse.id}",
        f"/catalog/v1/{warehouse.id}/namespaces",
    )

    def set_protection(namespace: str = "", table: str = "", *, protected: bool = True) -> None:
        url = management_url
        if table:
            metadata = http.get(f"{namespaces_url}/{namespace}/tables/{table}").raise_for_status().json()["metadata"]
            url = f"{management_url}/table/{metadata['table-uuid']}"
        elif namespace:
            response = (
                http.get(f"{namespaces_url}/{namespace}", params={"returnUuid": "true"}).raise_for_status().json()
            )
            url = f"{management_url}/namespace/{response['namespace-uuid']}"
        http.post(f"{url}/protection", json={"protected": protected}).raise_for_status()

    return set_protection


@pytest.fixture
def guard(warehouse: Resource, server: Props) -> Resource:
    """The guard of a stack with one warehouse under `deletion: purge`."""
    resource = Resource(DeletionGuardProvider())
    resource.up(server=server, warehouses={}, declared={"main": warehouse.id}, purged_warehouses=["main"])
    return resource


@pytest.mark.parametrize(
    ("protected_path", "message"),
    [
        ((), r"warehouse `main` is protected \(set `protected: false` and run `up` first\)"),
        (("sales",), r"warehouse `main` holds protected objects .*: sales\."),
        (("sales", "orders"), r"warehouse `main` holds protected objects .*: sales\.orders\."),
    ],
)
def test_guard_refuses_to_purge_protected_objects(
    guard: Resource,
    make_table: Any,
    warehouse: Resource,
    protect: Protect,
    *,
    protected_path: tuple[str, ...],
    message: str,
) -> None:
    make_table(warehouse.id, "sales", "orders")
    make_table(warehouse.id, "sales", "others")
    protect(*protected_path)
    with pytest.raises(ProtectedError, match=rf"nothing was destroyed, .*{message}"):
        guard.destroy()
    protect(*protected_path, protected=False)
    guard.destroy()


def test_guard_refuses_by_a_state_of_an_earlier_version(warehouse: Resource, server: Props, protect: Protect) -> None:
    guard = Resource(DeletionGuardProvider())
    guard.up(server=server, warehouses={}, declared={"main": warehouse.id})
    protect()
    with pytest.raises(ProtectedError, match="warehouse `main` is protected"):
        guard.destroy()


def test_guard_refuses_purged_tables_of_a_retained_warehouse(
    warehouse: Resource, server: Props, make_table: Any, protect: Protect
) -> None:
    """The warehouse is kept with its other protected objects."""
    make_table(warehouse.id, "sales", "orders")
    make_table(warehouse.id, "sales", "kept")
    protect("sales", "kept")
    protect()
    guard = Resource(DeletionGuardProvider())
    guard.up(
        server=server,
        warehouses={},
        declared={"main": warehouse.id},
        purged_warehouses=[],
        purged_tables={"main": [["sales", "orders"]]},
    )
    guard.provider.delete(guard.id, guard.outs)
    protect("sales", "orders")
    with pytest.raises(ProtectedError, match=r"table `sales\.orders` of warehouse `main` is protected"):
        guard.destroy()


def test_guard_refuses_to_purge_an_inactive_warehouse(guard: Resource, warehouse: Resource, http: httpx.Client) -> None:
    http.post(f"/management/v1/warehouse/{warehouse.id}/deactivate").raise_for_status()
    with pytest.raises(CannotCountError, match=r"`main` .* is inactive, so protected objects in it cannot be seen"):
        guard.destroy()


@pytest.fixture
def record(server: Props, project_id: str) -> Callable[..., Props]:
    """Return a function that returns the record of a tenant with namespaces and tables."""

    def declare(deletion: str = "purge", **fields: Any) -> Props:
        main = {"bucket": "lake", "key_prefix": "main", "deletion": deletion, **fields}
        return {"server": server, "tenant": project_id, "warehouses": {"main": main}}

    return declare


def test_up_refuses_to_remove_a_protected_warehouse(record: Callable[..., Props], protect: Protect) -> None:
    resource = Resource(TenantRecordProvider())
    resource.up(**record())
    protect()
    with pytest.raises(ProtectedError, match=r"Nothing was changed: .* warehouse `main` is protected"):
        resource.preview(**record() | {"warehouses": {}})
    protect(protected=False)
    assert resource.preview(**record() | {"warehouses": {}}) == "update"


@pytest.mark.parametrize(
    ("protected_path", "message"),
    [
        (("sales",), "namespace `sales` of warehouse `main` is protected"),
        (("sales", "orders"), r"namespace `sales` of warehouse `main` holds protected objects: sales\.orders"),
    ],
)
def test_up_refuses_to_remove_a_protected_namespace(
    *,
    record: Callable[..., Props],
    make_table: Any,
    warehouse: Resource,
    protect: Protect,
    protected_path: tuple[str, ...],
    message: str,
) -> None:
    make_table(warehouse.id, "sales", "orders")
    resource = Resource(TenantRecordProvider())
    resource.up(**record(namespaces=["logs", "sales"], tables={"sales.orders": "purge"}))
    protect(*protected_path)
    with pytest.raises(ProtectedError, match=message):
        resource.preview(**record(namespaces=["logs"]))
    assert resource.preview(**record(namespaces=["sales"], tables={"sales.orders": "retain"})) == "update"


def test_up_refuses_to_remove_a_protected_table(
    record: Callable[..., Props], make_table: Any, warehouse: Resource, protect: Protect
) -> None:
    """A renamed table is kept. A table with `retain` remains on the server."""
    make_table(warehouse.id, "sales", "orders")
    make_table(warehouse.id, "sales", "kept")
    protect("sales", "orders")
    protect("sales", "kept")
    resource = Resource(TenantRecordProvider())
    tables = {"sales.orders": "purge", "sales.kept": "retain"}
    resource.up(**record(namespaces=["sales"], tables=tables))
    with pytest.raises(
        ProtectedError, match=r"changed: at \S+ table `sales\.orders` of warehouse `main` is protected\."
    ):
        resource.preview(**record(namespaces=["sales"]))
    renamed = record(namespaces=["sales"], tables={"sales.sold": "purge"}, renamed_tables=["sales.orders"])
    assert resource.preview(**renamed) == "update"


def test_up_refuses_to_replace_around_protected_objects(
    warehouse: Resource, warehouse_props: Props, make_table: Any, protect: Protect
) -> None:
    """A replacement drops the dependents of the warehouse before the warehouse itself."""
    make_table(warehouse.id, "sales", "orders")
    warehouse.up(**warehouse_props, deletion="purge")
    protect("sales", "orders")
    moved = warehouse_props | {"storage": warehouse_props["storage"] | {"bucket": "another"}}
    with pytest.raises(ProtectedError, match=r"would be replaced, .* holds protected objects .*: sales\.orders"):
        warehouse.preview(**moved, deletion="purge")


def test_protected_namespace_keeps_its_tables(
    warehouse: Resource, server: Props, make_table: Any, protect: Protect, http: httpx.Client
) -> None:
    """Without the guard, too: the server refuses the namespace only after its tables are dropped."""
    namespace = Resource(NamespaceProvider())
    namespace.up(server=server, warehouse_id=warehouse.id, name="sales", deletion="purge")
    make_table(warehouse.id, "sales", "orders")
    protect("sales")
    with pytest.raises(ProtectedError, match="nothing in it was deleted, because these are protected: sales"):
        namespace.destroy()
    assert http.head(f"/catalog/v1/{warehouse.id}/namespaces/sales/tables/orders").status_code == 204
