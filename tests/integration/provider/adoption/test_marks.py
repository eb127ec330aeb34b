"""Marks of projects: a stack changes and deletes no object of another stack, and adopts with consent only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import AlreadyExistsError, ForbiddenError, RefusedError
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.task_queue_config import TaskQueueConfigProvider
from lakewright.ownership import record_identity
from lakewright.ownership.consent import ADOPT
from lakewright.ownership.mark import OwnershipMark, parse_description
from lakewright.ownership.record_role import RECORD_ROLE

from tests.integration.provider.resource import Props, Resource
from tests.integration.provider.runs import run_as, run_with_record

pytestmark = pytest.mark.any_server

OWNER, COPY = "acme", "copy"
RECORD, OTHER_RECORD = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture(autouse=True)
def _no_consent(_permit_test_project: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADOPT)


def list_roles(http: httpx.Client, project_id: str) -> dict[str, str | None]:
    response = http.get("/management/v1/role", headers={"x-project-id": project_id})
    return {role["name"]: role.get("description") for role in response.raise_for_status().json()["roles"]}


def read_mark(http: httpx.Client, project_id: str) -> OwnershipMark:
    return parse_description(list_roles(http, project_id)[RECORD_ROLE])


def write_mark(http: httpx.Client, project_id: str, mark: OwnershipMark) -> None:
    header = {"x-project-id": project_id}
    roles = http.get("/management/v1/role", headers=header).json()["roles"]
    record = next(role for role in roles if role["name"] == RECORD_ROLE)
    body = {"name": RECORD_ROLE, "description": mark.to_description()}
    http.post(f"/management/v1/role/{record['id']}", json=body, headers=header).raise_for_status()


def list_projects(http: httpx.Client) -> set[str]:
    return {project["project-id"] for project in http.get("/management/v1/project-list").json()["projects"]}


@pytest.fixture
def project_props(server: Props, unique: str) -> Props:
    return {"server": server, "project_id": f"{unique}-own", "name": "acme", "record": RECORD}


def test_project_gets_a_mark_and_is_deleted_with_it(http: httpx.Client, project_props: Props) -> None:
    project = Resource(ProjectProvider())
    run_as(OWNER, lambda: project.up(**project_props))

    assert read_mark(http, project_props["project_id"]) == OwnershipMark("lakewright/acme", RECORD)
    assert run_as(OWNER, project.refresh) == "same"

    run_as(OWNER, project.destroy)
    assert project_props["project_id"] not in list_projects(http)


def test_project_of_an_earlier_version_gets_a_mark(http: httpx.Client, project_props: Props) -> None:
    project = Resource(ProjectProvider())
    project.up(**{name: value for name, value in project_props.items() if name != "record"})
    assert list_roles(http, project_props["project_id"]) == {}

    assert run_as(OWNER, lambda: project.up(**project_props)) == "update"
    assert read_mark(http, project_props["project_id"]).stack == "lakewright/acme"


def test_deleted_mark_is_drift_and_is_written_again(http: httpx.Client, project_props: Props) -> None:
    project = Resource(ProjectProvider())
    run_as(OWNER, lambda: project.up(**project_props))
    header = {"x-project-id": project_props["project_id"]}
    for role in http.get("/management/v1/role", headers=header).json()["roles"]:
        http.delete(f"/management/v1/role/{role['id']}", headers=header).raise_for_status()

    assert run_as(OWNER, project.refresh) == "update"
    assert run_as(OWNER, lambda: project.up(**project_props)) == "update"
    assert read_mark(http, project_props["project_id"]).stack == "lakewright/acme"


def test_consent_to_the_former_owner_is_drift(http: httpx.Client, project_props: Props) -> None:
    """A stack whose project another stack adopted owns it again after a consent and `up --refresh`."""
    project = Resource(ProjectProvider())
    run_as(OWNER, lambda: project.up(**project_props))
    write_mark(http, project_props["project_id"], OwnershipMark("lakewright/copy", "fedcba9876543210"))
    assert run_as(OWNER, project.refresh) == "same"

    permitted_mark = OwnershipMark("lakewright/copy", "fedcba9876543210", "lakewright/acme")
    write_mark(http, project_props["project_id"], permitted_mark)
    assert run_as(OWNER, project.refresh) == "update"
    assert run_as(OWNER, lambda: project.up(**project_props)) == "update"
    assert read_mark(http, project_props["project_id"]) == OwnershipMark("lakewright/acme", RECORD)


def test_copy_of_a_state_changes_and_deletes_nothing(http: httpx.Client, project_props: Props) -> None:
    """The copy has the same properties and record id, and another stack."""
    project, role = Resource(ProjectProvider()), Resource(RoleProvider())
    role_props = {"server": project_props["server"], "project_id": project_props["project_id"], "name": "analysts"}
    run_as(OWNER, lambda: project.up(**project_props))
    run_as(OWNER, lambda: role.up(**role_props))

    attacks: list[Callable[[], Any]] = [
        role.destroy,
        lambda: role.up(**role_props, description="taken"),
        project.destroy,
        lambda: project.up(**project_props | {"name": "taken"}),
    ]
    for attack in attacks:
        with pytest.raises(NotOwnedError, match=r"belongs to stack `lakewright/acme`.*stack forget --stack copy"):
            run_as(COPY, attack)

    assert set(list_roles(http, project_props["project_id"])) == {"analysts", RECORD_ROLE}
    assert read_mark(http, project_props["project_id"]).stack == "lakewright/acme"


def test_adoption_needs_a_mark_or_consent(
    http: httpx.Client, server: Props, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_props = {"server": server, "project_id": project_id, "name": project_id, "record": RECORD, "adopt": True}
    project = Resource(ProjectProvider())

    assert "has no mark of a stack" in run_as(OWNER, lambda: project.failures(**project_props))["adopt"]
    with pytest.raises(NotOwnedError, match=rf"lakewright up --adopt project={project_id}"):
        run_as(OWNER, lambda: project.provider.create(project_props))

    monkeypatch.setenv(ADOPT, f"project={project_id}")
    assert run_as(OWNER, lambda: project.failures(**project_props)) == {}
    run_as(OWNER, lambda: project.up(**project_props))
    assert read_mark(http, project_id) == OwnershipMark("lakewright/acme", RECORD)


def test_consent_on_the_project_lets_its_stack_adopt(http: httpx.Client, project_props: Props) -> None:
    run_as(OWNER, lambda: Resource(ProjectProvider()).up(**project_props))
    adopted_project = Resource(ProjectProvider())
    adoption_props = project_props | {"record": "fedcba9876543210", "adopt": True}
    assert (
        "belongs to stack `lakewright/acme`"
        in run_as(COPY, lambda: adopted_project.failures(**adoption_props))["adopt"]
    )

    header = {"x-project-id": project_props["project_id"]}
    role = http.get("/management/v1/role", headers=header).json()["roles"][0]
    permitted_mark = OwnershipMark("lakewright/acme", RECORD, "lakewright/copy").to_description()
    body = {"name": RECORD_ROLE, "description": permitted_mark}
    http.post(f"/management/v1/role/{role['id']}", headers=header, json=body).raise_for_status()
    run_as(COPY, lambda: adopted_project.up(**adoption_props))

    assert read_mark(http, project_props["project_id"]) == OwnershipMark("lakewright/copy", "fedcba9876543210")


def test_same_name_in_another_backend_is_another_stack(project_props: Props) -> None:
    run_as(OWNER, lambda: Resource(ProjectProvider()).up(**project_props))
    namesake = Resource(ProjectProvider())
    adoption_props = project_props | {"record": "fedcba9876543210", "adopt": True}

    def adopt() -> dict[str, str]:
        run_context.current().record_id = "fedcba9876543210"
        return namesake.failures(**adoption_props)

    assert "a stack `lakewright/acme` in another backend" in run_as(OWNER, adopt)["adopt"]


def test_guard_and_record_refuse_before_any_change(project_props: Props, unique: str) -> None:
    project_id, server = project_props["project_id"], project_props["server"]
    record, guard = Resource(TenantRecordProvider()), Resource(DeletionGuardProvider())
    tenant = {"server": server, "tenant": unique, "project_id": project_id, "warehouses": {}, "buckets": {}}
    run_as(OWNER, lambda: record.up(**tenant))
    run_as(OWNER, lambda: Resource(ProjectProvider()).up(**project_props | {"record": record.outs["bucket_tag"]}))
    guard_props = {"server": server, "warehouses": {}, "roles": {project_id: []}, "record": record.outs["bucket_tag"]}
    run_as(OWNER, lambda: guard.up(**guard_props))

    with pytest.raises(NotOwnedError, match="belongs to stack `lakewright/acme`"):
        run_as(COPY, lambda: record.preview(**tenant))
    with pytest.raises(NotOwnedError, match="belongs to stack `lakewright/acme`"):
        run_as(COPY, guard.destroy)
    assert run_as(OWNER, lambda: record.preview(**tenant)) == "same"
    run_as(OWNER, guard.destroy)


def test_destroyed_stack_releases_a_project_that_remains(http: httpx.Client, project_props: Props, unique: str) -> None:
    project_id = project_props["project_id"]
    record = Resource(TenantRecordProvider())
    tenant = {
        "server": project_props["server"],
        "tenant": unique,
        "project_id": project_id,
        "warehouses": {},
        "buckets": {},
    }
    run_as(OWNER, lambda: record.up(**tenant))
    run_as(OWNER, lambda: Resource(ProjectProvider()).up(**project_props | {"record": record.outs["bucket_tag"]}))

    run_as(OWNER, record.destroy)

    assert read_mark(http, project_id).adopt == "lakewright/acme"
    assert run_as(OWNER, lambda: Resource(ProjectProvider()).failures(**project_props | {"adopt": True})) == {}


def test_begun_creation_takes_no_project_of_another_stack(
    http: httpx.Client, project_props: Props, report_interrupted_create: Callable[..., None]
) -> None:
    """An `up` was killed before the server got its request, and then another stack created the project."""
    report_interrupted_create("Project", project_props)
    run_as(COPY, lambda: Resource(ProjectProvider()).up(**project_props | {"record": "fedcba9876543210"}))
    mark = read_mark(http, project_props["project_id"])
    project = Resource(ProjectProvider())

    refused = run_as(OWNER, lambda: project.failures(**project_props))
    with pytest.raises(NotOwnedError, match="belongs to stack `lakewright/copy`"):
        run_as(OWNER, lambda: project.provider.create(project_props))

    assert "belongs to stack `lakewright/copy`" in refused["adopt"]
    assert read_mark(http, project_props["project_id"]) == mark


def test_begun_creation_takes_its_own_project(
    project_props: Props, report_interrupted_create: Callable[..., None]
) -> None:
    run_as(OWNER, lambda: Resource(ProjectProvider()).up(**project_props))
    report_interrupted_create("Project", project_props)

    assert run_as(OWNER, lambda: Resource(ProjectProvider()).up(**project_props)) == "create"


@pytest.mark.parametrize("name", [RECORD_ROLE, "Lakewright-Record"])
def test_role_must_not_have_the_name_of_the_record(server: Props, project_id: str, name: str) -> None:
    role = Resource(RoleProvider())

    refused = role.failures(server=server, project_id=project_id, name=name, adopt=True)

    assert "the record of the project's owner" in refused["name"]


def test_interrupted_destroy_spares_what_a_namesake_owns(http: httpx.Client, project_props: Props) -> None:
    """The guard is deleted already, so that only the resources know the record id."""
    project, role = Resource(ProjectProvider()), Resource(RoleProvider())
    role_props = {"server": project_props["server"], "project_id": project_props["project_id"], "name": "analysts"}
    run_with_record(OWNER, RECORD, lambda: project.up(**project_props))
    run_with_record(OWNER, RECORD, lambda: role.up(**role_props))
    run_as(OWNER, role.refresh)
    write_mark(http, project_props["project_id"], OwnershipMark("lakewright/acme", OTHER_RECORD))

    for delete in (role.destroy, project.destroy):
        with pytest.raises(NotOwnedError, match="a stack `lakewright/acme` in another backend"):
            run_as(OWNER, delete)

    assert set(list_roles(http, project_props["project_id"])) == {"analysts", RECORD_ROLE}


def test_state_without_record_ids_is_neither_updated_nor_kept(http: httpx.Client, project_props: Props) -> None:
    """States of earlier versions have no record id."""
    role = Resource(RoleProvider())
    role_props = {"server": project_props["server"], "project_id": project_props["project_id"], "name": "analysts"}
    run_as(OWNER, lambda: Resource(ProjectProvider()).up(**project_props))
    run_with_record(OWNER, RECORD, lambda: role.up(**role_props))
    del role.outs[record_identity.RECORDED]

    assert run_with_record(OWNER, RECORD, lambda: role.up(**role_props)) == "same"
    run_as(OWNER, role.destroy)
    assert set(list_roles(http, project_props["project_id"])) == {RECORD_ROLE}


def test_new_tenant_record_is_recorded_by_an_update(http: httpx.Client, project_props: Props) -> None:
    """Someone removed the record from the state. Its old id would stop a later `destroy`."""
    role = Resource(RoleProvider())
    role_props = {"server": project_props["server"], "project_id": project_props["project_id"], "name": "analysts"}
    run_as(OWNER, lambda: Resource(ProjectProvider()).up(**project_props))
    run_with_record(OWNER, RECORD, lambda: role.up(**role_props))
    write_mark(http, project_props["project_id"], OwnershipMark("lakewright/acme", OTHER_RECORD))

    assert run_with_record(OWNER, OTHER_RECORD, lambda: role.up(**role_props)) == "update"
    assert role.outs[record_identity.RECORDED] == OTHER_RECORD


def test_settings_of_a_lost_project_are_kept(http: httpx.Client, project_props: Props) -> None:
    queue = Resource(TaskQueueConfigProvider())
    settings = {
        "server": project_props["server"],
        "project_id": project_props["project_id"],
        "queue": "task_log_cleanup",
    }
    run_as(OWNER, lambda: Resource(ProjectProvider()).up(**project_props))
    run_with_record(OWNER, RECORD, lambda: queue.up(**settings, max_seconds_since_last_heartbeat=300))
    write_mark(http, project_props["project_id"], OwnershipMark("lakewright/copy", OTHER_RECORD))

    for attack in (queue.destroy, lambda: queue.up(**settings, max_seconds_since_last_heartbeat=600)):
        with pytest.raises(NotOwnedError, match="belongs to stack `lakewright/copy`"):
            run_as(OWNER, attack)


def test_settings_on_another_stacks_project_are_deleted(project_props: Props) -> None:
    """A stack of the platform may declare settings and grants in the projects of tenants."""
    queue = Resource(TaskQueueConfigProvider())
    settings = {
        "server": project_props["server"],
        "project_id": project_props["project_id"],
        "queue": "task_log_cleanup",
    }
    run_as(OWNER, lambda: Resource(ProjectProvider()).up(**project_props))

    run_with_record(COPY, OTHER_RECORD, lambda: queue.up(**settings, max_seconds_since_last_heartbeat=300))
    run_as(COPY, queue.destroy)


@pytest.mark.since("0.12")
def test_role_of_an_identity_provider_is_no_mark(http: httpx.Client, project_props: Props) -> None:
    """A directory may have a group of any name, and users who are no operators create groups there."""
    project_id = project_props["project_id"]
    http.post("/management/v1/project", json={"project-id": project_id, "project-name": "acme"}).raise_for_status()
    forged = OwnershipMark("lakewright/copy", OTHER_RECORD).to_description()
    role_body = {"name": RECORD_ROLE, "description": forged, "provider-id": "directory", "source-id": "group-1"}
    http.post("/management/v1/role", headers={"x-project-id": project_id}, json=role_body).raise_for_status()
    project = Resource(ProjectProvider())

    assert (
        "has no mark of a stack" in run_as(COPY, lambda: project.failures(**project_props | {"adopt": True}))["adopt"]
    )
    with pytest.raises(AlreadyExistsError, match="Rename or delete it at the identity provider"):
        run_as(OWNER, lambda: project.up(**project_props | {"adopt": True}))


@pytest.mark.stand_in("injects errors")
@pytest.mark.parametrize("status", [403, 500])
def test_failed_deletion_of_a_project_keeps_its_mark(light: httpx.Client, light_project: Props, status: int) -> None:
    project_props = light_project | {"name": "acme", "record": RECORD, "adopt": True}
    project = Resource(ProjectProvider())
    run_as(OWNER, lambda: project.up(**project_props))
    fail = {"method": "DELETE", "path": "/management/v1/project", "action": "answer", "status": status, "count": None}
    light.put("/sandbox/v1/faults", json=[fail]).raise_for_status()

    with pytest.raises(RefusedError):
        run_as(OWNER, project.destroy)

    assert read_mark(light, project_props["project_id"]) == OwnershipMark("lakewright/acme", RECORD)


@pytest.mark.stand_in("injects errors")
def test_namespace_of_an_unknown_owner_is_not_dropped(
    light: httpx.Client, light_warehouse: Resource, light_project: Props
) -> None:
    namespace = Resource(NamespaceProvider())
    namespace_props = {"server": light_project["server"], "warehouse_id": light_warehouse.id, "name": "sales"}
    run_as(OWNER, lambda: namespace.up(**namespace_props, deletion="purge"))
    path = f"/management/v1/warehouse/{light_warehouse.id}"
    hidden = {"method": "GET", "path": path, "action": "answer", "status": 403, "count": None}
    light.put("/sandbox/v1/faults", json=[hidden]).raise_for_status()

    with pytest.raises(ForbiddenError, match=r"owner of warehouse .* is therefore not known. Allow `get_metadata`"):
        run_as(OWNER, namespace.destroy)
    light.delete("/sandbox/v1/faults").raise_for_status()

    light.get(f"/catalog/v1/{light_warehouse.id}/namespaces/sales").raise_for_status()
