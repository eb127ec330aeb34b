"""Creations whose end the engine never saw: killed after the server committed, or with a lost response."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import LakekeeperError, UnconfirmedError
from lakewright.lakekeeper.provider import pending_creations as pending
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.resource import Props, Resource


class LosingTransport(httpx.BaseTransport):
    """A transport on which connections break: `before` the request arrives, or `after` the response."""

    def __init__(self, when: str, method: str, path: str, times: int = 1) -> None:
        self._real, self._when, self._call, self._left = httpx.HTTPTransport(), when, (method, path), times
        self.arrived = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        hit = (request.method, request.url.path) == self._call
        if hit and self._left and self._when == "before":
            self._left -= 1
            raise httpx.ReadError("broken", request=request)
        response = self._real.handle_request(request)
        response.read()
        self.arrived += hit
        if hit and self._left:
            self._left -= 1
            raise httpx.RemoteProtocolError("broken", request=request)
        return response


class RepeatingTransport(httpx.BaseTransport):
    """A transport on which a gateway sends one POST twice and returns the second response."""

    def __init__(self, path: str) -> None:
        self._real, self._path = httpx.HTTPTransport(), path

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if (request.method, request.url.path) == ("POST", self._path):
            self._real.handle_request(request).read()
        return self._real.handle_request(request)


class LosingTransportWithoutLookup(LosingTransport):
    """A losing transport on which the lookup before the creation also fails, once."""

    def __init__(self, path: str, looks: int) -> None:
        super().__init__("after", "POST", path)
        self._looks = looks

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET" and request.url.path == self._call[1] and self._looks:
            self._looks -= 1
            return httpx.Response(403, json={"error": {"type": "Forbidden", "message": "no", "code": 403}})
        return super().handle_request(request)


def names(http: httpx.Client, project_id: str) -> list[str]:
    found = http.get("/management/v1/warehouse", headers={"x-project-id": project_id}).json()["warehouses"]
    return [item["name"] for item in found]


def test_killed_create_of_warehouse_is_adopted(warehouse: Resource, declared: Props, interrupted: Any) -> None:
    interrupted("Warehouse", declared)
    again = Resource(WarehouseProvider())
    assert again.up(**declared | {"delete_profile": {"type": "soft", "expiration_seconds": 60}}) == "create"
    assert again.id == warehouse.id
    assert again.refresh() == "same"


@pytest.mark.parametrize("other", [{"key_prefix": "elsewhere"}, {"region": "eu-west-1"}], ids=str)
def test_killed_create_at_another_place_is_not_adopted(
    warehouse: Resource, declared: Props, other: Props, interrupted: Any
) -> None:
    stranger = declared | {"storage": declared["storage"] | other}
    interrupted("Warehouse", stranger)
    with pytest.raises(NotOwnedError, match=r"in project .* exists already, at .* `adopt=True`"):
        Resource(WarehouseProvider()).up(**stranger)


def test_existing_equal_warehouse_needs_adopt(warehouse: Resource, declared: Props) -> None:
    """Name and place are no proof: another stack may have made it and protect its contents."""
    refusal = Resource(WarehouseProvider()).refusal(**declared)
    assert "this stack did not make it" in refusal
    assert "`adopt=True`" in refusal
    assert "run `lakewright up`" in refusal, "no engine reported what this stack began to create"


@pytest.mark.parametrize(
    "other", [{"name": "other"}, {"project_id": "other"}, {"server": "http://127.0.0.1:9"}], ids=str
)
def test_pending_creation_of_another_object_is_no_proof(
    warehouse: Resource, declared: Props, other: Props, interrupted: Any
) -> None:
    if "server" in other:
        other = {"server": {"endpoint": other["server"]}}
    interrupted("Warehouse", declared | other)
    refusal = Resource(WarehouseProvider()).refusal(**declared)
    assert "run `lakewright up`" not in refusal, "it was `lakewright up` that reported"


def test_pending_creation_of_another_kind_is_no_proof(warehouse: Resource, declared: Props, interrupted: Any) -> None:
    interrupted("Role", declared)
    Resource(WarehouseProvider()).refusal(**declared)


@pytest.mark.since("0.12")
def test_adoption_updates_the_region_but_not_the_prefix(warehouse: Resource, declared: Props, key_prefix: str) -> None:
    adopted = Resource(WarehouseProvider())
    moved = declared | {"storage": declared["storage"] | {"region": "eu-west-1"}, "adopt": True}
    assert adopted.up(**moved) == "create"
    assert adopted.id == warehouse.id
    assert adopted.refresh() == "same"
    elsewhere = declared | {"storage": declared["storage"] | {"key_prefix": "x"}, "adopt": True}
    refused = Resource(WarehouseProvider()).failures(**elsewhere)["adopt"]
    assert f"exists already, and the server cannot change storage.key_prefix: '{key_prefix}' -> 'x'" in refused


@pytest.mark.parametrize("when", ["before", "after"])
def test_lost_response_makes_no_second_warehouse(
    when: str, declared: Props, project_id: str, http: httpx.Client, use_transport: Any
) -> None:
    way = use_transport(LosingTransport(when, "POST", "/management/v1/warehouse"))
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**declared)
    assert way.arrived == 1
    assert names(http, project_id) == ["main"]
    assert warehouse.up(**declared) == "same"


@pytest.mark.parametrize("when", ["before", "after"])
def test_lost_response_makes_no_second_namespace(
    when: str, warehouse: Resource, server: Props, http: httpx.Client, use_transport: Any
) -> None:
    way = use_transport(LosingTransport(when, "POST", f"/catalog/v1/{warehouse.id}/namespaces"))
    namespace = Resource(NamespaceProvider())
    namespace.up(server=server, warehouse_id=warehouse.id, name="sales", properties={"owner": "a"})
    assert way.arrived == 1
    assert http.get(f"/catalog/v1/{warehouse.id}/namespaces").json()["namespaces"] == [["sales"]]


@pytest.mark.parametrize("when", ["before", "after"])
def test_lost_response_makes_no_second_project(when: str, server: Props, unique: str, use_transport: Any) -> None:
    way = use_transport(LosingTransport(when, "POST", "/management/v1/project"))
    project = Resource(ProjectProvider())
    project.up(server=server, project_id=unique, name="tenant")
    assert way.arrived == 1
    assert project.refresh() == "same"


def test_connection_that_stays_broken_is_one_sentence(declared: Props, use_transport: Any) -> None:
    use_transport(LosingTransport("before", "POST", "/management/v1/warehouse", times=99))
    with pytest.raises(UnconfirmedError, match=r"POST /management/v1/warehouse at http://.*: the connection was lost"):
        Resource(WarehouseProvider()).up(**declared)


def test_half_made_warehouse_is_finished_by_the_next_up(declared: Props, http: httpx.Client, interrupted: Any) -> None:
    """The kill comes between the creation and the calls that follow it."""
    half, whole = Resource(WarehouseProvider()), Resource(WarehouseProvider())
    half.up(**declared)
    interrupted("Warehouse", declared)
    assert whole.up(**declared | {"protected": True, "active": False}) == "create"
    assert whole.id == half.id
    now = http.get(f"/management/v1/warehouse/{whole.id}").json()
    assert (now["protected"], now["status"]) == (True, "inactive")


def test_warehouse_with_contents_is_not_adopted(
    warehouse: Resource, declared: Props, http: httpx.Client, interrupted: Any
) -> None:
    """A leftover pending creation must not adopt what another stack made since."""
    http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["sales"]}).raise_for_status()
    interrupted("Warehouse", declared)
    assert "with contents: sales" in Resource(WarehouseProvider()).refusal(**declared)


def test_namespace_with_contents_is_not_adopted(
    warehouse: Resource, server: Props, http: httpx.Client, interrupted: Any
) -> None:
    declared: Props = {"server": server, "warehouse_id": warehouse.id, "name": "sales"}
    for levels in (["sales"], ["sales", "daily"]):
        http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": levels}).raise_for_status()
    interrupted("Namespace", declared)
    assert "with contents: sales.daily" in Resource(NamespaceProvider()).refusal(**declared)


def test_project_with_warehouses_is_not_adopted(
    warehouse: Resource, server: Props, project_id: str, interrupted: Any
) -> None:
    declared: Props = {"server": server, "project_id": project_id, "name": project_id}
    interrupted("Project", declared)
    assert "with warehouses: main" in Resource(ProjectProvider()).refusal(**declared)


def test_missing_creations_file_counts_as_unreported(
    warehouse: Resource, declared: Props, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(pending.FILE, str(tmp_path / "gone.json"))
    assert "run `lakewright up`" in Resource(WarehouseProvider()).refusal(**declared)


def test_pending_creation_of_another_project_is_no_proof(
    warehouse: Resource, declared: Props, interrupted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted("Warehouse", declared)
    monkeypatch.setenv(pending.PROJECT, "another")
    Resource(WarehouseProvider()).refusal(**declared)


@pytest.mark.parametrize("kind", ["project", "warehouse"])
def test_repeated_post_is_not_called_another_stacks(
    kind: str, declared: Props, unique: str, use_transport: Any
) -> None:
    """A gateway sent the POST twice, so the response says that this very object exists."""
    use_transport(RepeatingTransport(f"/management/v1/{kind}"))
    other: Props = {"server": declared["server"], "project_id": f"{unique}-2", "name": "tenant"}
    resource = Resource(WarehouseProvider() if kind == "warehouse" else ProjectProvider())
    with pytest.raises(NotOwnedError) as refused:
        resource.up(**(declared if kind == "warehouse" else other))
    assert "did not exist when this run looked for it" in str(refused.value)
    assert "a gateway sent this run's request twice" in str(refused.value)
    assert "`adopt: true`" in str(refused.value)
    assert "this stack did not make it" not in str(refused.value)


def test_lost_response_without_lookup_does_not_adopt(warehouse: Resource, declared: Props, use_transport: Any) -> None:
    """An equal warehouse of another stack exists, the lookup failed, and the response to the creation is lost."""
    use_transport(LosingTransportWithoutLookup("/management/v1/warehouse", looks=1))
    with pytest.raises(NotOwnedError, match="exists already, and this stack did not make it"):
        Resource(WarehouseProvider()).up(**declared)


def test_nothing_is_created_when_every_lookup_fails(
    declared: Props, project_id: str, http: Any, use_transport: Any
) -> None:
    way = use_transport(LosingTransportWithoutLookup("/management/v1/warehouse", looks=2))
    with pytest.raises(LakekeeperError, match=r"Nothing was created: it is not known whether warehouse `main`"):
        Resource(WarehouseProvider()).up(**declared)
    assert way.arrived == 0
    assert names(http, project_id) == []
