"""Storages in S3-compatible stores: what a spec may combine, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.spec import SpecError, parse_spec
from lakewright.storage.backend import StorageAddress, WarehouseAccess
from lakewright.storage.s3 import STORES, S3Storage

KEYS = {"access_key_id": "config:key_id", "secret_access_key": "config:secret"}
PLACE = {"backend": "s3", "bucket": "lake", "endpoint": "https://store.example:9000", "credential": KEYS}
ROLE = "arn:aws:iam:::role/lakekeeper"


def problem(**storage: Any) -> str:
    """Return the only problem of a storage."""
    document = {"version": 1, "name": "acme", "owner": "tests", "environment": "dev"}
    with pytest.raises(SpecError) as refused:
        parse_spec(document | {"storage": {"main": PLACE | storage}, "warehouses": [{"name": "main"}]}, "spec")
    (mistake,) = (mistake for mistake in refused.value.problems if mistake.path.startswith("storage.main"))
    return mistake.expected


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({"versioning": True}, "`versioning` needs `create: true`"),
        ({"tls_only": True}, "`tls_only` needs `create: true`"),
        ({"admin_credential": KEYS}, "`admin_credential` needs `create: true`"),
        ({"create": True, "noncurrent_version_days": 3}, "needs `versioning: true`"),
        ({"create": True, "tls_only": True, "endpoint": "http://store.example"}, "needs an `endpoint` with `https://`"),
        ({"store": "seaweedfs"}, "`store: seaweedfs` needs `sts_role_arn`"),
        ({"store": "ceph"}, "`store: ceph` needs `sts_role_arn`"),
        ({"store": "r2"}, "`credential.token` and `credential.account_id`"),
        ({"credential": KEYS | {"token": "config:token"}}, "`credential.token` needs `store: r2`"),
        ({"store": "minio", "credential": KEYS | {"account_id": "0123"}}, "`credential.account_id` needs `store: r2`"),
        ({"store": "r2", "create": True, "sts": False}, "`create` is not possible with `store: r2`"),
        ({"store": "r2", "sts": False, "sts_role_arn": "arn:aws:iam::123456789012:role/x"}, "has no STS"),
        ({"ca_certificates": "/etc/ssl/ca.pem"}, "expected the certificates of an authority in PEM"),
        (
            {"ca_certificates": "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----"},
            "found another kind of PEM block",
        ),
        (
            {"ca_certificates": "-----BEGIN CERTIFICATE-----\nbm90IGE=\n-----END CERTIFICATE-----"},
            "at least one of them cannot be read",
        ),
    ],
)
def test_combination_that_no_store_has(storage: dict[str, Any], expected: str) -> None:
    message = problem(**storage)

    assert expected in message
    assert "c2VjcmV0" not in message


def test_vending_without_sts_is_refused_with_its_remedy() -> None:
    document = {"version": 1, "name": "acme", "owner": "tests", "environment": "dev"}
    with pytest.raises(SpecError) as refused:
        parse_spec(document | {"storage": {"main": PLACE | {"sts": False}}, "warehouses": [{"name": "main"}]}, "spec")

    (mistake,) = refused.value.problems
    assert mistake.path == "warehouses.0.delegation"
    assert "remote-signing" in mistake.expected


def test_cloudflare_vends_by_its_own_api() -> None:
    credential = KEYS | {"token": "config:token", "account_id": "0123"}
    storage = S3Storage.model_validate(PLACE | {"store": "r2", "credential": credential})

    sent = storage.storage_credential(None)
    profile = storage.storage_profile(
        WarehouseAccess("lake", "acme/main", {"sts_enabled": True}), StorageAddress("auto", storage.endpoint)
    )

    assert sent == {"type": "cloudflare-r2", **credential}
    assert profile["sts_enabled"] is True


def test_server_gets_its_key_and_not_that_of_the_stack() -> None:
    admin = {"access_key_id": "config:admin_id", "secret_access_key": "config:admin_secret"}
    storage = S3Storage.model_validate(PLACE | {"create": True, "admin_credential": admin})

    assert storage.storage_credential(None) == {"type": "access-key", **KEYS}
    assert storage.stack_access["access_key_id"] == "config:admin_id"
    assert storage.server_access["server_access_key_id"] == "config:key_id"


def test_existing_bucket_is_not_the_stacks() -> None:
    storage = S3Storage.model_validate(PLACE)

    assert not storage.makes_bucket
    assert not S3Storage.is_made(PLACE)
    assert S3Storage.is_made(PLACE | {"create": True})


@pytest.mark.parametrize("product", STORES)
def test_products_are_accepted_with_what_they_have(product: str) -> None:
    storage = S3Storage.model_validate(PLACE | {"store": product, "sts": False})

    assert storage.storage_credential(None)["type"] == "access-key"
