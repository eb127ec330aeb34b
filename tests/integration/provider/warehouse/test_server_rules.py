"""In-place changes that a server allows, and their calls: a test for every rule that the provider relies on."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection import errors
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.versions import Server
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.resource import Props, Resource

ROOT = "/management/v1/warehouse"


SINCE_0_12 = pytest.mark.since("0.12")


@pytest.fixture
def warehouse(light_warehouse: Resource) -> Resource:
    return light_warehouse


@pytest.fixture
def warehouse_props(light_warehouse_props: Props) -> Props:
    return light_warehouse_props


def change_storage(warehouse_props: Props, **changes: Any) -> Props:
    return warehouse_props | {"storage": warehouse_props["storage"] | changes}


@pytest.fixture
def update_bodies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Props]]:
    """The updates that the provider sends: the call's last path segment, and its body."""
    requests: list[tuple[str, Props]] = []
    real = Client.call

    def record(self: Client, method: Any, path: str, **options: Any) -> httpx.Response:
        if method not in {"GET", "HEAD"}:
            requests.append((path.rpartition("/")[2], {**(options.get("body") or {}), **(options.get("params") or {})}))
        return real(self, method, path, **options)

    monkeypatch.setattr(Client, "call", record)
    return requests


@SINCE_0_12
def test_changed_profile_includes_its_credential(
    warehouse: Resource, warehouse_props: Props, update_bodies: Any, light: httpx.Client
) -> None:
    """The server deletes a credential that a changed profile leaves out."""
    warehouse.up(**change_storage(warehouse_props, sts_token_validity_seconds=900))
    ((call, body),) = update_bodies
    assert call == "storage"
    assert body["storage-credential"]["credential-type"] == "access-key"
    assert light.get(f"{ROOT}/{warehouse.id}").json()["storage-credential-type"]["credential-type"] == "access-key"


def test_changed_key_uses_the_credential_call(
    warehouse: Resource, warehouse_props: Props, update_bodies: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORAGE_SECRET", "another")
    assert warehouse.up(**warehouse_props) == "update"
    ((call, body),) = update_bodies
    assert (call, body["new-storage-credential"]["aws-secret-access-key"]) == ("storage-credential", "another")


def test_undeclared_credential_is_removed(
    warehouse: Resource, warehouse_props: Props, update_bodies: Any, light: httpx.Client
) -> None:
    del warehouse_props["credential"]
    assert warehouse.up(**warehouse_props) == "update"
    assert update_bodies == [("storage-credential", {"new-storage-credential": None})]
    assert "storage-credential-type" not in light.get(f"{ROOT}/{warehouse.id}").json()
    assert (warehouse.refresh(), warehouse.up(**warehouse_props)) == ("same", "same")


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        ({"bucket": "other"}, "replace"),
        ({"key_prefix": "other"}, "replace"),
        ({"key_prefix": " /main/"}, "same"),
        ({"region": "eu-west-1"}, "replace"),
        pytest.param({"region": "eu-west-1", "endpoint": "http://s3.test"}, "update", marks=SINCE_0_12),
        ({"endpoint": "http://s3.test"}, "update"),
        ({"flavor": "aws", "sts_role_arn": "arn:aws:iam::123456789012:role/r"}, "update"),
        ({"assume_role_arn": "arn:aws:iam::123456789012:role/r"}, "update"),
        ({"aws_kms_key_arn": "arn:aws:kms:us-east-1:123456789012:key/k"}, "update"),
        pytest.param({"storage_layout": {"type": "default"}}, "update", marks=SINCE_0_12),
    ],
    ids=str,
)
def test_storage_properties_that_replace(
    warehouse: Resource, warehouse_props: Props, change: Props, operation: str
) -> None:
    """Bucket and prefix never change in place. A region does only beside a changed endpoint."""
    first = warehouse.id
    assert warehouse.preview(**change_storage(warehouse_props, **change)) == operation
    assert warehouse.up(**change_storage(warehouse_props, **change)) == operation
    assert (warehouse.id == first) == (operation != "replace")
    assert warehouse.refresh() == "same"


def test_before_0_12_no_region_changes_in_place(
    warehouse: Resource, warehouse_props: Props, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "moves_region", False)
    moved = change_storage(warehouse_props, region="eu-west-1", endpoint="http://s3.test")
    assert warehouse.preview(**moved) == "replace"


@SINCE_0_12
def test_region_drift_that_cannot_be_undone_replaces(
    warehouse: Resource, warehouse_props: Props, light: httpx.Client
) -> None:
    profile = light.get(f"{ROOT}/{warehouse.id}").json()["storage-profile"]
    body = {"storage-profile": profile | {"region": "eu-west-1", "endpoint": "http://s3.test"}}
    light.post(f"{ROOT}/{warehouse.id}/storage", json=body).raise_for_status()
    assert warehouse.refresh() == "update"
    assert warehouse.preview(**warehouse_props) == "replace"


def test_another_project_replaces(warehouse: Resource, warehouse_props: Props, light: httpx.Client) -> None:
    other = f"{warehouse_props['project_id']}-2"
    light.post("/management/v1/project", json={"project-id": other, "project-name": other}).raise_for_status()
    assert warehouse.up(**warehouse_props | {"project_id": other}) == "replace"


def test_name_and_its_case_change_in_place(warehouse: Resource, warehouse_props: Props) -> None:
    first = warehouse.id
    assert warehouse.up(**warehouse_props | {"name": "other"}) == "update"
    assert warehouse.up(**warehouse_props | {"name": "OTHER"}) == "update"
    assert warehouse.id == first
    assert warehouse.refresh() == "same"


@SINCE_0_12
def test_undeclared_layout_is_the_servers_to_keep(warehouse: Resource, warehouse_props: Props) -> None:
    layout = {"type": "tabular-only", "tabular": "{uuid}"}
    warehouse.up(**change_storage(warehouse_props, storage_layout=layout))
    assert warehouse.up(**warehouse_props) == "same"


def test_alternative_protocols_are_sent_as_false(
    warehouse: Resource, warehouse_props: Props, light: httpx.Client
) -> None:
    """The server would keep an earlier `true` if the field were left out."""
    warehouse.up(**change_storage(warehouse_props, allow_alternative_protocols=True))
    assert warehouse.up(**warehouse_props) == "update"
    profile = light.get(f"{ROOT}/{warehouse.id}").json()["storage-profile"]
    assert profile["allow-alternative-protocols"] is False


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        ({"name": "other"}, True),
        ({"delete_profile": {"type": "soft", "expiration_seconds": 60}}, True),
        ({"protected": True}, False),
        pytest.param({"allowed_format_versions": [2]}, False, marks=pytest.mark.since("0.13")),
        ({"storage": {"sts_token_validity_seconds": 900}}, True),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_inactive_warehouse_is_activated_only_where_needed(
    warehouse: Resource, warehouse_props: Props, update_bodies: Any, change: Props, *, wakes: bool
) -> None:
    inactive_props = warehouse_props | {"active": False}
    warehouse.up(**inactive_props)
    update_bodies.clear()
    changed = inactive_props | change | {"storage": warehouse_props["storage"] | change.get("storage", {})}
    assert warehouse.up(**changed) == "update"
    calls = [call for call, _ in update_bodies]
    assert (calls[0] == "activate", calls[-1] == "deactivate") == (wakes, wakes)
    assert warehouse.refresh() == "same"


@pytest.mark.since("0.14")  # Only newer lists have the inactive warehouse.
def test_rename_onto_a_taken_name_is_refused_early(
    warehouse: Resource, warehouse_props: Props, update_bodies: Any
) -> None:
    """The server would respond with 503."""
    other = Resource(WarehouseProvider())
    other.up(**change_storage(warehouse_props, key_prefix="other") | {"name": "other", "active": False})
    warehouse.up(**warehouse_props | {"active": False})
    update_bodies.clear()
    with pytest.raises(NotOwnedError, match=rf"cannot be named `Other`: warehouse {other.id}"):
        warehouse.up(**warehouse_props | {"name": "Other", "active": False})
    assert update_bodies == []


def test_protection_is_never_overridden_by_force(
    warehouse: Resource, warehouse_props: Props, update_bodies: Any
) -> None:
    warehouse.up(**warehouse_props | {"protected": True})
    with pytest.raises(errors.ProtectedError, match="WarehouseProtected"):
        warehouse.destroy()
    assert "force" not in dict(update_bodies)[warehouse.id]
