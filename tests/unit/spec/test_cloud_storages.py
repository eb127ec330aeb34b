"""Storage on Azure and Google in specs: what it becomes at the server, what is refused, and the way back."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.discovery.declaration.storages import StorageHints, declare_storage
from lakewright.field_map.arguments import build_args
from lakewright.field_map.marks import NotExpressibleError
from lakewright.field_map.read_back import read_fields
from lakewright.lakekeeper.storage.profiles import PROFILES, profile_request
from lakewright.spec import SpecError, WarehouseSpec, parse_spec
from lakewright.storage.backend import WarehouseAccess
from lakewright.storage.live_storage import name_as_on_s3
from lakewright.storage.registry import BACKENDS

ADLS = {"backend": "adls", "bucket": "lake", "account": "acmelake"}
GCS = {"backend": "gcs", "bucket": "acme-lake"}
KEY = {"credential": {"account_key": "config:account_key"}}
STANDBY = {
    "schedule": "15 3 * * *",
    "config": {"name": "standby"},
    "secret": {"name": "standby"},
    "egress": ["https://standby.example"],
}


def make_spec(storage: dict[str, Any], **warehouse: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "environment": "here",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": storage},
        "warehouses": [{"name": "lake"} | warehouse],
    }


def find_mistakes(document: dict[str, Any]) -> dict[str, str]:
    try:
        parse_spec(document, "test")
    except SpecError as error:
        return {problem.path: problem.expected for problem in error.problems}
    return {}


def build_request(storage: dict[str, Any], **warehouse: Any) -> dict[str, Any]:
    """Return the storage profile that a server gets for a warehouse."""
    spec = parse_spec(make_spec(storage, **warehouse), "test")
    backend = spec.storage["main"]
    access = WarehouseAccess(backend.bucket, "acme/lake", build_args(spec.warehouses[0])["storage"])
    profile = backend.storage_profile(access, backend.address(None))  # pyright: ignore[reportArgumentType]
    return profile_request(PROFILES[backend.service].model_validate(profile))


def test_adls_profile_has_account_container_and_lifetime() -> None:
    request = build_request(ADLS | KEY, token_seconds=1800)

    assert request == {
        "type": "adls",
        "account-name": "acmelake",
        "filesystem": "lake",
        "key-prefix": "acme/lake",
        "sas-enabled": True,
        "sas-token-validity-seconds": 1800,
        "allow-alternative-protocols": False,
    }


def test_other_clouds_have_their_own_hosts() -> None:
    request = build_request(ADLS | KEY | {"cloud": "us-government"})

    assert request["host"] == "dfs.core.usgovcloudapi.net"
    assert request["authority-host"] == "https://login.microsoftonline.us/"


def test_gcs_profile_has_the_bucket() -> None:
    assert build_request(GCS) == {
        "type": "gcs",
        "bucket": "acme-lake",
        "key-prefix": "acme/lake",
        "sts-enabled": True,
    }


@pytest.mark.parametrize(
    ("storage", "credential"),
    [
        (ADLS, {"type": "azure-system-identity"}),
        (ADLS | KEY, {"type": "shared-access-key", "key": "config:account_key"}),
        (
            ADLS | {"credential": {"client_id": "a", "directory_id": "b", "client_secret": "env:SECRET"}},
            {"type": "client-credentials", "client_id": "a", "tenant_id": "b", "client_secret": "env:SECRET"},
        ),
        (GCS, {"type": "gcp-system-identity"}),
        (
            GCS | {"credential": {"service_account_key": "file:/run/key.json"}},
            {"type": "service-account-key", "key": "file:/run/key.json"},
        ),
    ],
)
def test_credential_is_a_reference_or_an_identity(storage: dict[str, Any], credential: dict[str, str]) -> None:
    backend = parse_spec(make_spec(storage), "test").storage["main"]

    assert backend.storage_credential(None) == credential


@pytest.mark.parametrize(
    "credential",
    [
        {},
        {"account_key": "env:KEY", "client_id": "a"},
        {"client_id": "a", "client_secret": "env:SECRET"},
        {"account_key": "env:KEY", "client_id": "a", "directory_id": "b", "client_secret": "env:SECRET"},
    ],
)
def test_half_an_azure_credential_is_refused(credential: dict[str, str]) -> None:
    mistakes = find_mistakes(make_spec(ADLS | {"credential": credential}))

    assert "expected either `account_key`" in mistakes["storage.main.credential"]


def test_secrets_themselves_are_refused() -> None:
    mistakes = find_mistakes(make_spec(ADLS | {"credential": {"account_key": "c2VjcmV0"}}))

    assert set(mistakes) == {"storage.main.credential.account_key"}
    assert "c2VjcmV0" not in str(mistakes)


@pytest.mark.parametrize(
    ("storage", "warehouse", "field"),
    [
        (ADLS, {"delegation": "remote-signing"}, "delegation"),
        (GCS, {"delegation": "remote-signing"}, "delegation"),
        (ADLS, {"remote_signing": True}, "remote_signing"),
        (GCS, {"session_tags": {"team": "a"}}, "session_tags"),
        (GCS, {"token_seconds": 900}, "token_seconds"),
        (ADLS, {"vending_role": True}, "vending_role"),
        (GCS, {"lifecycle": {"intelligent_tiering_days": 1}}, "lifecycle"),
    ],
)
def test_settings_of_s3_are_refused(storage: dict[str, Any], warehouse: dict[str, Any], field: str) -> None:
    mistakes = find_mistakes(make_spec(storage, **warehouse))

    assert set(mistakes) == {f"warehouses.0.{field}"}
    assert f"`backend: {storage['backend']}`" in mistakes[f"warehouses.0.{field}"]


@pytest.mark.parametrize("selection", [{"warehouse": "lake"}, {"warehouses": ["lake"]}, {"warehouses": "all"}])
def test_texera_outside_s3_is_refused(selection: dict[str, Any]) -> None:
    document = make_spec(GCS)
    document["computing_units"] = [{"name": "one", "runtime": "texera"} | selection]

    (path,) = find_mistakes(document)
    assert path == f"computing_units.0.{next(iter(selection))}"


def test_containers_of_one_name_in_two_accounts_do_not_overlap() -> None:
    document = make_spec(ADLS | KEY, key_prefix="data")
    document["warehouses"][0]["storage"] = "main"
    document["storage"]["other"] = ADLS | KEY | {"account": "otherlake"}
    document["warehouses"].append({"name": "other", "storage": "other", "key_prefix": "data"})

    assert not find_mistakes(document)
    document["storage"]["other"]["account"] = "acmelake"
    assert set(find_mistakes(document)) == {"warehouses.1.key_prefix"}


@pytest.mark.parametrize(
    ("storage", "credential_type", "expected"),
    [
        (ADLS, "azure-system-identity", ADLS),
        (ADLS | KEY | {"cloud": "china"}, "shared-access-key", ADLS | {"cloud": "china"}),
        (GCS, "gcp-system-identity", GCS),
    ],
)
def test_storage_is_read_back_as_declared(
    storage: dict[str, Any], credential_type: str, expected: dict[str, Any]
) -> None:
    document = declare_storage(build_request(storage), credential_type, StorageHints())

    credential = document.pop("credential", None)
    assert document == expected
    assert (credential is None) == credential_type.endswith("identity")


def test_read_key_gets_a_reference_to_replace() -> None:
    placeholders = BACKENDS["gcs"].fill_references("main", GCS | {"credential": {"service_account_key": ""}}, None, {})

    assert placeholders is not None
    assert placeholders.fields == {"credential": {"service_account_key": "config:main_service_account_key"}}


@pytest.mark.parametrize(
    ("profile", "credential_type", "reason"),
    [
        ({"host": "dfs.fabric.microsoft.com"}, "azure-system-identity", "is of no cloud that specs have"),
        ({}, "client-credentials", "the server does not show; declare the storage manually"),
    ],
)
def test_storage_that_specs_lack_is_named(profile: dict[str, Any], credential_type: str, reason: str) -> None:
    with pytest.raises(NotExpressibleError, match=reason):
        declare_storage(build_request(ADLS) | profile, credential_type, StorageHints())


def test_settings_of_a_warehouse_on_adls_are_read_back() -> None:
    request = build_request(ADLS | KEY, token_seconds=1800)
    live = {key.replace("-", "_"): value for key, value in request.items()}

    document = read_fields(
        WarehouseSpec,
        {"name": "lake", "storage": name_as_on_s3(live), "deletion": None, "Namespace": [], "TaskQueueConfig": {}},
    )

    assert document == {"name": "lake", "key_prefix": "acme/lake", "token_seconds": 1800}


@pytest.mark.parametrize("storage", [ADLS | KEY, GCS])
def test_standby_outside_s3_is_refused(storage: dict[str, Any]) -> None:
    document = make_spec(storage)
    document["maintenance"] = {"jobs": ["statistics"], "standby": {"lake": STANDBY}}

    mistakes = find_mistakes(document)

    assert mistakes["maintenance.standby.lake"] == "expected a warehouse on S3, which can be copied only; `lake` is not"
