"""The server's id in the state: recorded, checked, and replaced only when a person accepts another server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.provider import server_identity
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, MovedServerError
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

from tests.integration.provider.resource import Props, Resource


@pytest.fixture
def other_endpoint(tmp_path: Path) -> Iterator[str]:
    """Another server, bootstrapped and empty."""
    settings = Settings(database=f"sqlite:///{tmp_path / 'other.db'}", skip_storage_validation=True)
    with serve(create_app(settings)) as endpoint:
        httpx.post(f"{endpoint}/management/v1/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
        yield endpoint


def read_server_id(endpoint: str) -> str:
    return httpx.get(f"{endpoint}/management/v1/info").json()["server-id"]


@pytest.fixture
def project_props(light: httpx.Client, unique: str) -> Props:
    return {"server": {"endpoint": str(light.base_url).rstrip("/")}, "project_id": unique, "name": unique}


@pytest.fixture
def project(project_props: Props) -> Resource:
    project = Resource(ProjectProvider())
    project.up(**project_props)
    return project


def move_resource(resource: Resource, endpoint: str) -> None:
    """Make the endpoint's name lead to another server: the state keeps its endpoint, and the server changes."""
    resource.outs["server"] = resource.inputs["server"] = {"endpoint": endpoint}


def test_every_resource_records_the_server(project: Resource, project_props: Props, light_endpoint: str) -> None:
    assert project.outs["server_id"] == read_server_id(light_endpoint)
    assert project.refresh() == "same"
    assert project.outs["server_id"] == read_server_id(light_endpoint)


def test_moved_server_is_refused(project: Resource, project_props: Props, other_endpoint: str) -> None:
    moved_props = project_props | {"server": {"endpoint": other_endpoint}}
    with pytest.raises(MovedServerError, match="expected the Lakekeeper with server id"):
        project.preview(**moved_props)
    move_resource(project, other_endpoint)
    with pytest.raises(MovedServerError):
        project.refresh()
    with pytest.raises(MovedServerError):
        project.up(**moved_props | {"name": "renamed"})
    with pytest.raises(MovedServerError, match="Nothing was changed"):
        project.destroy()


def test_guard_refuses_on_a_moved_server(project_props: Props, other_endpoint: str) -> None:
    guard = Resource(DeletionGuardProvider())
    guard.up(server=project_props["server"], warehouses={"main": "some-id"}, deletion="protect")
    move_resource(guard, other_endpoint)
    with pytest.raises(MovedServerError):
        guard.destroy()


def test_old_state_is_loaded_and_recorded_by_up(project: Resource, project_props: Props, light_endpoint: str) -> None:
    del project.outs[server_identity.RECORDED]
    assert project.preview(**project_props) == "update"
    assert project.up(**project_props) == "update"
    assert project.outs["server_id"] == read_server_id(light_endpoint)
    assert project.up(**project_props) == "same"


def test_old_state_is_not_recorded_on_another_server(
    project: Resource, project_props: Props, other_endpoint: str
) -> None:
    del project.outs[server_identity.RECORDED]
    with pytest.raises(MovedServerError, match="the state does not record which server"):
        project.up(**project_props | {"server": {"endpoint": other_endpoint}})


def test_old_state_is_not_emptied_on_another_server(project: Resource, other_endpoint: str) -> None:
    del project.outs[server_identity.RECORDED]
    move_resource(project, other_endpoint)
    with pytest.raises(MovedServerError, match="Check that `endpoint`"):
        project.refresh()
    with pytest.raises(MovedServerError, match="Check that `endpoint`"):
        project.destroy()


def test_old_guard_refuses_on_another_server(project_props: Props, other_endpoint: str) -> None:
    guard = Resource(DeletionGuardProvider())
    guard.up(server=project_props["server"], warehouses={"main": str(uuid.uuid4())}, deletion="protect")
    del guard.outs[server_identity.RECORDED]
    move_resource(guard, other_endpoint)
    for step in (guard.refresh, guard.destroy):
        with pytest.raises(MovedServerError, match="warehouse `main`"):
            step()


def test_old_state_is_confirmed_by_the_servers_id(
    project: Resource, project_props: Props, light: httpx.Client, light_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The object was deleted outside the stack on the right server."""
    del project.outs[server_identity.RECORDED]
    light.delete(f"/management/v1/project/{project.id}").raise_for_status()
    with pytest.raises(MovedServerError, match=settings.ACCEPTED_SERVER_ID):
        project.refresh()
    monkeypatch.setenv(settings.ACCEPTED_SERVER_ID, read_server_id(light_endpoint))
    with pytest.raises(DeletedOutsideStackError, match="up --refresh"):
        project.up(**project_props)
    assert project.refresh() == "delete"


def test_recorded_server_proves_a_deletion(project: Resource, light: httpx.Client) -> None:
    light.delete(f"/management/v1/project/{project.id}").raise_for_status()
    assert project.refresh() == "delete"


def test_migrated_server_is_accepted_by_its_id(
    project: Resource, project_props: Props, other_endpoint: str, monkeypatch: pytest.MonkeyPatch, unique: str
) -> None:
    body = {"project-id": unique, "project-name": unique}
    httpx.post(f"{other_endpoint}/management/v1/project", json=body).raise_for_status()
    moved_props: dict[str, Any] = project_props | {"server": {"endpoint": other_endpoint}}
    monkeypatch.setenv(settings.ACCEPTED_SERVER_ID, read_server_id(other_endpoint))
    assert project.up(**moved_props) == "update"
    monkeypatch.delenv(settings.ACCEPTED_SERVER_ID)
    assert project.outs["server_id"] == read_server_id(other_endpoint)
    assert project.refresh() == "same"
    assert project.up(**moved_props) == "same"
