"""Wrong credentials are refused by the stores, and commands name what they cannot try on Azure and Google."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from lakewright_sandbox.object_stores.azure_signatures import make_sas

from tests.stores.conftest import CONTAINER, AzureStore, GoogleStore, MakeCloudTenant


def test_emulator_accepts_a_container_sas(azure: AzureStore) -> None:
    """Azurite checks the signature itself, so the text that is signed is Azure's."""
    expires = datetime.now(UTC) + timedelta(minutes=5)
    sas = make_sas(azure.account, CONTAINER, "", permissions="rl", expires=expires)
    url = f"{azure.emulator}/{azure.account.name}/{CONTAINER}?restype=container&comp=list"

    assert httpx.get(f"{url}&{sas}").status_code == 200
    assert httpx.get(f"{url}&{sas.replace('sp=rl', 'sp=rwl')}").status_code == 403


@pytest.mark.parametrize(
    ("backend", "variable", "message"),
    [
        ("adls", "TEST_ACCOUNT_KEY", "PermissionDenied"),
        ("gcs", "TEST_SERVICE_ACCOUNT_KEY", "InitializeClientError"),
    ],
)
def test_wrong_key_stops_up(
    backend: str, variable: str, message: str, make_tenant: MakeCloudTenant, google: GoogleStore
) -> None:
    tenant = make_tenant(backend)
    wrong_key = {
        "adls": base64.b64encode(b"another key of this account").decode(),
        "gcs": json.dumps(google.key | {"client_email": "other@acme.iam.gserviceaccount.com"}),
    }
    tenant.environ = tenant.environ | {variable: wrong_key[backend]}

    refused = tenant.error("up", "--yes", "--engine", "embedded")

    assert message in refused
    assert wrong_key[backend] not in refused


def test_commands_name_what_they_cannot_try(make_tenant: MakeCloudTenant) -> None:
    tenant = make_tenant("gcs")
    tenant.up()

    assert "backend `gcs` is reached by Lakekeeper only" in tenant.run("doctor").stdout
    assert "warehouse executions is on gcs; `verify` tries storage on S3 only" in tenant.run("verify").stdout
    refused = tenant.run("config", "--format", "trino")
    assert "is on Google Cloud Storage" in refused.stdout + refused.stderr
