"""The cost of a refresh in calls to the server: a list if it has the declared values, else a call per object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    ForbiddenError,
    NoSuchPathError,
    ResponseTimeoutError,
    UnconfirmedError,
)
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.resource import Props, Resource

AT_ONCE = 4
"""Concurrent calls of an engine in one provider process."""


@pytest.fixture
def count_calls(light: httpx.Client) -> Callable[[Callable[[], Any]], Counter[str]]:
    """Return a function that runs an action and returns its calls to the server."""

    def count_calls(action: Callable[[], Any]) -> Counter[str]:
        light.delete("/sandbox/v1/calls")
        run_context.current().lists.forget()
        action()
        run_context.current().lists.forget()
        server_calls = light.get("/sandbox/v1/calls").json()["calls"]
        return Counter(f"{item['method']} {item['path']}" for item in server_calls)

    return count_calls


@pytest.fixture
def create_warehouse(light_project: Props) -> Callable[..., Resource]:
    def warehouse(name: str, **changes: Any) -> Resource:
        storage = {"bucket": "lake", "key_prefix": name, "region": "us-east-1", "flavor": "s3-compat"}
        resource = Resource(WarehouseProvider())
        resource.up(**light_project | {"name": name, "storage": storage} | changes)
        return resource

    return warehouse


def create_namespace(warehouse: Resource, name: str, **props: Any) -> Resource:
    resource = Resource(NamespaceProvider())
    resource.up(server=warehouse.inputs["server"], warehouse_id=warehouse.id, name=name, **props)
    return resource


def read_all(resources: list[Resource]) -> None:
    """Read all resources as an engine refreshes them, several at a time in any order; none has changed."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for same in pool.map(
            lambda resource: resource.provider.read(resource.id, resource.outs).outs == resource.outs, resources
        ):
            assert same


@pytest.mark.long
def test_refresh_of_100_warehouses_and_300_namespaces(
    create_warehouse: Any, count_calls: Any, light_project: Props
) -> None:
    """It costs one list for each level."""
    warehouses = [create_warehouse(f"w{number:03}") for number in range(100)]
    namespaces = [create_namespace(warehouse, name) for warehouse in warehouses for name in ("a", "b", "c")]
    project = Resource(ProjectProvider())
    project_id = light_project["project_id"]
    project.up(**light_project, name=project_id, adopt=True)
    call_counts = count_calls(lambda: read_all([project, *warehouses, *namespaces]))
    assert call_counts["GET /management/v1/project-list"] == 1
    assert 1 <= call_counts.pop("GET /management/v1/warehouse") <= 3  # Another list once a second has passed.
    assert sum(call_counts.values()) <= 1 + 100 + 2
    assert call_counts[f"GET /catalog/v1/{warehouses[0].id}/namespaces"] == 1


@pytest.mark.since("0.14")
def test_inactive_warehouses_are_listed_too(create_warehouse: Any, count_calls: Any) -> None:
    inactive_warehouses = [create_warehouse(f"w{number}", active=False) for number in range(3)]
    assert count_calls(lambda: read_all(inactive_warehouses)) == {"GET /management/v1/warehouse": 1}


def test_one_list_for_each_level_of_namespaces(create_warehouse: Any, count_calls: Any) -> None:
    warehouse = create_warehouse("main")
    levels = [create_namespace(warehouse, name, protected=False) for name in ("a", "b", "a.x", "a.y", "b.x")]
    assert count_calls(lambda: read_all(levels)) == {f"GET /catalog/v1/{warehouse.id}/namespaces": 3}


def test_namespace_with_properties_costs_one_more_call(create_warehouse: Any, count_calls: Any) -> None:
    """Lists have no properties, so a namespace that declares properties is read by itself."""
    warehouse = create_warehouse("main")
    spaces = [create_namespace(warehouse, "plain"), create_namespace(warehouse, "rich", properties={"owner": "a"})]
    root = f"/catalog/v1/{warehouse.id}/namespaces"
    assert count_calls(lambda: read_all(spaces)) == {f"GET {root}": 1, f"GET {root}/rich": 1}


def test_object_missing_from_a_list_is_read_before_it_is_gone(
    create_warehouse: Any, count_calls: Any, light: httpx.Client
) -> None:
    """Lists are filtered by rights: a warehouse that may be read and not listed exists."""
    warehouse = create_warehouse("main")
    path = "/management/v1/warehouse"
    refused = {"method": "GET", "path": path, "action": "answer", "status": 403, "type": "ProjectActionForbidden"}
    light.put("/sandbox/v1/faults", json=[refused]).raise_for_status()
    assert count_calls(lambda: read_all([warehouse] * 3)) == {f"GET {path}": 1, f"GET {path}/{warehouse.id}": 3}
    light.delete("/sandbox/v1/faults")
    light.delete(f"{path}/{warehouse.id}").raise_for_status()
    call_counts = count_calls(lambda: warehouse.provider.read(warehouse.id, warehouse.outs))
    assert call_counts == {f"GET {path}": 1, f"GET {path}/{warehouse.id}": 1}
    assert warehouse.refresh() == "delete"


@pytest.fixture
def no_retry_delay(light_project: Props, use_client: Callable[..., Client]) -> None:
    """Retry at once, so that a test of calls that keep failing is short."""
    use_client(light_project["server"])


@pytest.mark.usefixtures("no_retry_delay")
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"status": 403, "type": "WarehouseActionForbidden"}, ForbiddenError),
        ({"status": 404, "body": "text"}, NoSuchPathError),
        ({"status": 408}, ResponseTimeoutError),
        ({"status": 502, "body": "text"}, UnconfirmedError),
    ],
    ids=["403", "404 of a proxy", "408", "502"],
)
def test_refusal_or_timeout_is_an_error_and_never_gone(
    create_warehouse: Any, light: httpx.Client, fault: Props, error: type[Exception]
) -> None:
    warehouse = create_warehouse("main")
    rule = {"method": "GET", "path": "/management/v1/warehouse*", "action": "answer", "count": None, **fault}
    light.put("/sandbox/v1/faults", json=[rule]).raise_for_status()
    with pytest.raises(error, match="GET /management/v1/warehouse"):
        warehouse.refresh()


def test_write_between_two_reads_refreshes_the_list(create_warehouse: Any, count_calls: Any) -> None:
    first = create_warehouse("first")

    def read_write_read() -> None:
        read_all([first])
        create_warehouse("second")
        read_all([first])

    # One of the three calls is the creation's lookup of a warehouse of that name.
    assert count_calls(read_write_read)["GET /management/v1/warehouse"] == 3
