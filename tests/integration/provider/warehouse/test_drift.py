"""Drift of every declared property: a refresh shows it, and an `up` restores it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.storage.profiles import S3Profile
from lakewright.lakekeeper.warehouse.model import WarehouseArgs
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.since("0.13")  # A warehouse with every property needs it.

ROOT = "/management/v1/warehouse"
ROLE = "arn:aws:iam::123456789012:role/elsewhere"
KEY = {"type": "s3", "credential-type": "access-key", "access-key-id": "AKIA2", "secret-access-key": "other"}

IN_STORAGE: dict[str, Any] = {
    "region": "eu-west-1",
    "endpoint": "http://elsewhere.test:9000/",
    "sts_endpoint": "http://sts.test/",
    "flavor": "aws",
    "path_style_access": True,
    "assume_role_arn": ROLE,
    "sts_enabled": False,
    "sts_role_arn": ROLE,
    "sts_token_validity_seconds": 900,
    "sts_session_tags": {"tenant": "x"},
    "remote_signing_enabled": False,
    "remote_signing_url_style": "path",
    "push_s3_delete_disabled": False,
    "aws_kms_key_arn": "arn:aws:kms:us-east-1:123456789012:key/x",
    "allow_alternative_protocols": True,
    "legacy_md5_behavior": True,
    "storage_layout": {"type": "tabular-only", "tabular": "{uuid}"},
}
"""The value that another user sets for each property."""

FIXED = {"type", "bucket", "key_prefix"}
"""Properties that nobody can change."""


@pytest.fixture
def full_props(light_warehouse_props: Props) -> Props:
    """A warehouse with every property declared."""
    everything: Props = {
        "endpoint": "http://s3.test:9000",
        "storage_layout": {"type": "default"},
        "sts_role_arn": "arn:aws:iam::123456789012:role/vending",
    }
    more: Props = {
        "delete_profile": {"type": "soft", "expiration_seconds": 60},
        "allowed_format_versions": [1, 2],
        "default_format_version": 1,
    }
    return light_warehouse_props | more | {"storage": light_warehouse_props["storage"] | everything}


@pytest.fixture
def warehouse(full_props: Props) -> Resource:
    resource = Resource(WarehouseProvider())
    resource.up(**full_props)
    return resource


def read_warehouse(http: httpx.Client, warehouse: Resource) -> Props:
    return http.get(f"{ROOT}/{warehouse.id}").raise_for_status().json() | {"updated-at": None}


def test_cases_cover_every_storage_property() -> None:
    assert IN_STORAGE.keys() | FIXED == S3Profile.model_fields.keys()


@pytest.mark.parametrize("name", IN_STORAGE)
def test_storage_property(name: str, warehouse: Resource, full_props: Props, light: httpx.Client) -> None:
    before = read_warehouse(light, warehouse)
    profile = before["storage-profile"] | {name.replace("_", "-"): IN_STORAGE[name]}
    light.post(f"{ROOT}/{warehouse.id}/storage", json={"storage-profile": profile, "storage-credential": KEY})
    assert read_warehouse(light, warehouse) != before
    assert warehouse.refresh() == "update"
    assert warehouse.inputs["storage"][name] == IN_STORAGE[name]
    assert warehouse.up(**full_props) == "update"
    assert read_warehouse(light, warehouse) == before
    assert warehouse.refresh() == "same"


IN_WAREHOUSE: dict[str, tuple[str, Props]] = {
    "name": ("rename", {"new-name": "elsewhere"}),
    "delete_profile": ("delete-profile", {"delete-profile": {"type": "soft", "expiration-seconds": 3600}}),
    "protected": ("protection", {"protected": True}),
    "active": ("deactivate", {}),
    "allowed_format_versions": (
        "format-version-policy",
        {"allowed-format-versions": [1, 2, 3], "default-format-version": 1},
    ),
    "default_format_version": (
        "format-version-policy",
        {"allowed-format-versions": [1, 2], "default-format-version": 2},
    ),
    "credential": ("storage-credential", {"new-storage-credential": None}),
}

STACK_ONLY_PROPERTIES = {
    "server",
    "deletion",
    "adopt",
    "project_id",
    "storage",
    "credential_fingerprint",
    "managed_access",
    "own_bucket",
    "archive",
    "is_adopted",
    "record",
    "stack",
}
"""Properties that only the stack has, that no server changes, or that other tests cover.

The mark (`record` and `stack`) exists in shared projects only: tests/integration/tenant/ownership.
"""


def test_cases_cover_every_warehouse_property() -> None:
    assert IN_WAREHOUSE.keys() | STACK_ONLY_PROPERTIES == WarehouseArgs.model_fields.keys()


@pytest.mark.parametrize("name", IN_WAREHOUSE)
def test_warehouse_property(name: str, warehouse: Resource, full_props: Props, light: httpx.Client) -> None:
    before = read_warehouse(light, warehouse)
    subject, body = IN_WAREHOUSE[name]
    light.post(f"{ROOT}/{warehouse.id}/{subject}", json=body).raise_for_status()
    assert read_warehouse(light, warehouse) != before
    assert warehouse.refresh() == "update"
    assert warehouse.up(**full_props) == "update"
    assert read_warehouse(light, warehouse) == before
    assert warehouse.refresh() == "same"


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "s3", "credential-type": "aws-system-identity", "external-id": "x1"},
        {
            "type": "s3",
            "credential-type": "cloudflare-r2",
            "access-key-id": "a",
            "secret-access-key": "b",
            "token": "c",
            "account-id": "d",
        },
    ],
    ids=lambda kind: kind["credential-type"],
)
def test_credential_of_another_kind(kind: Props, warehouse: Resource, full_props: Props, light: httpx.Client) -> None:
    before = read_warehouse(light, warehouse)
    body = {"storage-profile": before["storage-profile"], "storage-credential": kind}
    light.post(f"{ROOT}/{warehouse.id}/storage", json=body).raise_for_status()
    assert warehouse.refresh() == "update"
    assert warehouse.up(**full_props) == "update"
    assert read_warehouse(light, warehouse) == before


def test_credential_where_none_is_declared(full_props: Props, light: httpx.Client) -> None:
    del full_props["credential"]
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**full_props)
    body = {"new-storage-credential": KEY}
    light.post(f"{ROOT}/{warehouse.id}/storage-credential", json=body).raise_for_status()
    assert warehouse.refresh() == "update"
    assert warehouse.inputs["credential"] == {"type": "undeclared", "kind": "access-key"}
    assert warehouse.up(**full_props) == "update"
    assert "storage-credential-type" not in read_warehouse(light, warehouse)
    assert warehouse.refresh() == "same"


AS_TYPED: dict[str, Props] = {
    "slashes around the prefix": {"key_prefix": "/main/"},
    "an address without its slash": {"endpoint": "http://s3.test:9000"},
    "a host in capitals": {"endpoint": "HTTP://S3.Test:9000/"},
    "a default port": {"endpoint": "https://s3.test:443"},
    "blank roles": {"assume_role_arn": " ", "sts_role_arn": ""},
    "a blank key": {"aws_kms_key_arn": " "},
    "an older word": {"flavor": "minio"},
    "versions in disorder": {},
    "nothing but what is needed": {},
}


@pytest.mark.parametrize("how", AS_TYPED)
def test_server_normalisation_is_no_drift(how: str, light_warehouse_props: Props) -> None:
    warehouse_props = light_warehouse_props | {"storage": light_warehouse_props["storage"] | AS_TYPED[how]}
    if how == "versions in disorder":
        warehouse_props["allowed_format_versions"] = [3, 1, 3]
    warehouse = Resource(WarehouseProvider())
    assert warehouse.up(**warehouse_props) == "create"
    assert warehouse.refresh() == "same"
    assert warehouse.up(**warehouse_props) == "same"


def test_profile_changes_of_an_r2_key_are_no_drift(
    light_warehouse_props: Props, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("R2_TOKEN", "token")
    storage = light_warehouse_props["storage"] | {"endpoint": "https://account.r2.test"}
    key = light_warehouse_props["credential"] | {
        "type": "cloudflare-r2",
        "token": "env:R2_TOKEN",
        "account_id": "account",
    }
    warehouse_props = light_warehouse_props | {"storage": storage, "credential": key}
    warehouse = Resource(WarehouseProvider())
    assert warehouse.up(**warehouse_props) == "create"
    assert (warehouse.refresh(), warehouse.up(**warehouse_props)) == ("same", "same")
    monkeypatch.setenv("R2_TOKEN", "another")
    assert warehouse.up(**warehouse_props) == "update"
    assert warehouse.up(**light_warehouse_props | {"storage": storage}) == "update"  # Only the kind of the credential.
    assert warehouse.refresh() == "same"


def test_deleted_warehouse(warehouse: Resource, full_props: Props, light: httpx.Client) -> None:
    light.delete(f"{ROOT}/{warehouse.id}").raise_for_status()
    assert warehouse.refresh() == "delete"
    assert warehouse.up(**full_props) == "create"
    assert warehouse.refresh() == "same"


def test_recreated_warehouse_has_another_id(warehouse: Resource, full_props: Props, light: httpx.Client) -> None:
    """With `adopt`, nothing is made twice."""
    before, first = read_warehouse(light, warehouse), warehouse.id
    light.delete(f"{ROOT}/{first}").raise_for_status()
    body = {
        "warehouse-name": full_props["name"],
        "storage-profile": before["storage-profile"],
        "storage-credential": KEY,
    }
    headers = {"x-project-id": full_props["project_id"]}
    second = light.post(ROOT, json=body, headers=headers).raise_for_status().json()["warehouse-id"]
    assert warehouse.refresh() == "delete"
    assert "this stack did not make it" in warehouse.refusal(**full_props)
    assert warehouse.up(**full_props, adopt=True) == "create"
    assert warehouse.id == second != first
    assert read_warehouse(light, warehouse) == before | {"id": second, "warehouse-id": second}


@pytest.fixture
def namespace_props(light_warehouse: Resource) -> Props:
    """A namespace with every property declared."""
    namespace_args: Props = {
        "server": light_warehouse.inputs["server"],
        "warehouse_id": light_warehouse.id,
        "name": "sales",
    }
    return namespace_args | {
        "properties": {"owner": "a", "team": "b"},
        "location": "s3://lake/main/here",
        "protected": False,
    }


@pytest.fixture
def namespace(namespace_props: Props) -> Resource:
    resource = Resource(NamespaceProvider())
    resource.up(**namespace_props)
    return resource


@pytest.mark.parametrize(
    "body",
    [
        {"updates": {"owner": "z"}, "removals": []},
        {"updates": {"new": "z"}, "removals": []},
        {"updates": {}, "removals": ["owner"]},
        {"updates": {}, "removals": ["owner", "team"]},
    ],
    ids=["changed", "added", "removed", "all removed"],
)
def test_namespace_properties(namespace: Resource, namespace_props: Props, light: httpx.Client, body: Props) -> None:
    url = f"/catalog/v1/{namespace_props['warehouse_id']}/namespaces/sales"
    before = light.get(url).json()
    light.post(f"{url}/properties", json=body).raise_for_status()
    assert namespace.refresh() == "update"
    assert namespace.up(**namespace_props) == "update"
    assert light.get(url).json() == before
    assert namespace.refresh() == "same"


def test_namespace_protection(namespace: Resource, namespace_props: Props, light: httpx.Client) -> None:
    namespace_id = namespace.outs["namespace_id"]
    url = f"/management/v1/warehouse/{namespace_props['warehouse_id']}/namespace/{namespace_id}/protection"
    light.post(url, json={"protected": True}).raise_for_status()
    assert namespace.refresh() == "update"
    assert namespace.up(**namespace_props) == "update"
    assert light.get(url).json()["protected"] is False


@pytest.mark.parametrize(("location", "operation"), [(None, "replace"), ("s3://lake/main/here", "same")])
def test_recreated_namespace_has_another_id(
    namespace: Resource, namespace_props: Props, light: httpx.Client, location: str | None, operation: str
) -> None:
    root, first = f"/catalog/v1/{namespace_props['warehouse_id']}/namespaces", namespace.outs["namespace_id"]
    light.delete(f"{root}/sales").raise_for_status()
    properties = namespace_props["properties"] | ({"location": location} if location else {})
    light.post(root, json={"namespace": ["sales"], "properties": properties}).raise_for_status()
    namespace.refresh()
    assert namespace.outs["namespace_id"] != first
    assert namespace.up(**namespace_props) == operation
    assert light.get(f"{root}/sales").json()["properties"]["location"] == "s3://lake/main/here/"


def test_deleted_namespace(namespace: Resource, namespace_props: Props, light: httpx.Client) -> None:
    light.delete(f"/catalog/v1/{namespace_props['warehouse_id']}/namespaces/sales").raise_for_status()
    assert namespace.refresh() == "delete"
    assert namespace.up(**namespace_props) == "create"


def test_namespace_of_a_deleted_warehouse(namespace: Resource, namespace_props: Props, light: httpx.Client) -> None:
    light.delete(f"/catalog/v1/{namespace_props['warehouse_id']}/namespaces/sales").raise_for_status()
    light.delete(f"{ROOT}/{namespace_props['warehouse_id']}").raise_for_status()
    assert namespace.refresh() == "delete"


def test_project_name_and_deletion(light_project: Props, light: httpx.Client) -> None:
    project, headers = Resource(ProjectProvider()), {"x-project-id": light_project["project_id"]}
    project_props = light_project | {"name": "tenant", "adopt": True}
    project.up(**project_props)
    light.post("/management/v1/project/rename", headers=headers, json={"new-name": "x"}).raise_for_status()
    assert project.refresh() == "update"
    assert project.up(**project_props) == "update"
    assert light.get("/management/v1/project", headers=headers).json()["project-name"] == "tenant"
    light.delete("/management/v1/project", headers=headers).raise_for_status()
    assert project.refresh() == "delete"
    assert project.up(**project_props) == "create"
