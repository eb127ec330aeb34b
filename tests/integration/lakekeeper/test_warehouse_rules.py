"""Rules of warehouses: fields that change in place, fixed fields, and the order of the obstacles of a deletion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from lakewright_sandbox.lakekeeper.protocol.clock import Clock

from tests.integration.lakekeeper.rules import (
    KEY,
    MANAGEMENT,
    PROFILE,
    app,
    client,
    clock,
    create_table,
    get_refusal,
    get_warehouse,
    keys_under,
    light,
    module_light,
    run_all,
    warehouse,
)

__all__ = ["app", "client", "clock", "light", "module_light", "warehouse"]

ROLE = "arn:aws:iam::123456789012:role/r"


def test_storage_without_credential_removes_the_old_one(light: Any, warehouse: str) -> None:
    assert get_warehouse(light, warehouse)["storage-credential-type"]["credential-type"] == "access-key"
    light.post(f"{MANAGEMENT}/{warehouse}/storage", json={"storage-profile": PROFILE}).raise_for_status()
    assert "storage-credential-type" not in get_warehouse(light, warehouse)


@pytest.mark.parametrize("body", [{}, {"new-storage-credential": None}], ids=["missing", "null"])
def test_a_null_or_missing_credential_removes_the_old_one(light: Any, warehouse: str, body: Any) -> None:
    light.post(f"{MANAGEMENT}/{warehouse}/storage-credential", json=body).raise_for_status()
    assert "storage-credential-type" not in get_warehouse(light, warehouse)


@pytest.mark.parametrize(
    ("field", "value", "other_changes"),
    [
        ("bucket", "other", {}),
        ("key-prefix", "other", {}),
        ("key-prefix", None, {}),
        ("bucket", "other", {"endpoint": "http://s3.test"}),
        ("region", "eu-west-1", {}),
    ],
)
def test_fields_that_never_change(light: Any, warehouse: str, field: str, value: Any, other_changes: Any) -> None:
    body = {"storage-profile": PROFILE | other_changes | {field: value}, "storage-credential": KEY}
    response = light.post(f"{MANAGEMENT}/{warehouse}/storage", json=body)
    assert get_refusal(response) == (400, "UpdateError")
    assert f"`{field.replace('-', '_')}` cannot be updated" in response.json()["error"]["message"]
    assert get_warehouse(light, warehouse)["updated-at"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"key-prefix": " /main/ "},
        {"region": "eu-west-1", "endpoint": "http://s3.test"},
        {"endpoint": "http://s3.test"},
        {"sts-endpoint": "http://sts.test/x"},
        {"flavor": "aws"},
        {"assume-role-arn": ROLE},
        {"sts-enabled": True, "sts-role-arn": ROLE},
        {"aws-kms-key-arn": "arn:aws:kms:us-east-1:123456789012:key/k"},
        {"storage-layout": {"type": "tabular-only", "tabular": "{uuid}"}},
        {"remote-signing-enabled": False},
    ],
    ids=",".join,
)
def test_fields_that_change_in_place(light: Any, warehouse: str, change: dict[str, Any]) -> None:
    body = {"storage-profile": PROFILE | change, "storage-credential": KEY}
    response = light.post(f"{MANAGEMENT}/{warehouse}/storage", json=body)
    assert response.status_code == 200, response.text
    profile = response.json()["storage-profile"]
    assert {key: str(profile[key]).strip(" /") for key in change} == {
        key: str(value).strip(" /") for key, value in change.items()
    }


def test_storage_is_validated_before_fixed_fields_are_compared(
    lakekeeper: httpx.Client, make_warehouse: Any, aws: Any
) -> None:
    warehouse = make_warehouse(lakekeeper, "tried-first")
    profile = get_warehouse(lakekeeper, warehouse)["storage-profile"] | {"bucket": "not-there"}
    key = KEY | {"access-key-id": aws.access_key_id, "secret-access-key": aws.secret_access_key}
    body = {"storage-profile": profile, "storage-credential": key}
    assert get_refusal(lakekeeper.post(f"{MANAGEMENT}/{warehouse}/storage", json=body)) == (400, "NotFound")
    reachable = {"storage-profile": profile | {"bucket": "tenants", "key-prefix": "moved"}, "storage-credential": key}
    assert get_refusal(lakekeeper.post(f"{MANAGEMENT}/{warehouse}/storage", json=reachable)) == (400, "UpdateError")


def test_another_layout_is_for_new_tables_alone(client: Any, make_warehouse: Any, aws: Any) -> None:
    warehouse = make_warehouse(client, "layout")
    first = create_table(client, warehouse, "first")
    profile = get_warehouse(client, warehouse)["storage-profile"]
    layout = {"type": "tabular-only", "tabular": "{name}-{uuid}"}
    key = KEY | {"access-key-id": aws.access_key_id, "secret-access-key": aws.secret_access_key}
    body = {"storage-profile": profile | {"storage-layout": layout}, "storage-credential": key}
    client.post(f"{MANAGEMENT}/{warehouse}/storage", json=body).raise_for_status()
    assert "/second-" in create_table(client, warehouse, "second")
    loaded = client.get(f"/catalog/v1/{warehouse}/namespaces/n/tables/first").json()["metadata"]
    assert loaded["location"] == first


def test_deletion_blockers_in_order_and_force_for_protection(
    client: Any, app: FastAPI, clock: Clock, make_warehouse: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = make_warehouse(client, "in-order", soft_delete_seconds=60)
    path = f"{MANAGEMENT}/{warehouse}"
    create_table(client, warehouse)
    client.delete(f"/catalog/v1/{warehouse}/namespaces/n/tables/t").raise_for_status()
    client.post(f"{path}/protection", json={"protected": True}).raise_for_status()
    lakekeeper = app.state.lakekeeper

    def set_manager(manager: str) -> None:
        with monkeypatch.context() as admin:
            admin.setattr(lakekeeper, "settings", replace(lakekeeper.settings, instance_admin=True))
            client.post(f"{path}/managed-by", json={"managed-by": manager}).raise_for_status()

    set_manager("instance-admin")
    assert get_refusal(client.delete(path, params={"force": "true"})) == (403, "WarehouseManaged")
    set_manager("self-managed")
    assert get_refusal(client.delete(path, params={"force": "true"})) == (409, "WarehouseHasUnfinishedTasks")
    clock.advance(61)
    run_all(app)
    assert get_refusal(client.delete(path)) == (409, "WarehouseProtected")
    assert get_refusal(client.delete(path, params={"force": "true"})) == (409, "WarehouseNotEmpty")
    client.delete(f"/catalog/v1/{warehouse}/namespaces/n").raise_for_status()
    assert get_refusal(client.delete(path)) == (409, "WarehouseProtected")
    assert client.delete(path, params={"force": "true"}).status_code == 204
    assert get_refusal(client.delete(path)) == (404, "NoSuchWarehouseException")


def test_an_unfinished_purge_keeps_a_warehouse(client: Any, app: FastAPI, make_warehouse: Any) -> None:
    warehouse = make_warehouse(client, "to-be-purged")
    create_table(client, warehouse)
    drop_options = {"recursive": "true", "force": "true", "purge": "true"}
    client.delete(f"/catalog/v1/{warehouse}/namespaces/n", params=drop_options).raise_for_status()
    response = client.delete(f"{MANAGEMENT}/{warehouse}", params={"force": "true"})
    assert get_refusal(response) == (409, "WarehouseHasUnfinishedTasks")
    run_all(app)
    assert client.delete(f"{MANAGEMENT}/{warehouse}").status_code == 204


def test_a_warehouse_with_contents_is_never_deleted(light: Any, warehouse: str) -> None:
    light.post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": ["n"]}).raise_for_status()
    everything = {"force": "true", "recursive": "true", "purge": "true"}
    assert get_refusal(light.delete(f"{MANAGEMENT}/{warehouse}", params=everything)) == (409, "WarehouseNotEmpty")
    drop_options = {"recursive": "true", "force": "true", "purge": "true"}
    light.delete(f"/catalog/v1/{warehouse}/namespaces/n", params=drop_options).raise_for_status()
    assert light.delete(f"{MANAGEMENT}/{warehouse}").status_code == 204


def test_a_purge_keeps_objects_outside_of_the_table(client: Any, app: FastAPI, make_warehouse: Any, aws: Any) -> None:
    warehouse = make_warehouse(client, "stays")
    profile = get_warehouse(client, warehouse)["storage-profile"]
    key = f"{profile['key-prefix']}/of-others"
    aws.client("s3").put_object(Bucket=profile["bucket"], Key=key, Body=b"x")
    table = create_table(client, warehouse)
    drop_options = {"recursive": "true", "force": "true", "purge": "true"}
    client.delete(f"/catalog/v1/{warehouse}/namespaces/n", params=drop_options).raise_for_status()
    run_all(app)
    client.delete(f"{MANAGEMENT}/{warehouse}").raise_for_status()
    assert keys_under(aws, table) == []
    assert keys_under(aws, f"s3://{profile['bucket']}/{profile['key-prefix']}/") == [key]


def test_only_instance_admins_change_a_warehouse(client: Any, managed: str) -> None:
    changes: dict[str, Any] = {
        "rename": {"new-name": "x"},
        "activate": {},
        "deactivate": {},
        "storage": {"storage-profile": PROFILE},
        "storage-credential": {},
        "delete-profile": {"delete-profile": {"type": "hard"}},
        "protection": {"protected": True},
        "format-version-policy": {"allowed-format-versions": [2]},
    }
    responses = {change: get_refusal(client.post(f"{managed}/{change}", json=body)) for change, body in changes.items()}
    responses["delete"] = get_refusal(client.delete(managed))
    assert set(responses.values()) == {(403, "WarehouseManaged")}, responses
