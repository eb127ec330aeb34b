"""Namespaces: nested, with properties, location and protection."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import NotEmptyError, ProtectedError
from lakewright.lakekeeper.provider.errors import CannotCountError, HoldsTablesError
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider

from tests.integration.provider.resource import Props, Resource

VIEW: Props = {
    "name": "daily",
    "schema": {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "int"}]},
    "view-version": {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": ["sales"],
        "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1 AS id"}],
    },
    "properties": {},
}
"""A view whose default namespace is `sales`."""


@pytest.fixture
def namespace_props(warehouse: Resource, server: Props) -> Props:
    """A declared namespace."""
    return {"server": server, "warehouse_id": warehouse.id, "name": "sales", "properties": {"owner": "a"}}


@pytest.fixture
def namespace(namespace_props: Props) -> Resource:
    resource = Resource(NamespaceProvider())
    resource.up(**namespace_props)
    return resource


def properties(http: httpx.Client, namespace_props: Props, path: str = "sales") -> Props:
    return (
        http.get(f"/catalog/v1/{namespace_props['warehouse_id']}/namespaces/{path}")
        .raise_for_status()
        .json()["properties"]
    )


def test_namespace_is_created_and_read(namespace: Resource, namespace_props: Props, http: httpx.Client) -> None:
    assert namespace.id == f"{namespace_props['warehouse_id']}/sales"
    assert namespace.outs["namespace_id"] == properties(http, namespace_props)["namespace_id"]
    assert namespace.up(**namespace_props) == "same"
    assert namespace.refresh() == "same"


def test_properties_change_in_place(namespace: Resource, namespace_props: Props, http: httpx.Client) -> None:
    assert namespace.up(**namespace_props | {"properties": {"owner": "b", "note": "n"}}) == "update"
    assert properties(http, namespace_props).items() >= {"owner": "b", "note": "n"}.items()
    assert namespace.up(**namespace_props | {"properties": {}}) == "update"
    assert properties(http, namespace_props).keys() == {"location", "namespace_id"}
    assert namespace.refresh() == "same"


def test_property_drift_is_restored(namespace: Resource, namespace_props: Props, http: httpx.Client) -> None:
    body = {"updates": {"owner": "another", "extra": "x"}, "removals": []}
    http.post(
        f"/catalog/v1/{namespace_props['warehouse_id']}/namespaces/sales/properties", json=body
    ).raise_for_status()
    assert namespace.refresh() == "update"
    assert namespace.up(**namespace_props) == "update"
    assert properties(http, namespace_props)["owner"] == "a"
    assert "extra" not in properties(http, namespace_props)


def test_protection_is_set_and_its_drift_restored(
    namespace: Resource, namespace_props: Props, http: httpx.Client
) -> None:
    assert namespace.up(**namespace_props | {"protected": True}) == "update"
    assert namespace.refresh() == "same"
    ns_id = namespace.outs["namespace_id"]
    url = f"/management/v1/warehouse/{namespace_props['warehouse_id']}/namespace/{ns_id}/protection"
    http.post(url, json={"protected": False}).raise_for_status()
    assert namespace.refresh() == "update"
    assert namespace.up(**namespace_props | {"protected": True}) == "update"
    with pytest.raises(ProtectedError):
        namespace.destroy()


def test_nested_namespace_is_deleted_with_its_parent(
    namespace: Resource, namespace_props: Props, http: httpx.Client
) -> None:
    child = Resource(NamespaceProvider())
    assert child.up(**namespace_props | {"name": "sales.daily"}) == "create"
    assert child.refresh() == "same"
    http.delete(f"/catalog/v1/{namespace_props['warehouse_id']}/namespaces/sales%1Fdaily").raise_for_status()
    assert child.refresh() == "delete"
    assert child.up(**namespace_props | {"name": "sales.daily"}) == "create"


def test_another_name_or_location_replaces(namespace: Resource, namespace_props: Props, storage: Props) -> None:
    base = f"s3://{storage['bucket']}/{storage['key_prefix']}"
    assert namespace.up(**namespace_props | {"location": f"{base}/here/"}) == "replace"
    assert namespace.refresh() == "same"
    assert namespace.up(**namespace_props | {"location": f"{base}/here"}) == "same"
    assert namespace.up(**namespace_props | {"name": "other"}) == "replace"


def test_preview_refuses_to_replace_a_namespace_with_tables(
    namespace: Resource, namespace_props: Props, make_table: Any
) -> None:
    make_table(namespace_props["warehouse_id"], "sales.daily", "orders")
    with pytest.raises(HoldsTablesError, match=r"1 table: sales\.daily\.orders"):
        namespace.preview(**namespace_props | {"name": "other"})


def test_all_mistakes_are_reported_with_their_properties(namespace_props: Props) -> None:
    failures = Resource(NamespaceProvider()).failures(
        **namespace_props
        | {"name": "system.x", "properties": {"location": "s3://b/x"}, "deletion": "never", "wrong": 1}
    )
    assert failures.keys() == {"name", "properties", "deletion", "wrong"}
    assert "reserved" in failures["name"]
    assert "use `location`" in failures["properties"]


def test_dropping_a_namespace_with_tables_needs_purge(
    namespace: Resource, namespace_props: Props, make_table: Any, http: httpx.Client, objects: Any
) -> None:
    make_table(namespace_props["warehouse_id"], "sales", "orders")
    with pytest.raises(HoldsTablesError, match=r"1 table: sales\.orders"):
        namespace.destroy()
    namespace.up(**namespace_props | {"deletion": "purge"})
    namespace.destroy()
    assert http.get(f"/catalog/v1/{namespace_props['warehouse_id']}/namespaces/sales").status_code == 404


def test_server_refuses_to_drop_a_namespace_with_children(namespace: Resource, namespace_props: Props) -> None:
    Resource(NamespaceProvider()).up(**namespace_props | {"name": "sales.daily"})
    with pytest.raises(NotEmptyError, match=r"1 child namespace|not empty"):
        namespace.destroy()


@pytest.mark.parametrize("deletion", ["protect", "purge"])
def test_views_with_the_default_namespace_are_named(
    namespace: Resource, namespace_props: Props, http: httpx.Client, deletion: str
) -> None:
    namespaces = f"/catalog/v1/{namespace_props['warehouse_id']}/namespaces"
    http.post(namespaces, json={"namespace": ["reports"]}).raise_for_status()
    http.post(f"{namespaces}/reports/views", json=VIEW).raise_for_status()
    namespace.up(**namespace_props | {"deletion": deletion})
    with pytest.raises(NotEmptyError, match=r"the default namespace of these views: reports.daily. Drop the views"):
        namespace.destroy()
    http.delete(f"{namespaces}/reports/views/daily", params={"force": "true"}).raise_for_status()
    namespace.destroy()


def test_retained_namespace_is_kept(namespace: Resource, namespace_props: Props, http: httpx.Client) -> None:
    namespace.up(**namespace_props | {"deletion": "retain"})
    namespace.destroy()
    assert properties(http, namespace_props)["owner"] == "a"


def test_deleting_a_missing_namespace_is_no_error(
    namespace: Resource, namespace_props: Props, http: httpx.Client
) -> None:
    http.delete(f"/catalog/v1/{namespace_props['warehouse_id']}/namespaces/sales").raise_for_status()
    namespace.destroy()


def test_namespace_in_an_inactive_warehouse_is_not_missing(
    namespace: Resource, namespace_props: Props, http: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    http.post(f"/management/v1/warehouse/{namespace_props['warehouse_id']}/deactivate").raise_for_status()
    assert namespace.refresh() == "same"
    assert "cannot be seen while its warehouse" in capsys.readouterr().err
    with pytest.raises(CannotCountError, match="inactive"):
        namespace.destroy()


def test_killed_create_is_adopted(namespace: Resource, namespace_props: Props, report_interrupted_create: Any) -> None:
    report_interrupted_create("Namespace", namespace_props)
    adopted = Resource(NamespaceProvider())
    assert adopted.up(**namespace_props) == "create"
    assert adopted.outs == namespace.outs


def test_different_existing_namespace_needs_adopt(namespace: Resource, namespace_props: Props) -> None:
    other = namespace_props | {"properties": {"owner": "b"}}
    assert "with other properties" in Resource(NamespaceProvider()).refusal(**other)
    assert "adopt=True" in Resource(NamespaceProvider()).refusal(**namespace_props)
    adopted = Resource(NamespaceProvider())
    adopted.up(**other, adopt=True)
    assert adopted.refresh() == "same"
