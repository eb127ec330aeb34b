"""Warehouses: created, read, updated in place or replaced, and drift of every declared property."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import RefusedError, UnsupportedServerError
from lakewright.lakekeeper.provider.errors import HoldsTablesError, NotOwnedError, ReplacementRefusedError
from lakewright.lakekeeper.provider.inputs import ServerKeeps, Since
from lakewright.lakekeeper.storage.profiles import S3Profile

from tests.integration.provider.resource import Props, Resource

ROOT = "/management/v1/warehouse"


def read_warehouse(http: httpx.Client, warehouse: Resource) -> Props:
    return http.get(f"{ROOT}/{warehouse.id}").raise_for_status().json()


def test_second_up_and_refresh_change_nothing(warehouse: Resource, warehouse_props: Props) -> None:
    assert warehouse.up(**warehouse_props) == "same"
    assert warehouse.refresh() == "same"
    assert warehouse.up(**warehouse_props) == "same"


def test_inputs_and_outputs_contain_no_secret(warehouse: Resource, sandbox: Any) -> None:
    assert sandbox.admin.secret_access_key.get_secret_value() not in str(warehouse.outs) + str(warehouse.inputs)
    assert sandbox.admin.access_key_id not in str(warehouse.outs) + str(warehouse.inputs)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "renamed"},
        {"delete_profile": {"type": "soft", "expiration_seconds": 86400}},
        {"protected": True},
        {"active": False},
        pytest.param({"allowed_format_versions": [3, 2], "default_format_version": 3}, marks=pytest.mark.since("0.13")),
    ],
    ids=lambda change: next(iter(change)),
)
def test_property_changes_in_place_and_back(
    warehouse: Resource, warehouse_props: Props, change: Props, http: httpx.Client
) -> None:
    before = read_warehouse(http, warehouse)
    assert warehouse.preview(**warehouse_props | change) == "update"
    assert warehouse.up(**warehouse_props | change) == "update"
    assert read_warehouse(http, warehouse) != before
    assert warehouse.refresh() == "same"
    assert warehouse.up(**warehouse_props | change) == "same"
    if "allowed_format_versions" not in change:  # An undeclared property is the server's to keep.
        assert warehouse.up(**warehouse_props) == "update"
        assert {**read_warehouse(http, warehouse), "updated-at": None} == {**before, "updated-at": None}


@pytest.mark.since("0.13")
@pytest.mark.parametrize(("allowed", "default"), [([2, 3], 3), ([1, 2], None)])
def test_undeclared_default_version_remains(
    warehouse: Resource, warehouse_props: Props, http: httpx.Client, allowed: list[int], default: int | None
) -> None:
    """The server deletes a default version that a change of the allowed versions leaves out."""
    policy = {"allowed-format-versions": [1, 2, 3], "default-format-version": 3}
    http.post(f"{ROOT}/{warehouse.id}/format-version-policy", json=policy).raise_for_status()

    assert warehouse.up(**warehouse_props | {"allowed_format_versions": allowed}) == "update"

    live_warehouse = read_warehouse(http, warehouse)
    assert live_warehouse["allowed-format-versions"] == allowed
    assert live_warehouse.get("default-format-version") == default
    assert warehouse.refresh() == "same"


STORAGE_CHANGES: list[Any] = [
    {"sts_token_validity_seconds": 1800},
    {"sts_session_tags": {"tenant": "a"}},
    {"sts_enabled": False},
    {"remote_signing_enabled": False},
    {"remote_signing_url_style": "path"},
    {"push_s3_delete_disabled": False},
    {"allow_alternative_protocols": True},
    {"legacy_md5_behavior": True},
    pytest.param(
        {"storage_layout": {"type": "tabular-only", "tabular": "{name}-{uuid}"}}, marks=pytest.mark.since("0.12")
    ),
    pytest.param({"region": "eu-central-1"}, marks=pytest.mark.since("0.12")),
]


@pytest.mark.parametrize("change", STORAGE_CHANGES, ids=lambda change: next(iter(change)))
def test_storage_settings_change_in_place(
    warehouse: Resource, warehouse_props: Props, change: Props, http: httpx.Client
) -> None:
    """The warehouse keeps its credential."""
    changed = warehouse_props | {"storage": warehouse_props["storage"] | change}
    assert warehouse.up(**changed) == "update"
    live_warehouse = read_warehouse(http, warehouse)
    for name, value in change.items():
        assert live_warehouse["storage-profile"][name.replace("_", "-")] == value
    credential_type = {"type": "s3", "credential-type": "access-key"}
    assert (
        live_warehouse.get("storage-credential-type", credential_type) == credential_type
    )  # Servers show it from 0.12 on.
    assert warehouse.refresh() == "same"
    assert warehouse.up(**changed) == "same"


DRIFT: list[tuple[str, Props]] = [
    ("rename", {"new-name": "elsewhere"}),
    ("delete-profile", {"delete-profile": {"type": "soft", "expiration-seconds": 60}}),
    ("protection", {"protected": True}),
    ("deactivate", {}),
]


@pytest.mark.parametrize(("subject", "body"), DRIFT, ids=lambda value: value if isinstance(value, str) else "")
def test_refresh_reports_drift_and_up_restores_it(
    warehouse: Resource, warehouse_props: Props, http: httpx.Client, subject: str, body: Props
) -> None:
    before = read_warehouse(http, warehouse)
    http.post(f"{ROOT}/{warehouse.id}/{subject}", json=body).raise_for_status()
    assert warehouse.refresh() == "update"
    assert warehouse.up(**warehouse_props) == "update"
    assert {**read_warehouse(http, warehouse), "updated-at": None} == {**before, "updated-at": None}
    assert warehouse.refresh() == "same"


def test_profile_drift_is_restored(
    warehouse: Resource, warehouse_props: Props, http: httpx.Client, sandbox: Any
) -> None:
    profile = read_warehouse(http, warehouse)["storage-profile"] | {"sts-token-validity-seconds": 900}
    credential = {
        "type": "s3",
        "credential-type": "access-key",
        "aws-access-key-id": sandbox.admin.access_key_id,
        "aws-secret-access-key": sandbox.admin.secret_access_key.get_secret_value(),
    }
    body = {"storage-profile": profile, "storage-credential": credential}
    http.post(f"{ROOT}/{warehouse.id}/storage", json=body).raise_for_status()
    assert warehouse.refresh() == "update"
    assert warehouse.inputs["storage"]["sts_token_validity_seconds"] == 900
    assert warehouse.up(**warehouse_props) == "update"
    assert read_warehouse(http, warehouse)["storage-profile"]["sts-token-validity-seconds"] == 3600


def test_normalisation_is_no_drift(warehouse: Resource, warehouse_props: Props) -> None:
    as_typed = warehouse_props["storage"] | {
        "key_prefix": f"/{warehouse_props['storage']['key_prefix']}/",
        "endpoint": warehouse_props["storage"]["endpoint"].replace("http:", "HTTP:"),
        "flavor": "minio",
        "assume_role_arn": " ",
    }
    assert warehouse.up(**warehouse_props | {"storage": as_typed}) == "same"


def test_inactive_warehouse_is_updated_and_remains_inactive(
    warehouse: Resource, warehouse_props: Props, http: httpx.Client
) -> None:
    warehouse.up(**warehouse_props | {"active": False})
    assert warehouse.up(**warehouse_props | {"active": False, "name": "other"}) == "update"
    live_warehouse = read_warehouse(http, warehouse)
    assert (live_warehouse["name"], live_warehouse["status"]) == ("other", "inactive")


def test_inactive_warehouse_remains_inactive_after_a_failure(
    warehouse: Resource, warehouse_props: Props, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    inactive_props = warehouse_props | {"active": False}
    warehouse.up(**inactive_props)
    monkeypatch.setenv("WRONG_KEY_ID", "AKIAWRONG")
    wrong_key = {"credential": warehouse_props["credential"] | {"access_key_id": "env:WRONG_KEY_ID"}}
    with pytest.raises(RefusedError):
        warehouse.up(**inactive_props | wrong_key)
    assert read_warehouse(http, warehouse)["status"] == "inactive"


def test_deactivated_warehouse_is_updated_without_a_refresh(
    warehouse: Resource, warehouse_props: Props, http: httpx.Client
) -> None:
    http.post(f"{ROOT}/{warehouse.id}/deactivate").raise_for_status()
    assert warehouse.up(**warehouse_props | {"name": "other"}) == "update"
    live_warehouse = read_warehouse(http, warehouse)
    assert (live_warehouse["name"], live_warehouse["status"]) == ("other", "active")


def test_deleted_warehouse_is_recreated(warehouse: Resource, warehouse_props: Props, http: httpx.Client) -> None:
    first = warehouse.id
    http.delete(f"{ROOT}/{first}").raise_for_status()
    assert warehouse.refresh() == "delete"
    assert warehouse.up(**warehouse_props) == "create"
    assert warehouse.id != first


@pytest.mark.parametrize("change", [{"key_prefix": "moved"}, {"bucket": "elsewhere-bucket"}], ids=str)
def test_immutable_property_replaces(
    warehouse: Resource, warehouse_props: Props, change: Props, aws: Any, http: httpx.Client
) -> None:
    if "bucket" in change:
        change = {"bucket": f"{warehouse_props['storage']['bucket']}-2"}
        aws("s3").create_bucket(Bucket=change["bucket"])
    changed = warehouse_props | {"storage": warehouse_props["storage"] | change}
    first = warehouse.id
    assert warehouse.up(**changed) == "replace"
    assert warehouse.id != first
    assert http.get(f"{ROOT}/{first}").status_code == 404


@pytest.mark.parametrize("deletion", ["protect", "retain"])
def test_preview_refuses_to_replace_a_warehouse_with_tables(
    warehouse: Resource, warehouse_props: Props, make_table: Any, deletion: str
) -> None:
    warehouse.up(**warehouse_props, deletion=deletion)
    make_table(warehouse.id, "sales", "orders")
    moved = warehouse_props | {"storage": warehouse_props["storage"] | {"key_prefix": "moved"}, "deletion": deletion}
    with pytest.raises(HoldsTablesError, match=r"1 table: sales\.orders"):
        warehouse.preview(**moved)


def test_purge_must_be_in_the_state_before_a_replacement(
    warehouse: Resource, warehouse_props: Props, make_table: Any, objects: Any
) -> None:
    make_table(warehouse.id, "sales", "orders")
    moved = warehouse_props | {"storage": warehouse_props["storage"] | {"key_prefix": "moved"}, "deletion": "purge"}
    with pytest.raises(HoldsTablesError, match="`deletion` is `protect` in the state"):
        warehouse.preview(**moved)
    assert warehouse.up(**warehouse_props, deletion="purge") == "update"
    assert warehouse.up(**moved) == "replace"
    assert objects() == []


def test_replacing_a_retained_warehouse_needs_a_new_name(warehouse: Resource, warehouse_props: Props) -> None:
    warehouse.up(**warehouse_props, deletion="retain")
    moved = warehouse_props | {"storage": warehouse_props["storage"] | {"key_prefix": "moved"}, "deletion": "retain"}
    with pytest.raises(ReplacementRefusedError, match="its name remains taken"):
        warehouse.preview(**moved)


def test_rename_onto_a_taken_name_names_the_owner(warehouse: Resource, warehouse_props: Props) -> None:
    other = Resource(type(warehouse.provider)())
    other.up(**warehouse_props | {"name": "taken", "storage": warehouse_props["storage"] | {"key_prefix": "taken"}})
    with pytest.raises(NotOwnedError, match=f"cannot be named `taken`: warehouse {other.id}"):
        warehouse.up(**warehouse_props | {"name": "taken"})


def test_new_server_address_costs_one_identity_call(
    light_warehouse: Resource, light_warehouse_props: Props, light: httpx.Client
) -> None:
    """The new address must be the same server. Nothing of the warehouse itself is read or written."""
    moved = {"endpoint": light_warehouse_props["server"]["endpoint"].replace("127.0.0.1", "localhost")}
    assert moved != light_warehouse_props["server"]
    light.delete("/sandbox/v1/calls").raise_for_status()
    assert light_warehouse.up(**light_warehouse_props | {"server": moved}) == "update"
    calls = light.get("/sandbox/v1/calls").json()["calls"]
    assert [(call["method"], call["path"]) for call in calls] == [("GET", "/management/v1/info")]
    assert light_warehouse.outs["server"]["endpoint"] == moved["endpoint"]


def test_field_that_needs_a_newer_server_is_refused(
    warehouse: Resource, warehouse_props: Props, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = S3Profile.model_fields["storage_layout"]
    monkeypatch.setattr(field, "metadata", [ServerKeeps(), Since((9, 0))])
    layout = warehouse_props["storage"] | {"storage_layout": {"type": "default"}}
    with pytest.raises(UnsupportedServerError, match=r"`storage.storage_layout` needs Lakekeeper 9\.0"):
        warehouse.up(**warehouse_props | {"storage": layout})
