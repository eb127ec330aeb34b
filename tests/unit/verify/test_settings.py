"""Which secrets `lakewright verify` knows, and how it reads them."""

from __future__ import annotations

from typing import Any

from lakewright.credentials.client_token import ClientToken
from lakewright.environment.environment import Environment
from lakewright.spec import TenantSpec
from lakewright.verify.session.subjects import ProbeIdentity, credential_of
from lakewright.verify.settings import settings_of


def test_secrets_of_spec_and_environment_are_searched_for() -> None:
    """A bucket that the stack makes has another key for the stack."""
    storage: dict[str, Any] = {
        "backend": "s3",
        "bucket": "acme",
        "endpoint": "https://store.example",
        "create": True,
        "credential": {"access_key_id": "config:id", "secret_access_key": "config:secret"},
        "admin_credential": {"access_key_id": "config:admin_id", "secret_access_key": "config:admin_secret"},
    }
    spec = TenantSpec.model_validate(
        {
            "version": 1,
            "environment": "here",
            "name": "acme",
            "owner": "data@acme.example",
            "storage": {"main": storage},
            "warehouses": [{"name": "executions"}],
        }
    )
    jobs = {
        "kind": "client-credentials",
        "token_url": "https://idp.example/token",
        "client_id": "jobs-{tenant}",
        "client_secret": "env:JOBS_{tenant}",
    }
    lakekeeper = {"endpoint": "https://lakekeeper.example", "jobs_auth": jobs}
    cluster = {"jobs_secret": {"name": "jobs", "key": "secret"}}
    environment = Environment.model_validate({"lakekeeper": lakekeeper, "kubernetes": cluster})

    found = settings_of(spec, environment).references

    assert found == {"config:id", "config:secret", "config:admin_id", "config:admin_secret", "env:JOBS_acme"}


def test_credential_in_the_stacks_configuration_is_read() -> None:
    client = ClientToken("https://idp.example/token", "acme-jobs", "config:jobs")
    secrets = {"config:jobs": "hunter2"}

    _, resolve = credential_of(ProbeIdentity("unit", (), client), lambda: None, secrets.__getitem__)

    assert resolve("any") == "hunter2"
