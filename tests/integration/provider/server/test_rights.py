"""A server that enforces rights: hidden objects, and declared managed access."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, UnsupportedServerError
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.ownership.consent import ADOPT
from lakewright.ownership.running_stack import run_as_stack

from tests.integration.provider.resource import Props, Resource

PERMISSIONS = "/management/v1/permissions"


@pytest.fixture
def project(guarded_project: Props) -> Resource:
    resource = Resource(ProjectProvider())
    resource.up(**guarded_project, name="tenant", adopt=True)
    return resource


@pytest.fixture
def warehouse_props(guarded_project: Props, light_warehouse_props: Props) -> Props:
    return light_warehouse_props | guarded_project


@pytest.fixture
def warehouse(warehouse_props: Props) -> Resource:
    resource = Resource(WarehouseProvider())
    resource.up(**warehouse_props)
    return resource


def give(guarded: httpx.Client, path: str, user: str, relation: str) -> None:
    body = {"writes": [{"type": relation, "user": f"oidc~{user}"}], "deletes": []}
    guarded.post(f"{PERMISSIONS}/{path}/assignments", json=body).raise_for_status()


def use_stranger_token(resource: Resource, monkeypatch: pytest.MonkeyPatch, unique: str) -> None:
    """Use the token of a user without rights for the stack from here on."""
    name = f"STRANGER_{unique}"  # A variable of this test only: a client keeps its token.
    monkeypatch.setenv(name, f"stranger-{unique}")
    endpoint = resource.outs["server"]["endpoint"]
    server = {"endpoint": endpoint, "auth": {"kind": "token", "token": f"env:{name}"}}
    resource.outs, resource.inputs = resource.outs | {"server": server}, resource.inputs | {"server": server}


def test_project_403_means_deleted_to_an_operator(
    project: Resource, guarded: httpx.Client, guarded_project: Props
) -> None:
    headers = {"x-project-id": project.id}
    guarded.delete("/management/v1/project", headers=headers).raise_for_status()
    assert guarded.get("/management/v1/project", headers=headers).status_code == 403
    assert project.refresh() == "delete"
    assert project.up(**guarded_project, name="tenant") == "create"


def test_deleting_a_missing_project_is_no_error(project: Resource, guarded: httpx.Client) -> None:
    guarded.delete("/management/v1/project", headers={"x-project-id": project.id}).raise_for_status()
    project.destroy()


def test_project_403_is_an_error_to_other_users(
    project: Resource, monkeypatch: pytest.MonkeyPatch, unique: str
) -> None:
    use_stranger_token(project, monkeypatch, unique)
    with pytest.raises(ForbiddenError, match="403 ProjectActionForbidden"):
        project.refresh()
    with pytest.raises(ForbiddenError, match="403 ProjectActionForbidden"):
        project.destroy()


def test_warehouse_that_is_readable_but_not_listed_exists(
    warehouse: Resource, guarded: httpx.Client, monkeypatch: pytest.MonkeyPatch, unique: str
) -> None:
    """The user may not list the project."""
    use_stranger_token(warehouse, monkeypatch, unique)
    give(guarded, f"warehouse/{warehouse.id}", f"stranger-{unique}", "describe")
    assert warehouse.refresh() == "same"


def test_managed_access_of_a_warehouse(warehouse: Resource, warehouse_props: Props, guarded: httpx.Client) -> None:
    path = f"{PERMISSIONS}/warehouse/{warehouse.id}"
    managed = warehouse_props | {"managed_access": True}
    assert warehouse.up(**managed) == "update"
    assert guarded.get(path).json() == {"managed-access": True}
    assert (warehouse.refresh(), warehouse.up(**managed)) == ("same", "same")
    guarded.post(f"{path}/managed-access", json={"managed-access": False}).raise_for_status()
    assert warehouse.refresh() == "update"
    assert warehouse.up(**managed) == "update"
    assert guarded.get(path).json() == {"managed-access": True}


def test_managed_access_of_a_namespace(warehouse: Resource, guarded: httpx.Client) -> None:
    """Inherited managed access is no property of the namespace, which has False."""
    namespace_args: Props = {"server": warehouse.inputs["server"], "warehouse_id": warehouse.id}
    outer, inner = Resource(NamespaceProvider()), Resource(NamespaceProvider())
    outer.up(**namespace_args, name="a", managed_access=True)
    inner.up(**namespace_args, name="a.b", managed_access=False)
    path = f"{PERMISSIONS}/namespace/{inner.outs['namespace_id']}"
    assert guarded.get(path).json() == {"managed-access": False, "managed-access-inherited": True}
    assert (outer.refresh(), inner.refresh()) == ("same", "same")
    guarded.post(f"{path}/managed-access", json={"managed-access": True}).raise_for_status()
    assert inner.refresh() == "update"
    assert inner.up(**namespace_args, name="a.b", managed_access=False) == "update"
    assert guarded.get(path).json()["managed-access"] is False


def test_undeclared_managed_access_costs_no_call(
    warehouse: Resource, warehouse_props: Props, guarded: httpx.Client
) -> None:
    path = f"{PERMISSIONS}/warehouse/{warehouse.id}"
    guarded.post(f"{path}/managed-access", json={"managed-access": True}).raise_for_status()
    guarded.delete("/sandbox/v1/calls")
    assert warehouse.refresh() == "same"
    assert not [call for call in guarded.get("/sandbox/v1/calls").json()["calls"] if PERMISSIONS in call["path"]]
    assert warehouse.up(**warehouse_props) == "same"


@pytest.mark.parametrize("managed", [True, False])
def test_managed_access_needs_an_authorizer_with_permissions(
    light_warehouse_props: Props, light: httpx.Client, *, managed: bool
) -> None:
    with pytest.raises(UnsupportedServerError, match="`managed_access` needs a server that authorizes by OpenFGA"):
        Resource(WarehouseProvider()).up(**light_warehouse_props, managed_access=managed)
    headers = {"x-project-id": light_warehouse_props["project_id"]}
    assert light.get("/management/v1/warehouse", headers=headers).json()["warehouses"] == []


def preview_with_right_to_mark(guarded: httpx.Client, unique: str, preview: Callable[[], str]) -> str:
    """Check that a preview names the missing right to create roles, and return its operation with this right."""
    for relation in ("describe", "create", "modify"):
        give(guarded, f"project/{unique}", f"stranger-{unique}", relation)

    with pytest.raises(NotOwnedError, match=rf"nothing was changed: .* Allow `create_role` on project {unique} "):
        run_as_stack("lakewright", "acme", preview)

    run_context.start(run_context.current().next())
    give(guarded, f"project/{unique}", f"stranger-{unique}", "role_creator")
    return run_as_stack("lakewright", "acme", preview)


def test_missing_right_to_mark_a_project_is_named_first(
    guarded: httpx.Client, guarded_project: Props, monkeypatch: pytest.MonkeyPatch, unique: str
) -> None:
    """The project is of an earlier version, without a mark. The deployer may create warehouses, and no roles."""
    record = Resource(TenantRecordProvider())
    tenant = guarded_project | {"tenant": unique, "warehouses": {}, "buckets": {}}
    run_as_stack("lakewright", "acme", lambda: record.up(**tenant))
    use_stranger_token(record, monkeypatch, unique)
    deployer = tenant | {"server": record.inputs["server"]}

    assert preview_with_right_to_mark(guarded, unique, lambda: record.preview(**deployer)) == "same"


def test_missing_right_to_mark_a_new_warehouse(
    guarded: httpx.Client, guarded_project: Props, monkeypatch: pytest.MonkeyPatch, unique: str
) -> None:
    """The deployer may create warehouses in a shared project, and no roles, which record their owners."""
    record = Resource(TenantRecordProvider())
    warehouses = {f"{unique}-main": {"bucket": "lake", "deletion": "purge"}}
    tenant = guarded_project | {"tenant": unique, "shares_project": True, "warehouses": warehouses, "buckets": {}}
    monkeypatch.setenv(f"STRANGER_{unique}", f"stranger-{unique}")
    auth = {"kind": "token", "token": f"env:STRANGER_{unique}"}
    deployer = tenant | {"server": tenant["server"] | {"auth": auth}}

    assert preview_with_right_to_mark(guarded, unique, lambda: record.preview(**deployer)) == "create"


def test_retained_data_of_a_hidden_warehouse_is_kept(guarded_project: Props, unique: str) -> None:
    """Lists of a server with OpenFGA may lack warehouses."""
    record = Resource(TenantRecordProvider())
    tenant = guarded_project | {"tenant": unique, "buckets": {}}
    record.up(**tenant, warehouses={"old": {"bucket": "lake", "deletion": "retain"}})
    record.up(**tenant, warehouses={})

    record.refresh()

    assert [item["name"] for item in record.outs["kept"]] == ["old"]


def test_role_of_an_unmarked_project_in_the_state_is_adopted(
    guarded: httpx.Client, guarded_project: Props, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version made the project, without a mark. A user wrote the role's description."""
    monkeypatch.delenv(ADOPT)
    project, role = Resource(ProjectProvider()), Resource(RoleProvider())
    body = {"name": "analysts", "description": "People who analyze"}
    guarded.post("/management/v1/role", json=body, headers={"x-project-id": unique}).raise_for_status()
    project.id, project.inputs = unique, guarded_project | {"name": unique}
    project.outs = project.inputs
    project.preview(**project.inputs)

    assert role.failures(**guarded_project, name="analysts", adopt=True) == {}
