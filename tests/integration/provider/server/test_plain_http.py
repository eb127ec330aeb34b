"""State of versions that did not require TLS, and declarations that must have it."""

from __future__ import annotations

import httpx
import pytest
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider

from tests.integration.provider.conftest import TOKEN
from tests.integration.provider.resource import Props, Resource


@pytest.fixture
def insecure(light: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Props:
    """The server under an address that may leave this machine, and a token for it."""
    monkeypatch.setenv(TOKEN, "operator")
    endpoint = str(light.base_url).rstrip("/").replace("127.0.0.1", "0.0.0.0")
    return {"endpoint": endpoint, "auth": {"kind": "token", "token": f"env:{TOKEN}"}}


@pytest.fixture
def recorded(insecure: Props, unique: str) -> Resource:
    """A project whose state is of a version without `allow_plain_http`."""
    project = Resource(ProjectProvider())
    allowed = insecure | {"allow_plain_http": True}
    project.up(server=allowed, project_id=unique, name=unique, deletion="purge")
    for properties in (project.inputs, project.outs):
        del properties["server"]["allow_plain_http"]
    return project


def test_old_state_is_refreshed_over_plain_http(recorded: Resource) -> None:
    assert recorded.refresh() == "same"


def test_old_state_is_destroyed_over_plain_http(recorded: Resource, light: httpx.Client, unique: str) -> None:
    recorded.destroy()
    listed = light.get("/management/v1/project-list").json()["projects"]
    assert unique not in [item["project-id"] for item in listed]


def test_old_state_reads_a_missing_object(recorded: Resource, light: httpx.Client, unique: str) -> None:
    light.delete("/management/v1/project", headers={"x-project-id": unique}).raise_for_status()
    assert recorded.refresh() == "delete"


def test_old_state_updates_once_plain_http_is_allowed(recorded: Resource, insecure: Props, unique: str) -> None:
    allowed = insecure | {"allow_plain_http": True}
    declared = {"server": allowed, "project_id": unique, "name": unique, "deletion": "purge"}
    assert recorded.up(**declared) == "update"
    assert recorded.up(**declared) == "same"


def test_declaration_without_tls_is_refused(insecure: Props, recorded: Resource, unique: str) -> None:
    declared = {"server": insecure, "project_id": unique, "name": unique, "deletion": "purge"}
    assert "without TLS. Use `https://`" in Resource(ProjectProvider()).failures(**declared)["server"]
    assert "without TLS. Use `https://`" in recorded.refused(**declared)[0]


def test_old_record_may_drop_a_warehouse(insecure: Props, unique: str) -> None:
    """The diff reads from the server of the state."""
    allowed = insecure | {"allow_plain_http": True}
    purged = {"bucket": "lake", "deletion": "protect", "key_prefix": "main"}
    record = Resource(TenantRecordProvider())
    record.up(server=allowed, tenant=unique, warehouses={"main": purged}, buckets={})
    del record.outs["server"]["allow_plain_http"]
    assert record.up(server=allowed, tenant=unique, warehouses={}, buckets={}) == "update"
