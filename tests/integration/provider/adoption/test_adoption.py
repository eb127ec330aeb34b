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
        self._real, self._when, self._call, self._remaining = httpx.HTTPTransport(), when, (method, path), times
        self.arrived = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        hit = (request.method, request.url.path) == self._call
        if hit and self._remaining and self._when == "before":
            self._remaining -= 1
            raise httpx.ReadError("broken", request=request)
        response = self._real.handle_request(request)
        response.read()
        self.arrived += hit
        if hit and self._remaining:
            self._remaining -= 1
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

    def __init__(self, path: str, failing_lookups: int) -> None:
        super().__init__("after", "POST", path)
        self._failing_lookups = failing_lookups

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET" and request.url.path == self._call[1] and self._failing_lookups:
            self._failing_lookups -= 1
            return httpx.Response(403, json={"error": {"type": "Forbidden", "message": "no", "code": 403}})
        return super().handle_request(request)


def list_warehouse_names(http: httpx.Client, project_id: str) -> list[str]:
    warehouses = http.get("/management/v1/warehouse", headers={"x-project-id": project_id}).json()["warehouses"]
    return [item["name"] for item in warehouses]


def test_killed_create_of_warehouse_is_adopted(
    warehouse: Resource, warehouse_props: Props, report_interrupted_create: Any
) -> None:
    report_interrupted_create("Warehouse", warehouse_props)
    adopted = Resource(WarehouseProvider())
    assert adopted.up(**warehouse_props | {"delete_profile": {"type": "soft", "expiration_seconds": 60}}) == "create"
    assert adopted.id == warehouse.id
    assert adopted.refresh() == "same"


@pytest.mark.parametrize("other", [{"key_prefix": "elsewhere"}, {"region": "eu-west-1"}], ids=str)
def test_killed_create_at_another_location_is_not_adopted(
    warehouse: Resource, warehouse_props: Props, other: Props, report_interrupted_create: Any
) -> None:
    other_warehouse = warehouse_props | {"storage": warehouse_props["storage"] | other}
    report_interrupted_create("Warehouse", other_warehouse)
    with pytest.raises(NotOwnedError, match=r"in project .* exists already, at .* `adopt=True`"):
        Resource(WarehouseProvider()).up(**other_warehouse)


def test_existing_equal_warehouse_needs_adopt(warehouse: Resource, warehouse_props: Props) -> None:
    """Name and location are no proof: another stack may have created the warehouse and protect its contents."""
    refusal = Resource(WarehouseProvider()).refusal(**warehouse_props)
    assert "this stack did not make it" in refusal
    assert "`adopt=True`" in refusal
    assert "run `lakewright up`" in refusal, "no engine reported what this stack began to create"


@pytest.mark.parametrize(
    "other", [{"name": "other"}, {"project_id": "other"}, {"server": "http://127.0.0.1:9"}], ids=str
)
def test_pending_creation_of_another_object_is_no_proof(
    warehouse: Resource, warehouse_props: Props, other: Props, report_interrupted_create: Any
) -> None:
    if "server" in other:
        other = {"server": {"endpoint": other["server"]}}
    report_interrupted_create("Warehouse", warehouse_props | other)
    refusal = Resource(WarehouseProvider()).refusal(**warehouse_props)
    assert "run `lakewright up`" not in refusal, "it was `lakewright up` that reported"


def test_pending_creation_of_another_kind_is_no_proof(
    warehouse: Resource, warehouse_props: Props, report_interrupted_create: Any
) -> None:
    report_interrupted_create("Role", warehouse_props)
    Resource(WarehouseProvider()).refusal(**warehouse_props)


@pytest.mark.since("0.12")
def test_adoption_updates_the_region_but_not_the_prefix(
    warehouse: Resource, warehouse_props: Props, key_prefix: str
) -> None:
    adopted = Resource(WarehouseProvider())
    props_in_other_region = warehouse_props | {
        "storage": warehouse_props["storage"] | {"region": "eu-west-1"},
        "adopt": True,
    }
    assert adopted.up(**props_in_other_region) == "create"
    assert adopted.id == warehouse.id
    assert adopted.refresh() == "same"
    props_at_other_prefix = warehouse_props | {
        "storage": warehouse_props["storage"] | {"key_prefix": "x"},
        "adopt": True,
    }
    refused = Resource(WarehouseProvider()).failures(**props_at_other_prefix)["adopt"]
    assert f"exists already, and the server cannot change storage.key_prefix: '{key_prefix}' -> 'x'" in refused


@pytest.mark.parametrize("when", ["before", "after"])
def test_lost_response_makes_no_second_warehouse(
    when: str, warehouse_props: Props, project_id: str, http: httpx.Client, use_transport: Any
) -> None:
    transport = use_transport(LosingTransport(when, "POST", "/management/v1/warehouse"))
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**warehouse_props)
    assert transport.arrived == 1
    assert list_warehouse_names(http, project_id) == ["main"]
    assert warehouse.up(**warehouse_props) == "same"


@pytest.mark.parametrize("when", ["before", "after"])
def test_lost_response_makes_no_second_namespace(
    when: str, warehouse: Resource, server: Props, http: httpx.Client, use_transport: Any
) -> None:
    transport = use_transport(LosingTransport(when, "POST", f"/catalog/v1/{warehouse.id}/namespaces"))
    namespace = Resource(NamespaceProvider())
    namespace.up(server=server, warehouse_id=warehouse.id, name="sales", properties={"owner": "a"})
    assert transport.arrived == 1
    assert http.get(f"/catalog/v1/{warehouse.id}/namespaces").json()["namespaces"] == [["sales"]]


@pytest.mark.parametrize("when", ["before", "after"])
def test_lost_response_makes_no_second_project(when: str, server: Props, unique: str, use_transport: Any) -> None:
    transport = use_transport(LosingTransport(when, "POST", "/management/v1/project"))
    project = Resource(ProjectProvider())
    project.up(server=server, project_id=unique, name="tenant")
    assert transport.arrived == 1
    assert project.refresh() == "same"


def test_broken_connection_is_reported_in_one_sentence(warehouse_props: Props, use_transport: Any) -> None:
    use_transport(LosingTransport("before", "POST", "/management/v1/warehouse", times=99))
    with pytest.raises(UnconfirmedError, match=r"POST /management/v1/warehouse at http://.*: the connection was lost"):
        Resource(WarehouseProvider()).up(**warehouse_props)


def test_half_made_warehouse_is_finished_by_the_next_up(
    warehouse_props: Props, http: httpx.Client, report_interrupted_create: Any
) -> None:
    """The kill comes between the creation and the calls that follow it."""
    interrupted_warehouse, finished_warehouse = Resource(WarehouseProvider()), Resource(WarehouseProvider())
    interrupted_warehouse.up(**warehouse_props)
    report_interrupted_create("Warehouse", warehouse_props)
    assert finished_warehouse.up(**warehouse_props | {"protected": True, "active": False}) == "create"
    assert finished_warehouse.id == interrupted_warehouse.id
    live_warehouse = http.get(f"/management/v1/warehouse/{finished_warehouse.id}").json()
    assert (live_warehouse["protected"], live_warehouse["status"]) == (True, "inactive")


def test_warehouse_with_contents_is_not_adopted(
    warehouse: Resource, warehouse_props: Props, http: httpx.Client, report_interrupted_create: Any
) -> None:
    """A leftover pending creation must not adopt an object that another stack created later."""
    http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["sales"]}).raise_for_status()
    report_interrupted_create("Warehouse", warehouse_props)
    assert "with contents: sales" in Resource(WarehouseProvider()).refusal(**warehouse_props)


def test_namespace_with_contents_is_not_adopted(
    warehouse: Resource, server: Props, http: httpx.Client, report_interrupted_create: Any
) -> None:
    namespace_props: Props = {"server": server, "warehouse_id": warehouse.id, "name": "sales"}
    for levels in (["sales"], ["sales", "daily"]):
        http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": levels}).raise_for_status()
    report_interrupted_create("Namespace", namespace_props)
    assert "with contents: sales.daily" in Resource(NamespaceProvider()).refusal(**namespace_props)


def test_project_with_warehouses_is_not_adopted(
    warehouse: Resource, server: Props, project_id: str, report_interrupted_create: Any
) -> None:
    project_props: Props = {"server": server, "project_id": project_id, "name": project_id}
    report_interrupted_create("Project", project_props)
    assert "with warehouses: main" in Resource(ProjectProvider()).refusal(**project_props)


def test_missing_creations_file_counts_as_unreported(
    warehouse: Resource, warehouse_props: Props, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(pending.FILE, str(tmp_path / "gone.json"))
    assert "run `lakewright up`" in Resource(WarehouseProvider()).refusal(**warehouse_props)


def test_pending_creation_of_another_project_is_no_proof(
    warehouse: Resource, warehouse_props: Props, report_interrupted_create: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    report_interrupted_create("Warehouse", warehouse_props)
    monkeypatch.setenv(pending.PROJECT, "another")
    Resource(WarehouseProvider()).refusal(**warehouse_props)


@pytest.mark.parametrize("kind", ["project", "warehouse"])
def test_repeated_post_is_not_called_another_stacks(
    kind: str, warehouse_props: Props, unique: str, use_transport: Any
) -> None:
    """A gateway sent the POST twice, so the response says that this very object exists."""
    use_transport(RepeatingTransport(f"/management/v1/{kind}"))
    other: Props = {"server": warehouse_props["server"], "project_id": f"{unique}-2", "name": "tenant"}
    resource = Resource(WarehouseProvider() if kind == "warehouse" else ProjectProvider())
    with pytest.raises(NotOwnedError) as refused:
        resource.up(**(warehouse_props if kind == "warehouse" else other))
    assert "did not exist when this run looked for it" in str(refused.value)
    assert "a gateway sent this run's request twice" in str(refused.value)
    assert "`adopt: true`" in str(refused.value)
    assert "this stack did not make it" not in str(refused.value)


def test_lost_response_without_lookup_does_not_adopt(
    warehouse: Resource, warehouse_props: Props, use_transport: Any
) -> None:
    """An equal warehouse of another stack exists, the lookup failed, and the response to the creation is lost."""
    use_transport(LosingTransportWithoutLookup("/management/v1/warehouse", failing_lookups=1))
    with pytest.raises(NotOwnedError, match="exists already, and this stack did not make it"):
        Resource(WarehouseProvider()).up(**warehouse_props)


def test_nothing_is_created_when_every_lookup_fails(
    warehouse_props: Props, project_id: str, http: Any, use_transport: Any
) -> None:
    transport = use_transport(LosingTransportWithoutLookup("/management/v1/warehouse", failing_lookups=2))
    with pytest.raises(LakekeeperError, match=r"Nothing was created: it is not known whether warehouse `main`"):
        Resource(WarehouseProvider()).up(**warehouse_props)
    assert transport.arrived == 0
    assert list_warehouse_names(http, project_id) == []
