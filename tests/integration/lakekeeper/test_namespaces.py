"""Namespaces beyond the recordings: drops, moves, locations."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from tests.integration.lakekeeper.rules import get_refusal

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


class WarehouseRequests:
    """Requests to one warehouse."""

    def __init__(self, client: httpx.Client, warehouse: str) -> None:
        self.client = client
        self.management = f"/management/v1/warehouse/{warehouse}"
        self.namespaces = f"/catalog/v1/{warehouse}/namespaces"

    def create(self, *path: str, **properties: str) -> httpx.Response:
        return self.client.post(self.namespaces, json={"namespace": path, "properties": properties})

    def read_id(self, *path: str) -> str:
        return self.get(*path)["properties"]["namespace_id"]

    def get(self, *path: str) -> dict[str, Any]:
        return self.client.get(f"{self.namespaces}/{'%1F'.join(path)}").json()

    def drop(self, *path: str, **params: str) -> httpx.Response:
        return self.client.delete(f"{self.namespaces}/{'%1F'.join(path)}", params=params)

    def protect(self, kind: str, object_id: str) -> None:
        url = f"{self.management}/{kind}/{object_id}/protection"
        self.client.post(url, json={"protected": True}).raise_for_status()

    def move(self, *path: str, to: list[str], **more: Any) -> httpx.Response:
        url = f"{self.management}/namespace/{self.read_id(*path)}/move"
        return self.client.post(url, json={"destination": to, **more})


@pytest.fixture(scope="module")
def warehouse(lakekeeper: httpx.Client, make_warehouse: Any) -> WarehouseRequests:
    return WarehouseRequests(lakekeeper, make_warehouse(lakekeeper, "namespaces"))


@pytest.fixture
def name() -> str:
    return f"n{uuid.uuid4().hex[:8]}"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ([], "InvalidNamespace"),
        (["a", "b", "c", "d", "e", "f"], "NamespaceDepthExceeded"),
        (["a", ""], "NamespacePartEmpty"),
        (["a+b"], "InvalidNamespace"),
        (["SYSTEM"], "ReservedNamespace"),
    ],
)
def test_invalid_paths_are_refused(warehouse: WarehouseRequests, path: list[str], kind: str) -> None:
    assert get_refusal(warehouse.create(*path)) == (400, kind)


def test_a_name_with_a_space_is_found_by_plus(warehouse: WarehouseRequests, name: str) -> None:
    warehouse.create(f"{name} x").raise_for_status()
    assert warehouse.get(f"{name}+x")["namespace"] == [f"{name} x"]


def test_names_keep_their_case_and_are_found_in_any(warehouse: WarehouseRequests, name: str) -> None:
    warehouse.create(f"{name}Ä").raise_for_status()
    assert warehouse.get(f"{name}ä".upper())["namespace"] == [f"{name}ä".upper()]  # as requested
    assert [f"{name}Ä"] in warehouse.client.get(warehouse.namespaces).json()["namespaces"]
    child = warehouse.create(f"{name}ä", "Child").json()
    assert warehouse.get(f"{name}Ä", "child")["namespace"] == [f"{name}Ä", "child"]
    assert child["namespace"][-1] == "Child"


def test_a_custom_location_holds_the_namespaces_tables(warehouse: WarehouseRequests, name: str) -> None:
    base = warehouse.create(name).json()["properties"]["location"]
    placed = warehouse.create(f"{name}-placed", location=f"{base}/{name}").json()
    assert placed["properties"]["location"] == f"{base}/{name}/"
    table = {"name": "t", "schema": SCHEMA}
    response = warehouse.client.post(f"{warehouse.namespaces}/{name}-placed/tables", json=table).json()
    assert response["metadata"]["location"] == f"{base}/{name}/{response['metadata']['table-uuid']}"
    assert get_refusal(warehouse.create(f"{name}-out", location="s3://elsewhere/x")) == (400, "InvalidLocation")


def test_malformed_location_of_a_namespace_is_refused(warehouse: WarehouseRequests, name: str) -> None:
    base = warehouse.create(name).json()["properties"]["location"]
    response = warehouse.create(f"{name}-up", location=f"{base}/a/../b")
    assert get_refusal(response) == (400, "ConfigLocationParseError")


def test_protection_stops_a_drop_unless_forced(warehouse: WarehouseRequests, name: str) -> None:
    warehouse.create(name).raise_for_status()
    warehouse.create(name, "child").raise_for_status()
    table = {"name": "t", "schema": SCHEMA}
    url = f"{warehouse.namespaces}/{name}%1Fchild/tables"
    table_id = warehouse.client.post(url, json=table).json()["metadata"]["table-uuid"]
    warehouse.protect("table", table_id)
    assert get_refusal(warehouse.drop(name, recursive="true")) == (409, "ChildTabularProtected")
    warehouse.protect("namespace", warehouse.read_id(name, "child"))
    assert get_refusal(warehouse.drop(name, recursive="true")) == (409, "ChildNamespaceProtected")
    warehouse.protect("namespace", warehouse.read_id(name))
    assert get_refusal(warehouse.drop(name, recursive="true")) == (409, "NamespaceProtected")
    assert warehouse.drop(name, recursive="true", force="true").status_code == 204


def test_a_move_takes_the_contents_along(warehouse: WarehouseRequests, name: str) -> None:
    for path in ([name], [f"{name}-to"]):
        warehouse.create(*path).raise_for_status()
    warehouse.client.post(f"{warehouse.namespaces}/{name}/tables", json={"name": "t", "schema": SCHEMA})
    target, namespace_id = [f"{name}-to", "Moved"], warehouse.read_id(name)
    url = f"{warehouse.management}/namespace/{namespace_id}/move"
    first_response, second_response = (
        warehouse.client.post(url, json={"destination": target}).json() for _ in range(2)
    )
    parent = warehouse.read_id(f"{name}-to")
    assert (
        first_response
        == second_response
        == {"namespace": target, "namespace-id": namespace_id, "parent-namespace-id": parent}
    )
    tables = warehouse.client.get(f"{warehouse.namespaces}/{'%1F'.join(target)}/tables").json()["identifiers"]
    assert tables == [{"namespace": target, "name": "t"}]


def test_invalid_moves_are_refused(warehouse: WarehouseRequests, name: str) -> None:
    for path in ([name], [name, "child"], [f"{name}-other"]):
        warehouse.create(*path).raise_for_status()
    assert get_refusal(warehouse.move(name, to=["elsewhere"])) == (409, "NamespaceHasChildren")
    assert get_refusal(warehouse.move(f"{name}-other", to=[name])) == (409, "AlreadyExistsException")
    assert get_refusal(warehouse.move(f"{name}-other", to=["missing", "x"])) == (404, "NoSuchNamespaceException")
    assert get_refusal(warehouse.move(f"{name}-other", to=[f"{name}-other", "x"])) == (
        400,
        "NamespaceCannotMoveIntoSelf",
    )
    warehouse.protect("namespace", warehouse.read_id(f"{name}-other"))
    assert get_refusal(warehouse.move(f"{name}-other", to=["x"])) == (409, "NamespaceProtected")
    assert warehouse.move(f"{name}-other", to=[f"{name}-forced"], force=True).status_code == 200
    assert warehouse.move(f"{name}-forced", to=["y"], unknown=1).status_code == 422
