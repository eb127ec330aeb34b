"""Identities of units and jobs: which principal, how to authenticate, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lakewright.environment.environment import Environment
from lakewright.environment.local_files import provide_client
from lakewright.environment.stack_config import read_stack_config
from lakewright.environment.unit_identity import (
    ClientPrincipal,
    ClientToken,
    NoPrincipal,
    ServiceAccountPrincipal,
    ServiceAccountToken,
    SharedPrincipal,
    find_identity,
    identity_problems,
    tenant_auth,
)
from lakewright.names.object_names import MAINTENANCE
from lakewright.spec import SpecError, TenantSpec
from lakewright_spark.catalog.auth import ClientCredentialsAuth

UID = "6b1f0c5e-8d0a-4b8e-9a57-3f2f7a1c2d3e"
PODS = {"kind": "token-file", "path": "/var/run/secrets/lakekeeper/token"}
CLIENT = {
    "kind": "client-credentials",
    "token_url": "https://idp.example/token",
    "client_id": "jobs",
    "client_secret": "env:JOBS_SECRET",
    "audience": "lakekeeper",
}
TOKEN = {"kind": "token", "token": "env:JOBS_TOKEN"}
OWN = {"client_id": "acme-jobs", "subject": "5f0c", "client_secret": "config:jobs"}
CU = {"name": "cu", "runtime": "texera", "warehouse": "executions"}


def environment(jobs_auth: dict[str, Any], **lakekeeper: Any) -> Environment:
    server = {"endpoint": "https://lakekeeper.example", "jobs_auth": jobs_auth, **lakekeeper}
    secret = {"name": "lakekeeper-jobs", "key": "secret"}
    cluster = {"jobs_secret": secret} if jobs_auth["kind"] == "client-credentials" else {}
    return Environment.model_validate({"lakekeeper": server, "kubernetes": cluster})


def tenant(**changes: Any) -> TenantSpec:
    spec: dict[str, Any] = {
        "version": 1,
        "environment": "here",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse", "region": "us-east-1"}},
        "warehouses": [{"name": "executions"}],
        "computing_units": [CU],
    }
    return TenantSpec.model_validate(spec | changes)


def problems(spec: TenantSpec, settings: Environment) -> dict[str, str]:
    return {problem.path: problem.expected for problem in identity_problems(spec, settings)}


def test_unit_is_its_service_account() -> None:
    identity = find_identity(tenant(), environment(PODS), "cu")

    assert identity.principal == ServiceAccountPrincipal("tenant-acme", "cu")
    assert identity.principal.user_id() is None
    assert identity.principal.user_id(UID) == f"kubernetes~{UID}"
    assert identity.token == ServiceAccountToken("tenant-acme", "cu", ("lakekeeper",))


def test_server_that_knows_accounts_by_name_needs_no_uid() -> None:
    identity = find_identity(tenant(), environment(PODS, kubernetes_subject="username"), "cu")

    assert identity.principal.user_id() == "kubernetes~system:serviceaccount:tenant-acme:cu"


def test_uid_of_the_spec_is_for_rendered_manifests() -> None:
    spec = tenant(computing_units=[CU | {"identity": {"service_account_uid": UID}}])

    assert find_identity(spec, environment(PODS), "cu").principal.user_id() == f"kubernetes~{UID}"


def test_maintenance_has_an_account_of_its_own() -> None:
    spec = tenant(maintenance={"schedule": "0 2 * * *"})

    assert find_identity(spec, environment(PODS), MAINTENANCE).principal == ServiceAccountPrincipal(
        "tenant-acme", "maintenance"
    )


def test_cluster_audience_is_no_audience() -> None:
    token = find_identity(tenant(), environment(PODS, jobs_token_audience=None), "cu").token

    assert token == ServiceAccountToken("tenant-acme", "cu", ())


def test_catalog_without_authentication_has_no_principals() -> None:
    identity = find_identity(tenant(), environment({"kind": "none"}), "cu")

    assert (identity.principal, identity.token) == (NoPrincipal(), None)


def test_client_of_the_tenant_replaces_the_shared_one() -> None:
    identity = find_identity(tenant(identity=OWN), environment(CLIENT), "cu")

    assert identity.principal == ClientPrincipal("acme-jobs", "5f0c")
    assert identity.principal.user_id() == "oidc~5f0c"
    assert isinstance(identity.auth, ClientCredentialsAuth)
    assert (identity.auth.client_id, identity.auth.client_secret) == ("acme-jobs", "env:JOBS_SECRET")
    assert identity.token == ClientToken("https://idp.example/token", "acme-jobs", "config:jobs", audience="lakekeeper")


def test_unit_overrides_client_and_secret_of_the_tenant() -> None:
    unit_identity = {
        "client_id": "acme-cu",
        "subject": "77",
        "secret": {"name": "cu-client", "key": "s"},
        "scope": "catalog",
    }
    spec = tenant(identity=OWN, computing_units=[CU | {"identity": unit_identity}])

    identity = find_identity(spec, environment(CLIENT), "cu")

    assert identity.principal.user_id() == "oidc~77"
    assert identity.pod.secret is not None
    assert identity.pod.secret.name == "cu-client"
    assert isinstance(identity.auth, ClientCredentialsAuth)
    assert (identity.auth.scope, identity.auth.audience) == ("catalog", "lakekeeper")
    jobs = tenant_auth(spec, environment(CLIENT))
    assert isinstance(jobs, ClientCredentialsAuth)
    assert jobs.client_id == "acme-jobs"


def test_environment_makes_a_client_per_tenant() -> None:
    client = CLIENT | {"client_id": "jobs-{tenant}", "client_secret": "file:/run/clients/{tenant}"}
    settings = environment(client, jobs_subject="{client_id}@clients")

    identity = find_identity(tenant(), settings, "cu")

    assert identity.principal.user_id() == "oidc~jobs-acme@clients"
    assert isinstance(identity.auth, ClientCredentialsAuth)
    assert identity.auth.client_secret == "file:/run/clients/acme"
    assert problems(tenant(), settings) == {}


def test_subject_of_a_named_client_follows_from_environment() -> None:
    maintenance = {"schedule": "0 2 * * *", "identity": {"client_id": "acme-maintenance"}}
    spec = tenant(identity=OWN, maintenance=maintenance)
    by_client = environment(CLIENT, jobs_subject="{client_id}@clients")

    assert problems(spec, by_client) == {}
    assert find_identity(spec, by_client, "maintenance").principal.user_id() == "oidc~acme-maintenance@clients"

    by_tenant = environment(CLIENT, jobs_subject="jobs-{tenant}")
    assert list(problems(spec, by_tenant)) == ["maintenance.identity.subject"], "two clients would be one user"


def test_shared_client_is_refused_with_the_remedy() -> None:
    mistakes = problems(tenant(), environment(CLIENT))

    assert list(mistakes) == ["identity"]
    for part in ("`jobs`", "`client_id` and `subject`", "`{tenant}`", "`lakekeeper.trial: true`"):
        assert part in mistakes["identity"]


def test_shared_client_is_allowed_in_trials() -> None:
    trial = environment(CLIENT, trial=True)

    assert problems(tenant(), trial) == {}
    identity = find_identity(tenant(), trial, "cu")
    assert (identity.principal, identity.token) == (SharedPrincipal("jobs"), None)


@pytest.mark.parametrize(
    ("jobs_auth", "changes", "paths"),
    [
        (PODS, {"identity": OWN}, ["identity"]),
        (PODS, {"identity": {"service_account_uid": UID}}, ["identity.service_account_uid"]),
        (
            CLIENT,
            {"identity": OWN, "computing_units": [CU | {"identity": {"service_account_uid": UID}}]},
            ["computing_units.0.identity.service_account_uid", "computing_units.0.identity"],
        ),
        (CLIENT | {"client_id": "jobs-{tenant}"}, {}, ["identity.subject"]),
        (CLIENT, {"identity": {"client_id": "acme-jobs"}}, ["identity.subject"]),
        (TOKEN, {"identity": {"client_id": "acme-jobs"}}, ["identity.subject"]),
        (PODS, {"role_members": {"executions-raeder": {"users": ["oidc~ann"]}}}, ["role_members.executions-raeder"]),
        (PODS, {"role_members": {"executions-reader": {"group": "x"}}}, ["role_members.executions-reader.group"]),
    ],
)
def test_contradictions_are_refused_with_their_path(
    jobs_auth: dict[str, Any], changes: dict[str, Any], paths: list[str]
) -> None:
    assert list(problems(tenant(**changes), environment(jobs_auth))) == paths


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        ({}, "expected `client_id` of an OAuth2 client"),
        ({"service_account_uid": UID, "scope": "x"}, "not both"),
        ({"service_account_uid": "cu"}, "String should match pattern"),
        ({"client_id": "a", "subject": "b", "client_secret": "hunter2"}, "must be a reference to a secret"),
        ({"client_id": "a", "subject": "b" * 128}, "at most 127 characters"),
    ],
)
def test_malformed_identity_is_refused(identity: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        tenant(identity=identity)
    assert "hunter2" not in str(refused.value).split("input_value")[0]


def test_spec_may_name_allowed_secrets_of_clients_only(tmp_path: Path) -> None:
    (tmp_path / "here.yaml").write_text(
        "lakekeeper:\n  endpoint: https://lakekeeper.example\n"
        "  principal_arn: arn:aws:iam::123456789012:role/lakekeeper\n"
        "  jobs_auth: {kind: client-credentials, token_url: 'https://idp.example/t', client_id: 'jobs-{tenant}',"
        " client_secret: 'vault:jobs/{tenant}#secret'}\n  jobs_subject: '{client_id}'\n"
        "kubernetes: {trial: true}\ntenant_specs: {references: ['vault:']}\n"
    )
    forbidden_secret = {"client_secret": "env:DEPLOYER"}
    secret_of_tenant = {"client_secret": "vault:jobs/acme#secret"}
    document = tenant().model_dump(mode="json", exclude_unset=True)
    document |= {"identity": forbidden_secret, "computing_units": [CU | {"identity": secret_of_tenant}]}

    with pytest.raises(SpecError) as refused:
        read_stack_config(document, source="s", environments=tmp_path, environ={}, region="us-east-1")

    assert [problem.path for problem in refused.value.problems] == [
        "identity.client_secret",
        "computing_units.0.identity.client_secret",
    ]
    assert "itself uses" in refused.value.problems[1].expected


def test_sandbox_gets_a_client_for_each_tenant(tmp_path: Path) -> None:
    clients = tmp_path / "clients"
    clients.mkdir()
    client = CLIENT | {
        "token_url": "http://127.0.0.1:1/token",
        "client_id": "jobs-{tenant}",
        "client_secret": f"file:{clients}/jobs-{{tenant}}",
    }
    settings = environment(client).model_copy(update={"sandbox": tmp_path})

    provide_client(settings, "acme")
    first = (clients / "jobs-acme").read_text()
    provide_client(settings, "acme")

    assert len(first) == 64
    assert (clients / "jobs-acme").read_text() == first
    assert (clients / "jobs-acme").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in clients.iterdir()] == ["jobs-acme"]
