"""State of versions that did not require TLS, and declarations that must have it."""

from __future__ import annotations

import httpx
import pytest
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider

from tests.integration.provider.conftest import TOKEN
from tests.integration.provider.resource import Props, Resource


@pytest.fixture
def insecure_server(light: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Props:
    """The server under an address that may leave this machine, and a token for it."""
    monkeypatch.setenv(TOKEN, "operator")
    endpoint = str(light.base_url).rstrip("/").replace("127.0.0.1", "0.0.0.0")
    return {"endpoint": endpoint, "auth": {"kind": "token", "token": f"env:{TOKEN}"}}


@pytest.fixture
def old_project(insecure_server: Props, unique: str) -> Resource:
    """A project whose state is of a version without `allow_plain_http`."""
    project = Resource(ProjectProvider())
    server_with_consent = insecure_server | {"allow_plain_http": True}
    project.up(server=server_with_consent, project_id=unique, name=unique, deletion="purge")
    for properties in (project.inputs, project.outs):
        del properties["server"]["allow_plain_http"]
    return project


def test_old_state_is_refreshed_over_plain_http(old_project: Resource) -> None:
    assert old_project.refresh() == "same"


def test_old_state_is_destroyed_over_plain_http(old_project: Resource, light: httpx.Client, unique: str) -> None:
    old_project.destroy()
    projects = light.get("/management/v1/project-list").json()["projects"]
    assert unique not in [item["project-id"] for item in projects]


def test_old_state_reads_a_missing_object(old_project: Resource, light: httpx.Client, unique: str) -> None:
    light.delete("/management/v1/project", headers={"x-project-id": unique}).raise_for_status()
    assert old_project.refresh() == "delete"


def test_old_state_updates_once_plain_http_is_allowed(
    old_project: Resource, insecure_server: Props, unique: str
) -> None:
    server_with_consent = insecure_server | {"allow_plain_http": True}
    project_props = {"server": server_with_consent, "project_id": unique, "name": unique, "deletion": "purge"}
    assert old_project.up(**project_props) == "update"
    assert old_project.up(**project_props) == "same"


def test_declaration_without_tls_is_refused(insecure_server: Props, old_project: Resource, unique: str) -> None:
    project_props = {"server": insecure_server, "project_id": unique, "name": unique, "deletion": "purge"}
    assert "without TLS. Use `https://`" in Resource(ProjectProvider()).failures(**project_props)["server"]
    assert "without TLS. Use `https://`" in old_project.list_refusals(**project_props)[0]


def test_old_record_may_drop_a_warehouse(insecure_server: Props, unique: str) -> None:
    """The diff reads from the server of the state."""
    server_with_consent = insecure_server | {"allow_plain_http": True}
    warehouse_record = {"bucket": "lake", "deletion": "protect", "key_prefix": "main"}
    record = Resource(TenantRecordProvider())
    record.up(server=server_with_consent, tenant=unique, warehouses={"main": warehouse_record}, buckets={})
    del record.outs["server"]["allow_plain_http"]
    assert record.up(server=server_with_consent, tenant=unique, warehouses={}, buckets={}) == "update"
