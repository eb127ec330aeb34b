"""The server's error responses and the meaning of each: missing, refused, taken, blocked, to be retried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection import errors
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.resource import Props, Resource

ROOT = "/management/v1/warehouse"


@pytest.fixture(autouse=True)
def _no_delays(light_endpoint: str, use_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry at once, and wait for a purge only briefly."""
    use_client({"endpoint": light_endpoint})
    monkeypatch.setenv("LAKEWRIGHT_PURGE_WAIT", "0.1")


@pytest.fixture
def warehouse(light_warehouse: Resource) -> Resource:
    return light_warehouse


@pytest.fixture
def warehouse_props(light_warehouse_props: Props) -> Props:
    return light_warehouse_props


def change_storage(warehouse_props: Props, **changes: Any) -> Props:
    return warehouse_props | {"storage": warehouse_props["storage"] | changes}


def test_deleting_a_missing_warehouse_is_no_error(warehouse: Resource, light: httpx.Client) -> None:
    light.delete(f"{ROOT}/{warehouse.id}").raise_for_status()
    warehouse.destroy()


def refuse(light: httpx.Client, method: str, path: str, status: int, kind: str) -> None:
    rule = {"method": method, "path": path, "action": "answer", "status": status, "type": kind, "count": None}
    light.put("/sandbox/v1/faults", json=[rule]).raise_for_status()


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (403, "WarehouseManaged", errors.ForbiddenError),
        (403, "WarehouseActionForbidden", errors.ForbiddenError),
        (409, "WarehouseProtected", errors.ProtectedError),
        (409, "WarehouseHasUnfinishedTasks", errors.BusyError),
        (409, "WarehouseNotEmpty", errors.NotEmptyError),
    ],
)
def test_reasons_against_deleting_a_warehouse(
    warehouse: Resource, light: httpx.Client, status: int, kind: str, error: type[Exception]
) -> None:
    refuse(light, "DELETE", f"{ROOT}/*", status, kind)
    with pytest.raises(error):
        warehouse.destroy()


def test_warehouse_with_a_namespace_is_not_deleted(warehouse: Resource, light: httpx.Client) -> None:
    light.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["sales"]}).raise_for_status()
    with pytest.raises(errors.NotEmptyError, match="namespaces that are not declared: sales"):
        warehouse.destroy()


READ_PATHS = {
    "project": ("/management/v1/project", "ProjectActionForbidden"),
    "warehouse": (f"{ROOT}*", "WarehouseActionForbidden"),
    "namespace": ("/catalog/v1/*/namespaces*", "NamespaceActionForbidden"),
}


@pytest.fixture
def create_resource(warehouse_props: Props, warehouse: Resource) -> Callable[[str], Resource]:
    def make_resource(kind: str) -> Resource:
        server, project_id = warehouse_props["server"], warehouse_props["project_id"]
        if kind == "project":
            project = Resource(ProjectProvider())
            project.up(server=server, project_id=project_id, name=project_id, adopt=True)
            return project
        if kind == "namespace":
            namespace = Resource(NamespaceProvider())
            namespace.up(server=server, warehouse_id=warehouse.id, name="sales", properties={"owner": "a"})
            return namespace
        return warehouse

    return make_resource


@pytest.mark.parametrize("kind", ["warehouse", "namespace"])
def test_denied_action_is_an_error_that_names_it(create_resource: Any, light: httpx.Client, kind: str) -> None:
    resource = create_resource(kind)
    path, forbidden = READ_PATHS[kind]
    refuse(light, "GET", path, 403, forbidden)
    with pytest.raises(errors.ForbiddenError, match=f"responded with 403 {forbidden}"):
        resource.refresh()


@pytest.mark.parametrize(
    ("kind", "error_type"),
    [
        ("project", "ProjectNotFound"),
        ("warehouse", "NoSuchWarehouseException"),
        ("warehouse", "WarehouseNotFound"),
        ("namespace", "NoSuchNamespaceException"),
    ],
)
def test_each_not_found_type_means_deleted(
    create_resource: Any, light: httpx.Client, kind: str, error_type: str
) -> None:
    resource = create_resource(kind)
    path = READ_PATHS[kind][0]
    rules = [
        {"method": "GET", "path": item, "action": "answer", "status": 404, "type": error_type, "count": None}
        for item in (path, "/management/v1/project-list", f"{ROOT}*")
    ]
    light.put("/sandbox/v1/faults", json=rules).raise_for_status()
    assert resource.refresh() == "delete"


@pytest.mark.parametrize("kind", ["project", "warehouse", "namespace"])
def test_404_of_another_server_is_an_error(create_resource: Any, light: httpx.Client, kind: str) -> None:
    resource = create_resource(kind)
    rules = [
        {"method": "GET", "path": path, "action": "answer", "status": 404, "body": "text", "count": None}
        for path in (READ_PATHS[kind][0], "/management/v1/project-list")
    ]
    light.put("/sandbox/v1/faults", json=rules).raise_for_status()
    with pytest.raises(errors.NoSuchPathError):
        resource.refresh()


@pytest.mark.parametrize("taken", ["WarehouseAlreadyExists", "WarehouseNameAlreadyExists"])
def test_both_types_of_a_taken_name_are_looked_up(
    warehouse: Resource, warehouse_props: Props, light: httpx.Client, taken: str
) -> None:
    refuse(light, "POST", ROOT, 409, taken)
    adopted = Resource(WarehouseProvider())
    adopted.up(**warehouse_props, adopt=True)
    assert adopted.id == warehouse.id
    assert ", at s3://" in Resource(WarehouseProvider()).refusal(
        **change_storage(warehouse_props, key_prefix="elsewhere")
    )


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_lost_response_to_a_create_needs_no_adopt(warehouse_props: Props, light: httpx.Client, status: int) -> None:
    rule = {"method": "POST", "path": ROOT, "action": "answer", "status": status, "body": "text", "when": "after"}
    light.put("/sandbox/v1/faults", json=[rule | {"count": 1}]).raise_for_status()
    warehouse = Resource(WarehouseProvider())
    assert warehouse.up(**warehouse_props) == "create"
    assert warehouse.refresh() == "same"


def test_repeatedly_refused_create_needs_adopt(warehouse_props: Props, light: httpx.Client) -> None:
    rule = {"path": f"{ROOT}*", "action": "answer", "status": 429, "body": "text", "when": "after", "count": None}
    Resource(WarehouseProvider()).preview(**warehouse_props)
    light.put("/sandbox/v1/faults", json=[rule]).raise_for_status()
    with pytest.raises(errors.RefusedError, match="the next `up` needs `adopt`"):
        Resource(WarehouseProvider()).up(**warehouse_props)


def test_retry_after_a_refusal_is_no_proof(warehouse: Resource, warehouse_props: Props, light: httpx.Client) -> None:
    """The server applied nothing of the first request, so the object that stops the second is another stack's."""
    rule = {"method": "POST", "path": ROOT, "action": "answer", "status": 409, "type": "ConcurrentUpdateError"}
    light.put("/sandbox/v1/faults", json=[rule | {"count": 1}]).raise_for_status()
    assert "this stack did not make it" in Resource(WarehouseProvider()).refusal(**warehouse_props)


def test_unfinished_create_needs_adopt(warehouse_props: Props, light: httpx.Client) -> None:
    protected = warehouse_props | {"protected": True}
    refuse(light, "POST", f"{ROOT}/*/protection", 403, "WarehouseActionForbidden")
    with pytest.raises(errors.ForbiddenError, match=r"exists now, unfinished: the next `up` needs `adopt`"):
        Resource(WarehouseProvider()).up(**protected)
    light.delete("/sandbox/v1/faults").raise_for_status()
    assert "`adopt=True`" in Resource(WarehouseProvider()).refusal(**protected)
    adopted = Resource(WarehouseProvider())
    assert adopted.up(**protected, adopt=True) == "create"
    assert adopted.refresh() == "same"


def test_lost_lookup_after_a_lost_response_names_the_solution(warehouse_props: Props, light: httpx.Client) -> None:
    rule = {"path": f"{ROOT}*", "action": "drop", "when": "after", "count": None}
    Resource(WarehouseProvider()).preview(**warehouse_props)
    light.put("/sandbox/v1/faults", json=[rule]).raise_for_status()
    with pytest.raises(errors.UnconfirmedError, match=r"could not be looked up either: .* the next `up` needs `adopt`"):
        Resource(WarehouseProvider()).up(**warehouse_props)
    light.delete("/sandbox/v1/faults").raise_for_status()
    assert Resource(WarehouseProvider()).up(**warehouse_props, adopt=True) == "create"


def test_overlap_with_another_warehouse_is_reported(warehouse: Resource, warehouse_props: Props) -> None:
    within = change_storage(warehouse_props, key_prefix="main/within") | {"name": "within"}
    with pytest.raises(
        errors.AlreadyExistsError, match=r"400 CreateWarehouseStorageProfileOverlap: .*existing warehouse main"
    ):
        Resource(WarehouseProvider()).up(**within)


def test_refused_immutable_field_repeats_the_servers_message(
    warehouse: Resource, warehouse_props: Props, light: httpx.Client
) -> None:
    refuse(light, "POST", f"{ROOT}/*/storage", 400, "UpdateError")
    with pytest.raises(errors.RefusedError, match="400 UpdateError"):
        warehouse.up(**change_storage(warehouse_props, sts_token_validity_seconds=900))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (503, "CatalogBackendError"),
        (503, "AuthorizationBackendError"),
        (503, "MaintenanceModeError"),
        (409, "CatalogBackendError"),
        (409, "ConcurrentUpdateError"),
        (409, "RequestInProgress"),
        (408, "RequestTimeout"),
    ],
)
def test_temporary_errors_are_retried(
    warehouse: Resource, warehouse_props: Props, light: httpx.Client, status: int, kind: str
) -> None:
    path = f"{ROOT}/*/protection"
    rule = {"method": "POST", "path": path, "action": "answer", "status": status, "type": kind, "count": 2}
    light.put("/sandbox/v1/faults", json=[rule]).raise_for_status()
    assert warehouse.up(**warehouse_props | {"protected": True}) == "update"
    assert light.get(f"{ROOT}/{warehouse.id}").json()["protected"] is True


@pytest.mark.parametrize("kind", ["MissingAuthorizationHeader", "AuthenticationFailed", "AuthenticationRequired"])
def test_each_type_of_401_names_what_to_check(warehouse: Resource, light: httpx.Client, kind: str) -> None:
    refuse(light, "GET", f"{ROOT}*", 401, kind)
    with pytest.raises(errors.NotAuthenticatedError, match=f"401 {kind}: .* Check `auth`"):
        warehouse.refresh()


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("NamespaceNotEmptyException", errors.NotEmptyError),
        ("NamespaceNotEmpty", errors.NotEmptyError),
        ("NamespaceProtected", errors.ProtectedError),
        ("ChildNamespaceProtected", errors.ProtectedError),
        ("ChildTabularProtected", errors.ProtectedError),
    ],
)
def test_reasons_against_dropping_a_namespace(
    create_resource: Any, light: httpx.Client, kind: str, error: type[Exception]
) -> None:
    namespace = create_resource("namespace")
    refuse(light, "DELETE", "/catalog/v1/*/namespaces/*", 409, kind)
    with pytest.raises(error, match=kind):
        namespace.destroy()


def test_project_with_a_warehouse_is_not_deleted(create_resource: Any) -> None:
    with pytest.raises(errors.NotEmptyError, match="ProjectNotEmpty"):
        create_resource("project").destroy()
