"""A namespace's life: nested, with properties, location and protection."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.errors import NotEmpty, Protected
from lakewright.lakekeeper.errors import CannotCount, HoldsTables
from lakewright.lakekeeper.namespace import NamespaceProvider

from .conftest import Props, Resource


@pytest.fixture
def space(warehouse: Resource, server: Props) -> Props:
    """A namespace as a program declares it."""
    return {"server": server, "warehouse_id": warehouse.id, "name": "sales", "properties": {"owner": "a"}}


@pytest.fixture
def namespace(space: Props) -> Resource:
    resource = Resource(NamespaceProvider())
    resource.up(**space)
    return resource


def properties(http: httpx.Client, space: Props, path: str = "sales") -> Props:
    return http.get(f"/catalog/v1/{space['warehouse_id']}/namespaces/{path}").raise_for_status().json()["properties"]


def test_made_read_and_left_alone(namespace: Resource, space: Props, http: httpx.Client) -> None:
    assert namespace.id == f"{space['warehouse_id']}/sales"
    assert namespace.outs["namespace_id"] == properties(http, space)["namespace_id"]
    assert namespace.up(**space) == "same"
    assert namespace.refresh() == "same"


def test_properties_are_changed_added_and_removed_in_place(
    namespace: Resource, space: Props, http: httpx.Client
) -> None:
    assert namespace.up(**space | {"properties": {"owner": "b", "note": "n"}}) == "update"
    assert properties(http, space).items() >= {"owner": "b", "note": "n"}.items()
    assert namespace.up(**space | {"properties": {}}) == "update"
    assert properties(http, space).keys() == {"location", "namespace_id"}
    assert namespace.refresh() == "same"


def test_drift_of_properties_is_healed(namespace: Resource, space: Props, http: httpx.Client) -> None:
    body = {"updates": {"owner": "somebody", "extra": "x"}, "removals": []}
    http.post(f"/catalog/v1/{space['warehouse_id']}/namespaces/sales/properties", json=body).raise_for_status()
    assert namespace.refresh() == "update"
    assert namespace.up(**space) == "update"
    assert properties(http, space)["owner"] == "a"
    assert "extra" not in properties(http, space)


def test_protection_is_set_seen_and_healed(namespace: Resource, space: Props, http: httpx.Client) -> None:
    assert namespace.up(**space | {"protected": True}) == "update"
    assert namespace.refresh() == "same"
    ns_id = namespace.outs["namespace_id"]
    url = f"/management/v1/warehouse/{space['warehouse_id']}/namespace/{ns_id}/protection"
    http.post(url, json={"protected": False}).raise_for_status()
    assert namespace.refresh() == "update"
    assert namespace.up(**space | {"protected": True}) == "update"
    with pytest.raises(Protected):
        namespace.destroy()


def test_nested_and_gone(namespace: Resource, space: Props, http: httpx.Client) -> None:
    child = Resource(NamespaceProvider())
    assert child.up(**space | {"name": "sales.daily"}) == "create"
    assert child.refresh() == "same"
    http.delete(f"/catalog/v1/{space['warehouse_id']}/namespaces/sales%1Fdaily").raise_for_status()
    assert child.refresh() == "delete"
    assert child.up(**space | {"name": "sales.daily"}) == "create"


def test_another_name_or_location_replaces(namespace: Resource, space: Props, storage: Props) -> None:
    base = f"s3://{storage['bucket']}/{storage['key_prefix']}"
    assert namespace.up(**space | {"location": f"{base}/here/"}) == "replace"
    assert namespace.refresh() == "same"
    assert namespace.up(**space | {"location": f"{base}/here"}) == "same"
    assert namespace.up(**space | {"name": "other"}) == "replace"


def test_replacing_one_that_holds_tables_is_refused_in_the_preview(
    namespace: Resource, space: Props, make_table: Any
) -> None:
    make_table(space["warehouse_id"], "sales.daily", "orders")
    with pytest.raises(HoldsTables, match=r"1 table: sales\.daily\.orders"):
        namespace.preview(**space | {"name": "other"})


def test_all_mistakes_at_once_each_with_its_property(space: Props) -> None:
    failures = Resource(NamespaceProvider()).failures(
        **space | {"name": "system.x", "properties": {"location": "s3://b/x"}, "deletion": "never", "wrong": 1}
    )
    assert failures.keys() == {"name", "properties", "deletion", "wrong"}
    assert "reserved" in failures["name"]
    assert "use `location`" in failures["properties"]


def test_dropping_one_with_tables_depends_on_deletion(
    namespace: Resource, space: Props, make_table: Any, http: httpx.Client, objects: Any
) -> None:
    make_table(space["warehouse_id"], "sales", "orders")
    with pytest.raises(HoldsTables, match=r"1 table: sales\.orders"):
        namespace.destroy()
    namespace.up(**space | {"deletion": "purge"})
    namespace.destroy()
    assert http.get(f"/catalog/v1/{space['warehouse_id']}/namespaces/sales").status_code == 404


def test_dropping_one_with_children_alone_is_refused_by_the_server(namespace: Resource, space: Props) -> None:
    Resource(NamespaceProvider()).up(**space | {"name": "sales.daily"})
    with pytest.raises(NotEmpty, match=r"1 child namespace|not empty"):
        namespace.destroy()


def test_retained_means_left_alone(namespace: Resource, space: Props, http: httpx.Client) -> None:
    namespace.up(**space | {"deletion": "retain"})
    namespace.destroy()
    assert properties(http, space)["owner"] == "a"


def test_one_that_is_gone_is_dropped_without_complaint(namespace: Resource, space: Props, http: httpx.Client) -> None:
    http.delete(f"/catalog/v1/{space['warehouse_id']}/namespaces/sales").raise_for_status()
    namespace.destroy()


def test_hidden_by_an_inactive_warehouse_is_not_gone(
    namespace: Resource, space: Props, http: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    http.post(f"/management/v1/warehouse/{space['warehouse_id']}/deactivate").raise_for_status()
    assert namespace.refresh() == "same"
    assert "cannot be seen while its warehouse" in capsys.readouterr().err
    with pytest.raises(CannotCount, match="inactive"):
        namespace.destroy()


def test_killed_create_is_taken_over(namespace: Resource, space: Props, interrupted: Any) -> None:
    interrupted("Namespace", space)
    again = Resource(NamespaceProvider())
    assert again.up(**space) == "create"
    assert again.outs == namespace.outs


def test_a_different_one_of_the_name_is_taken_over_only_when_told_to(namespace: Resource, space: Props) -> None:
    other = space | {"properties": {"owner": "b"}}
    assert "with other properties" in Resource(NamespaceProvider()).refusal(**other)
    assert "adopt=True" in Resource(NamespaceProvider()).refusal(**space)
    adopted = Resource(NamespaceProvider())
    adopted.up(**other, adopt=True)
    assert adopted.refresh() == "same"
