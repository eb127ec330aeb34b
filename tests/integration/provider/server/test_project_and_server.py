"""The server's bootstrap, projects, and external ids."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import NotEmptyError
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.server.bootstrap import BootstrapProvider
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.storage.external_id import ExternalIdProvider

from tests.integration.provider.resource import Props, Resource


@pytest.fixture
def project_props(server: Props, unique: str) -> Props:
    """A declared project."""
    return {"server": server, "project_id": unique, "name": "tenant"}


@pytest.fixture
def project(project_props: Props) -> Resource:
    resource = Resource(ProjectProvider())
    resource.up(**project_props)
    return resource


def test_bootstrapped_server_is_accepted(server: Props) -> None:
    bootstrap = Resource(BootstrapProvider())
    assert bootstrap.up(server=server, accept_terms_of_use=True) == "create"
    assert bootstrap.outs["authz_backend"] in {"allow-all", "openfga"}
    assert bootstrap.refresh() == "same"
    assert bootstrap.up(server=server, accept_terms_of_use=True, user_name="another") == "same"
    bootstrap.destroy()


def test_terms_must_be_accepted(server: Props) -> None:
    failures = Resource(BootstrapProvider()).failures(server=server, accept_terms_of_use=False)
    assert "terms of use" in failures["accept_terms_of_use"]


def test_project_is_renamed_in_place(project: Resource, project_props: Props, http: httpx.Client) -> None:
    assert project.id == project_props["project_id"]
    assert project.up(**project_props) == "same"
    assert project.up(**project_props | {"name": "other"}) == "update"
    response = http.get("/management/v1/project", headers={"x-project-id": project.id}).json()
    assert response == {"project-id": project.id, "project-name": "other"}


def test_drift_of_a_projects_name_is_restored(project: Resource, project_props: Props, http: httpx.Client) -> None:
    headers = {"x-project-id": project.id}
    http.post("/management/v1/project/rename", headers=headers, json={"new-name": "x"}).raise_for_status()
    assert project.refresh() == "update"
    assert project.up(**project_props) == "update"
    assert project.refresh() == "same"


def test_another_project_id_replaces(project: Resource, project_props: Props, http: httpx.Client) -> None:
    assert project.up(**project_props | {"project_id": f"{project_props['project_id']}-2"}) == "replace"
    response = http.get("/management/v1/project", headers={"x-project-id": project_props["project_id"]})
    assert response.status_code in {403, 404}, "OpenFGA refuses a project that does not exist"


def test_deleted_project_is_recreated(project: Resource, project_props: Props, http: httpx.Client) -> None:
    http.delete("/management/v1/project", headers={"x-project-id": project.id}).raise_for_status()
    assert project.refresh() == "delete"
    assert project.up(**project_props) == "create"


def test_existing_project_needs_adopt(project: Resource, project_props: Props) -> None:
    Resource(ProjectProvider()).refusal(**project_props)
    refusal = Resource(ProjectProvider()).refusal(**project_props | {"name": "mine"})
    assert "named `tenant`; declared is `mine`" in refusal
    assert "adopt=True" in refusal
    adopted = Resource(ProjectProvider())
    adopted.up(**project_props | {"name": "mine", "adopt": True})
    assert adopted.refresh() == "same"


def test_killed_create_of_project_is_adopted(
    project: Resource, project_props: Props, report_interrupted_create: Any
) -> None:
    report_interrupted_create("Project", project_props)
    assert Resource(ProjectProvider()).up(**project_props) == "create"
    with pytest.raises(NotOwnedError, match=r"named `tenant`; declared is `mine`.*adopt=True"):
        Resource(ProjectProvider()).up(**project_props | {"name": "mine"})


def test_project_with_contents_is_not_deleted(warehouse: Resource, warehouse_props: Props) -> None:
    project = Resource(ProjectProvider())
    project_id = warehouse_props["project_id"]
    project.up(server=warehouse_props["server"], project_id=project_id, name=project_id, adopt=True)
    with pytest.raises(NotEmptyError, match="ProjectNotEmpty"):
        project.destroy()


def test_deletion_is_repeated_after_a_deadlock(light: httpx.Client, unique: str) -> None:
    """Lakekeeper 0.13.3 deleted a project while it wrote its statistics of calls."""
    project = Resource(ProjectProvider())
    project.up(server={"endpoint": str(light.base_url).rstrip("/")}, project_id=unique, name="tenant")
    fault = {"action": "answer", "status": 500, "type": "DatabaseError"}
    rule = fault | {"method": "DELETE", "path": "/management/v1/project"}
    light.put("/sandbox/v1/faults", json=[rule]).raise_for_status()

    project.destroy()

    assert light.get("/management/v1/project", headers={"x-project-id": unique}).status_code == 404


def test_retained_project_is_kept_and_may_be_missing(
    project: Resource, project_props: Props, http: httpx.Client
) -> None:
    project.up(**project_props | {"deletion": "retain"})
    outs = project.outs
    project.destroy()
    headers = {"x-project-id": project_props["project_id"]}
    http.delete("/management/v1/project", headers=headers).raise_for_status()
    project.provider.delete(project_props["project_id"], outs | {"deletion": "protect"})


def test_external_id_is_made_once_and_kept() -> None:
    external = Resource(ExternalIdProvider())
    external.up()
    value = external.outs["value"]
    assert external.up() == "same"
    assert external.refresh() == "same"
    assert external.outs["value"] == value != external.id
