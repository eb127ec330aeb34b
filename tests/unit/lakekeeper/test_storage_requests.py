"""Requests for each kind of storage and credential, checked against the server's OpenAPI description.

`openapi-storage.json` has the storage schemas of Lakekeeper's management API (Apache-2.0).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider.inputs import UNKNOWN, Replace, Update
from lakewright.lakekeeper.storage.credentials import GoogleServiceAccount, credential_request
from lakewright.lakekeeper.storage.profiles import profile_observed, profile_request
from lakewright.lakekeeper.warehouse.model import WarehouseArgs, create_request, storage_request
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.schema_validator import make_validator

SCHEMAS = json.loads((Path(__file__).parent / "openapi-storage.json").read_text())["components"]["schemas"]

GOOGLE_KEY = dict.fromkeys(SCHEMAS["GcsServiceKey"]["required"], "x") | {
    "token_uri": "https://oauth2.googleapis.com/token",
    "universe_domain": "googleapis.com",
}
SECRETS = {
    "env:ID": "AKIA1",
    "env:SECRET": "hidden",
    "env:TOKEN": "token",
    "file:/run/key.json": json.dumps(GOOGLE_KEY),
}
ROLE = "arn:aws:iam::123456789012:role/lake"

STORAGE: dict[str, dict[str, Any]] = {
    "s3": {"bucket": "lake", "region": "us-east-1", "assume_role_arn": ROLE},
    "r2": {"bucket": "lake", "region": "auto", "endpoint": "https://acc.r2.test", "flavor": "s3-compat"},
    "adls": {"type": "adls", "account_name": "lakeaccount", "filesystem": "lake", "key_prefix": "main"},
    "gcs": {"type": "gcs", "bucket": "lake-bucket", "key_prefix": "main"},
}
ADLS_FULL = STORAGE["adls"] | {
    "host": "dfs.core.usgovcloudapi.net",
    "authority_host": "https://login.microsoftonline.us",
    "sas_enabled": False,
    "sas_token_validity_seconds": 900,
    "allow_alternative_protocols": True,
    "storage_layout": {"type": "default"},
}
GCS_FULL = STORAGE["gcs"] | {"sts_enabled": False, "storage_layout": {"type": "tabular-only", "tabular": "{uuid}"}}

KEYS = {"access_key_id": "env:ID", "secret_access_key": "env:SECRET"}
CREDENTIALS: dict[str, tuple[str, dict[str, Any]]] = {
    "access-key": ("s3", {**KEYS, "external_id": "abc"}),
    "aws-system-identity": ("s3", {"external_id": "abc"}),
    "cloudflare-r2": ("r2", {**KEYS, "token": "env:TOKEN", "account_id": "acc"}),
    "client-credentials": ("adls", {"client_id": "c", "tenant_id": "t", "client_secret": "env:SECRET"}),
    "shared-access-key": ("adls", {"key": "env:SECRET"}),
    "azure-system-identity": ("adls", {}),
    "service-account-key": ("gcs", {"key": "file:/run/key.json"}),
    "gcp-system-identity": ("gcs", {}),
}


def warehouse_args(storage: dict[str, Any], credential: dict[str, Any] | None) -> WarehouseArgs:
    server = {"endpoint": "https://lake.test"}
    parts = {"server": server, "project_id": "tenant", "name": "main", "storage": storage}
    return WarehouseArgs.parse(parts | ({"credential": credential} if credential else {}))


def warehouse_with_credential(kind: str) -> WarehouseArgs:
    storage, properties = CREDENTIALS[kind]
    return warehouse_args(STORAGE[storage], {"type": kind, **properties})


def problems(schema: str, body: dict[str, Any]) -> list[str]:
    """Return the mistakes of a body by the description, and the keys that the description lacks."""
    root = {"$ref": f"#/components/schemas/{schema}", "components": {"schemas": SCHEMAS}}
    return [error.message for error in make_validator(root).iter_errors(body)]


def has_newer_name(body: dict[str, Any]) -> dict[str, Any]:
    """The description has only the newer spelling of access keys, which servers before 0.12 do not take."""
    credential = {key.removeprefix("aws-"): value for key, value in body["storage-credential"].items()}
    return body | {"storage-credential": credential}


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_each_credential_matches_the_description(kind: str) -> None:
    create = has_newer_name(create_request(warehouse_with_credential(kind), SECRETS.__getitem__))
    assert problems("CreateWarehouseRequest", create) == []
    update = has_newer_name(storage_request(warehouse_with_credential(kind), SECRETS.__getitem__))
    assert problems("UpdateWarehouseStorageRequest", update) == []
    rotation = {"new-storage-credential": update["storage-credential"]}
    assert problems("UpdateWarehouseCredentialRequest", rotation) == []


@pytest.mark.parametrize(
    ("schema", "storage"),
    [("AdlsProfile", ADLS_FULL), ("GcsProfile", GCS_FULL), ("S3Profile", STORAGE["s3"] | {"sts_endpoint": "http://x"})],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_profile_property_is_in_the_description(schema: str, storage: dict[str, Any]) -> None:
    family = {"AdlsProfile": "client-credentials", "GcsProfile": "service-account-key", "S3Profile": "access-key"}
    profile = warehouse_args(storage, {"type": family[schema], **CREDENTIALS[family[schema]][1]}).storage
    keys = {name.replace("_", "-") for name in type(profile).model_fields} - {"type"}
    assert keys == SCHEMAS[schema]["properties"].keys()
    sent = profile_request(profile)
    assert problems("StorageProfile", sent) == []
    assert sent.keys() - {"type"} <= keys


def test_access_key_in_the_spelling_of_every_version() -> None:
    """An R2 key has no prefix in any version."""
    assert credential_request(warehouse_with_credential("access-key").credential, SECRETS.__getitem__) == {  # type: ignore[arg-type]
        "type": "s3",
        "credential-type": "access-key",
        "aws-access-key-id": "AKIA1",
        "aws-secret-access-key": "hidden",
        "external-id": "abc",
    }
    assert credential_request(warehouse_with_credential("cloudflare-r2").credential, SECRETS.__getitem__) == {  # type: ignore[arg-type]
        "type": "s3",
        "credential-type": "cloudflare-r2",
        "access-key-id": "AKIA1",
        "secret-access-key": "hidden",
        "token": "token",
        "account-id": "acc",
    }


def test_service_account_key_is_googles_json() -> None:
    sent = credential_request(warehouse_with_credential("service-account-key").credential, SECRETS.__getitem__)  # type: ignore[arg-type]
    assert sent["key"] == GOOGLE_KEY
    key = GoogleServiceAccount(type="service-account-key", key="env:KEY")
    with pytest.raises(
        UnresolvedCredentialError, match="`env:KEY` is not the JSON of a service account's key"
    ) as wrong:
        credential_request(key, lambda _: "not-json-but-secret")
    assert "secret" not in str(wrong.value)


@pytest.mark.parametrize("kind", ["adls", "gcs"])
def test_server_defaults_are_no_difference(kind: str) -> None:
    """The server's profile has all defaults, explicit nulls, and a prefix without slashes."""
    responses = {
        "adls": {
            "type": "adls",
            "filesystem": "lake",
            "key-prefix": "main",
            "account-name": "lakeaccount",
            "authority-host": "https://login.microsoftonline.com/",
            "host": "dfs.core.windows.net",
            "sas-token-validity-seconds": None,
            "sas-enabled": True,
            "allow-alternative-protocols": False,
            "storage-layout": None,
        },
        "gcs": {"type": "gcs", "bucket": "lake-bucket", "key-prefix": "main", "storage-layout": None},
    }
    expected_profile = warehouse_args(STORAGE[kind] | {"key_prefix": "/main/"}, {"type": _identity(kind)}).storage
    assert profile_observed(responses[kind], expected_profile) == expected_profile


def test_default_azure_address_is_not_sent() -> None:
    spelled_out = STORAGE["adls"] | {
        "host": "dfs.core.windows.net",
        "authority_host": "https://login.microsoftonline.com",
    }
    sent = profile_request(warehouse_args(spelled_out, {"type": "azure-system-identity"}).storage)
    assert sent.keys() & {"host", "authority-host"} == set()


@pytest.mark.parametrize(
    ("kind", "change", "mark"),
    [
        ("adls", {"filesystem": "other"}, Replace()),
        ("adls", {"key_prefix": "other"}, Replace()),
        ("adls", {"host": "dfs.core.usgovcloudapi.net"}, Replace()),
        ("adls", {"authority_host": "https://login.microsoftonline.us"}, Replace()),
        ("adls", {"account_name": "otheraccount"}, Replace()),
        ("adls", {"sas_enabled": False}, Update(via="storage")),
        ("adls", {"sas_token_validity_seconds": 60}, Update(via="storage")),
        ("adls", {"allow_alternative_protocols": True}, Update(via="storage")),
        ("adls", {"storage_layout": {"type": "default"}}, Update(via="storage")),
        ("gcs", {"bucket": "other"}, Replace()),
        ("gcs", {"key_prefix": "other"}, Replace()),
        ("gcs", {"sts_enabled": False}, Update(via="storage")),
        ("gcs", {"storage_layout": {"type": "default"}}, Update(via="storage")),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_replaced_and_updated_storage_properties(kind: str, change: dict[str, Any], mark: object) -> None:
    credential = {"type": _identity(kind)}
    before, after = warehouse_args(STORAGE[kind], credential), warehouse_args(STORAGE[kind] | change, credential)
    marks = {item.path: item.mark for item in difference.list_changes(before, after)}
    assert marks == {f"storage.{next(iter(change))}": mark}


def test_another_kind_of_storage_replaces() -> None:
    before, after = warehouse_with_credential("access-key"), warehouse_with_credential("gcp-system-identity")
    (change,) = [item for item in difference.list_changes(before, after) if item.path == "storage"]
    assert WarehouseProvider().replaces(change, after, lambda: pytest.fail("no server is asked"))


@pytest.mark.parametrize(
    ("storage", "credential", "expected"),
    [
        ("gcs", None, "storage of type `gcs` needs a credential"),
        ("adls", None, "storage of type `adls` needs a credential"),
        ("adls", "access-key", "credential of type `access-key` is not for storage of type `adls`"),
        ("s3", "gcp-system-identity", "credential of type `gcp-system-identity` is not for storage of type `s3`"),
        ("s3", "cloudflare-r2", "Cloudflare R2 needs `endpoint`, `flavor` `s3-compat`"),
    ],
)
def test_credential_of_another_storage_is_refused(storage: str, credential: str | None, expected: str) -> None:
    props: dict[str, Any] = {
        "server": {"endpoint": "https://lake.test"},
        "project_id": "tenant",
        "name": "main",
        "storage": STORAGE[storage],
    }
    if credential:
        props["credential"] = {"type": credential, **CREDENTIALS[credential][1]}
    (failure,) = WarehouseProvider().check({}, props).failures
    assert expected in failure.reason


def test_unknown_values_of_any_storage_pass() -> None:
    for storage in (STORAGE["adls"] | {"filesystem": UNKNOWN}, STORAGE["gcs"] | {"bucket": UNKNOWN}, UNKNOWN):
        props = {"server": {"endpoint": "https://lake.test"}, "project_id": "tenant", "name": "main"}
        assert WarehouseProvider().check({}, props | {"storage": storage, "credential": UNKNOWN}).failures == []


def _identity(kind: str) -> str:
    return {"adls": "azure-system-identity", "gcs": "gcp-system-identity"}[kind]
