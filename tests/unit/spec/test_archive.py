"""`deletion: archive` and `purge_after` of warehouses: what a spec may say."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.spec import SpecError, TenantSpec, parse_spec

STORAGE = {"main": {"backend": "aws", "bucket": "acme-lake"}}
KEY = {"access_key_id": "env:KEY_ID", "secret_access_key": "env:KEY"}
ROLE = "arn:aws:iam::123456789012:role/acme-lake"
OTHER_STORES = {
    "minio": (
        {"backend": "s3", "bucket": "acme-lake", "endpoint": "https://minio.acme.example", "credential": KEY},
        "an access key",
    ),
    "minio, made by the stack": (
        {
            "backend": "s3",
            "bucket": "acme-lake",
            "endpoint": "https://minio.acme.example",
            "credential": KEY,
            "create": True,
            "admin_credential": KEY | {"access_key_id": "env:ADMIN_KEY_ID"},
        },
        "an access key",
    ),
    "existing": (
        {"backend": "existing", "bucket": "acme-lake", "region": "us-east-1", "role_arn": ROLE},
        "belongs to the tenant",
    ),
    "existing, without deletions": (
        {"backend": "existing", "bucket": "acme-lake", "region": "us-east-1", "role_arn": ROLE, "may_delete": False},
        "belongs to the tenant",
    ),
    "azure": (
        {"backend": "adls", "account": "acmelake", "bucket": "lake", "credential": {"account_key": "env:KEY"}},
        "does not own the identity",
    ),
    "google": (
        {"backend": "gcs", "bucket": "acme-lake", "credential": {"service_account_key": "env:KEY"}},
        "does not own the identity",
    ),
}


def parse(warehouse: dict[str, Any], **changes: Any) -> TenantSpec:
    """Return the spec of a tenant with a warehouse."""
    document = {"version": 1, "environment": "prod", "name": "acme", "owner": "ops", "storage": STORAGE}
    return parse_spec({**document, "warehouses": [{"name": "main", **warehouse}], **changes}, source="the test")


def test_archive_retains_the_objects_of_the_warehouse() -> None:
    spec = parse({"deletion": "archive", "purge_after": "12w"})

    assert (spec.warehouses[0].data_deletion, spec.warehouses[0].is_archived) == ("retain", True)


@pytest.mark.parametrize(
    ("warehouse", "changes", "expected"),
    [
        ({"deletion": "retain", "purge_after": "90d"}, {}, "purge_after: expected only with `deletion: archive`"),
        ({"deletion": "archive", "purge_after": "12h"}, {}, "purge_after: expected whole days or weeks"),
        ({"deletion": "archive", "purge_after": "0d"}, {}, "purge_after: expected whole days or weeks"),
        ({"deletion": "archive", "purge_after": "90"}, {}, "purge_after: expected whole days or weeks"),
        ({"deletion": "archive"}, {"project": {"shared": True}}, "deletion: expected `protect`, `retain` or `purge`"),
        (
            {"deletion": "archive", "shares": {"a": {"principal_arn": "arn:aws:iam::123456789012:role/a"}}},
            {},
            "shares: expected none with `deletion: archive`",
        ),
        (
            {"deletion": "archive", "purge_after": "90d", "protected": True},
            {},
            "purge_after: expected no purge of a warehouse with `protected: true`",
        ),
    ],
)
def test_contradiction_is_refused(warehouse: dict[str, Any], changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(SpecError) as refusal:
        parse(warehouse, **changes)

    assert f"warehouses.0.{expected}" in str(refusal.value)


@pytest.mark.parametrize("name", OTHER_STORES)
def test_archive_needs_an_identity_of_the_stack(name: str) -> None:
    """With another deletion, the same storage is accepted."""
    storage, reason = OTHER_STORES[name]
    parse({"deletion": "retain"}, storage={"main": storage})

    with pytest.raises(SpecError) as refusal:
        parse({"deletion": "archive"}, storage={"main": storage})

    (line,) = [line for line in str(refusal.value).splitlines() if "warehouses.0" in line]
    assert f"with `backend: {storage['backend']}`" in line
    assert reason in line
    assert "Use `retain`" in line


def test_table_of_an_archived_warehouse_is_not_purged() -> None:
    table = {"name": "main.a.b", "columns": [{"name": "n", "type": "long"}], "deletion": "purge"}

    with pytest.raises(SpecError, match="expected `retain`, since warehouse main has `deletion: archive`"):
        parse({"deletion": "archive", "namespaces": ["a"]}, tables=[table])


@pytest.mark.parametrize("deletion", ["protect", "retain"])
def test_kept_files_need_a_dropped_table(deletion: str) -> None:
    table = {"name": "main.a.b", "columns": [{"name": "n", "type": "long"}], "dropped_files": "keep"}

    with pytest.raises(SpecError, match=r"tables\.0\.dropped_files: expected only with `deletion: purge`"):
        parse({"deletion": deletion, "namespaces": ["a"]}, tables=[table])
    assert parse({"deletion": "purge", "namespaces": ["a"]}, tables=[table]).tables[0].dropped_files == "keep"
