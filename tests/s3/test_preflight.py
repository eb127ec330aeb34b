"""Mistakes in the storage of a spec: one clear error each, before the stack makes anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.s3.conftest import MakeStoreTenant, StoreTenant, TlsStore


def refusal(tenant: StoreTenant) -> str:
    """Return the only error line of an `up` that makes nothing."""
    result = tenant.run("up", "--yes", "--engine", "embedded")
    assert result.returncode != 0
    text = result.stdout + result.stderr
    assert "Traceback" not in text
    assert tenant.list_resource_kinds() <= {"Stack", "pulumi-python", "Tenant", "Bootstrap"}
    errors = [line for line in text.splitlines() if "storage.main" in line]
    assert len(set(errors)) == 1, text
    return errors[0]


def test_bucket_that_does_not_exist(make_tenant: MakeStoreTenant) -> None:
    tenant = make_tenant({"create": False})

    message = refusal(tenant)

    assert f"storage.main.bucket: expected the bucket `{tenant.bucket}`" in message
    assert "create: true" in message


def test_access_key_that_the_store_does_not_know(make_tenant: MakeStoreTenant, tmp_path: Path) -> None:
    tenant = make_tenant()
    tenant.environ["WRONG_KEY"] = "nobody-knows-this-key"
    tenant.storage["credential"] = tenant.storage["credential"] | {"access_key_id": "env:WRONG_KEY"}
    tenant.write()

    message = refusal(tenant)

    assert "storage.main.credential" in message
    assert "env:WRONG_KEY" in message
    assert "nobody-knows" not in message


def test_key_of_lakekeeper_beside_that_of_the_stack(make_tenant: MakeStoreTenant) -> None:
    tenant = make_tenant()
    tenant.environ["WRONG_KEY"] = "nobody-knows-this-key"
    tenant.storage["admin_credential"] = tenant.storage["credential"]
    tenant.storage["credential"] = tenant.storage["credential"] | {"access_key_id": "env:WRONG_KEY"}
    tenant.write()

    message = refusal(tenant)

    assert "storage.main.credential: " in message
    assert "does not know the access key in `env:WRONG_KEY`" in message


def test_secret_key_that_is_wrong(make_tenant: MakeStoreTenant) -> None:
    tenant = make_tenant()
    tenant.environ["WRONG_SECRET"] = "not-the-secret"
    tenant.storage["credential"] = tenant.storage["credential"] | {"secret_access_key": "env:WRONG_SECRET"}
    tenant.write()

    message = refusal(tenant)

    assert "does not accept the secret key in `env:WRONG_SECRET` (SignatureDoesNotMatch)" in message
    assert "not-the-secret" not in message


def test_endpoint_that_does_not_answer(make_tenant: MakeStoreTenant) -> None:
    tenant = make_tenant({"endpoint": "http://127.0.0.1:9"})

    message = refusal(tenant)

    assert "storage.main.endpoint: expected a store at http://127.0.0.1:9; it does not respond" in message


def test_endpoint_of_another_service(make_tenant: MakeStoreTenant, sandbox: Any) -> None:
    tenant = make_tenant({"endpoint": sandbox.lakekeeper.endpoint})

    assert "storage.main" in refusal(tenant)


@pytest.mark.parametrize("certificates", ["none", "those of another authority"])
def test_certificate_that_is_not_trusted(
    make_tenant: MakeStoreTenant, tls_store: TlsStore, other_authority: str, certificates: str
) -> None:
    changes: dict[str, Any] = {"endpoint": tls_store.endpoint}
    if certificates != "none":
        changes["ca_certificates"] = other_authority
    tenant = make_tenant(changes)

    message = refusal(tenant)

    assert f"storage.main.endpoint: the certificate of {tls_store.endpoint} is not trusted" in message
    assert "`storage.main.ca_certificates`" in message


def test_policy_that_the_preview_refuses_too(make_tenant: MakeStoreTenant) -> None:
    tenant = make_tenant({"create": False})

    assert "storage.main.bucket" in tenant.error("preview", "--engine", "embedded")
