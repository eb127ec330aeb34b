"""Which secrets `lakewright verify` knows, and how it reads them."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.credentials.references import ClientToken
from lakewright.environment.environment import Environment
from lakewright.spec import TenantSpec
from lakewright.verify.session.subjects import ProbeIdentity, obtain_credential
from lakewright.verify.settings import list_subjects, make_settings


def test_secrets_of_spec_and_environment_are_searched() -> None:
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

    references = make_settings(spec, environment).references

    assert references == {"config:id", "config:secret", "config:admin_id", "config:admin_secret", "env:JOBS_acme"}


def test_credential_in_the_stacks_configuration_is_read() -> None:
    client = ClientToken("https://idp.example/token", "acme-jobs", "config:jobs")
    secrets = {"config:jobs": "hunter2"}

    _, resolve = obtain_credential(ProbeIdentity("unit", (), client), lambda: None, secrets.__getitem__)

    assert resolve("any") == "hunter2"


def tenant(**changes: Any) -> TenantSpec:
    storage = {"main": {"backend": "aws", "bucket": "acme"}}
    base = {"version": 1, "environment": "here", "name": "acme", "owner": "data@acme.example", "storage": storage}
    return TenantSpec.model_validate(base | {"warehouses": [{"name": "executions"}]} | changes)


def create_environment(**jobs: Any) -> Environment:
    return Environment.model_validate({"lakekeeper": {"endpoint": "https://lakekeeper.example", "jobs_auth": jobs}})


OAUTH = {"kind": "client-credentials", "token_url": "https://idp.example/token", "client_secret": "env:JOBS"}
UNIT = {"name": "unit", "runtime": "spark", "warehouses": "all"}
IDENTITY = {"client_id": "acme-jobs", "subject": "acme-jobs"}
CLEANER = {"client_id": "acme-maintenance", "subject": "acme-maintenance"}


def test_tenant_without_units_gets_the_remedy() -> None:
    (jobs,) = list_subjects(tenant(), create_environment(kind="token-file", path="/var/run/token"))

    assert jobs.problem == "the tenant has no computing unit, and no identity outside of the cluster"
    assert jobs.remedy.startswith("add a unit to `computing_units` of the spec")


def test_shared_client_gets_the_remedy() -> None:
    (unit,) = list_subjects(tenant(computing_units=[UNIT]), create_environment(**OAUTH, client_id="everyone"))

    assert unit.problem == "client `everyone` is shared by all tenants"
    assert "`identity.client_id`" in unit.remedy


@pytest.mark.parametrize(("maintenance", "is_shared"), [({}, True), ({"identity": CLEANER}, False)])
def test_maintenance_with_the_units_client_is_found(maintenance: dict[str, Any], *, is_shared: bool) -> None:
    spec = tenant(computing_units=[UNIT], identity=IDENTITY, maintenance={"schedule": "0 2 * * *"} | maintenance)

    (unit,) = list_subjects(spec, create_environment(**OAUTH, client_id="acme-jobs"))

    assert unit.is_shared_with_maintenance is is_shared


@pytest.mark.parametrize("maintenance", [{}, {"maintenance": {"schedule": "0 2 * * *", "identity": CLEANER}}])
def test_shared_client_of_a_tenant_without_units_is_found(maintenance: dict[str, Any]) -> None:
    environment = create_environment(**OAUTH, client_id="everyone")

    (shared,) = list_subjects(tenant(**maintenance), environment)
    (separate,) = list_subjects(tenant(identity=IDENTITY, **maintenance), environment)

    assert shared.problem == "client `everyone` is shared by all tenants"
    assert "`identity.client_id`" in shared.remedy
    assert (separate.problem, separate.remedy) == (None, "")


def test_shared_token_of_a_tenant_without_units_is_found() -> None:
    (jobs,) = list_subjects(tenant(), create_environment(kind="token", token="env:JOBS"))

    assert jobs.problem == "the token is shared by all tenants"
