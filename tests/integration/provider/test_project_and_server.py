"""The server's bootstrap, projects, and external ids."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.errors import NotEmpty
from lakewright.lakekeeper.bootstrap import BootstrapProvider
from lakewright.lakekeeper.errors import NotOurs
from lakewright.lakekeeper.external_id import ExternalIdProvider
from lakewright.lakekeeper.project import ProjectProvider

from .conftest import Props, Resource


@pytest.fixture
def tenant(server: Props, unique: str) -> Props:
    """A project as a program declares it."""
    return {"server": server, "project_id": unique, "name": "tenant"}


@pytest.fixture
def project(tenant: Props) -> Resource:
    resource = Resource(ProjectProvider())
    resource.up(**tenant)
    return resource


def test_a_bootstrapped_server_is_taken_as_it_is(server: Props) -> None:
    bootstrap = Resource(BootstrapProvider())
    assert bootstrap.up(server=server, accept_terms_of_use=True) == "create"
    assert bootstrap.outs["authz_backend"] == "allow-all"
    assert bootstrap.refresh() == "same"
    assert bootstrap.up(server=server, accept_terms_of_use=True, user_name="somebody") == "same"
    bootstrap.destroy()


def test_terms_must_be_accepted(server: Props) -> None:
    failures = Resource(BootstrapProvider()).failures(server=server, accept_terms_of_use=False)
    assert "terms of use" in failures["accept_terms_of_use"]


def test_a_project_is_renamed_in_place(project: Resource, tenant: Props, http: httpx.Client) -> None:
    assert project.id == tenant["project_id"]
    assert project.up(**tenant) == "same"
    assert project.up(**tenant | {"name": "other"}) == "update"
    found = http.get("/management/v1/project", headers={"x-project-id": project.id}).json()
    assert found == {"project-id": project.id, "project-name": "other"}


def test_drift_of_a_projects_name_is_healed(project: Resource, tenant: Props, http: httpx.Client) -> None:
    headers = {"x-project-id": project.id}
    http.post("/management/v1/project/rename", headers=headers, json={"new-name": "x"}).raise_for_status()
    assert project.refresh() == "update"
    assert project.up(**tenant) == "update"
    assert project.refresh() == "same"


def test_another_project_id_replaces(project: Resource, tenant: Props, http: httpx.Client) -> None:
    assert project.up(**tenant | {"project_id": f"{tenant['project_id']}-2"}) == "replace"
    assert http.get("/management/v1/project", headers={"x-project-id": tenant["project_id"]}).status_code == 404


def test_a_gone_project_is_made_again(project: Resource, tenant: Props, http: httpx.Client) -> None:
    http.delete("/management/v1/project", headers={"x-project-id": project.id}).raise_for_status()
    assert project.refresh() == "delete"
    assert project.up(**tenant) == "create"


def test_existing_project_needs_adopt(project: Resource, tenant: Props) -> None:
    Resource(ProjectProvider()).refusal(**tenant)
    refusal = Resource(ProjectProvider()).refusal(**tenant | {"name": "mine"})
    assert "named `tenant`; declared is `mine`" in refusal
    assert "adopt=True" in refusal
    adopted = Resource(ProjectProvider())
    adopted.up(**tenant | {"name": "mine", "adopt": True})
    assert adopted.refresh() == "same"


def test_killed_create_of_project_is_taken_over(project: Resource, tenant: Props, interrupted: Any) -> None:
    interrupted("Project", tenant)
    assert Resource(ProjectProvider()).up(**tenant) == "create"
    with pytest.raises(NotOurs, match=r"named `tenant`; declared is `mine`.*adopt=True"):
        Resource(ProjectProvider()).up(**tenant | {"name": "mine"})


def test_a_project_that_holds_something_is_not_deleted(warehouse: Resource, declared: Props) -> None:
    project = Resource(ProjectProvider())
    project_id = declared["project_id"]
    project.up(server=declared["server"], project_id=project_id, name=project_id, adopt=True)
    with pytest.raises(NotEmpty, match="ProjectNotEmpty"):
        project.destroy()


def test_a_retained_project_stays_and_a_gone_one_is_no_error(
    project: Resource, tenant: Props, http: httpx.Client
) -> None:
    project.up(**tenant | {"deletion": "retain"})
    outs = project.outs
    project.destroy()
    headers = {"x-project-id": tenant["project_id"]}
    http.delete("/management/v1/project", headers=headers).raise_for_status()
    project.provider.delete(tenant["project_id"], outs | {"deletion": "protect"})


def test_an_external_id_is_made_once_and_kept() -> None:
    external = Resource(ExternalIdProvider())
    external.up()
    value = external.outs["value"]
    assert external.up() == "same"
    assert external.refresh() == "same"
    assert external.outs["value"] == value != external.id
