"""`lakewright verify` names the probe that a tenant breaks, and leaves no permanent change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.client_access.check import ProbeFailedError
from lakewright.client_access.probe_table import CREATED, PREFIX
from lakewright.credentials.references import ClientToken
from lakewright.verify.probes.table_access import CANARY
from lakewright.verify.registry import WarehouseProbe
from lakewright.verify.session.sessions import WarehouseSession
from lakewright.verify.session.subjects import CredentialSource, JobsToken, ProbeIdentity

from tests.integration.tenant.conftest import aws_client
from tests.tenant_project import Tenant
from tests.verifying import Verify, group_failed_checks
from tests.wide_catalog import wide_catalog

pytestmark = [pytest.mark.xdist_group("verify"), pytest.mark.timeout(300)]

AT_S3 = ("other-tables", "other-prefixes", "bucket-root", "bucket-policy")


def probe_namespaces(acme: Tenant, http: httpx.Client) -> list[str]:
    """Return the probe namespaces in all warehouses of the tenant."""
    ids = [warehouse.id for warehouse in acme.catalog_config().warehouses]
    namespace_lists = [http.get(f"/catalog/v1/{id_}/namespaces").json()["namespaces"] for id_ in ids]
    return [levels[0] for names in namespace_lists for levels in names if levels[0].startswith(PREFIX)]


@pytest.fixture
def wide_role(acme: Tenant) -> Iterator[str]:
    """A role of the tenant to which a statement was added outside of the stack."""
    iam = aws_client(acme.sandbox, "iam")
    (name,) = (
        role["RoleName"]
        for role in iam.list_roles()["Roles"]
        if "acme" in role["RoleName"] and "exec" in role["RoleName"]
    )
    statement = {"Sid": "TooMuch", "Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_role_policy(RoleName=name, PolicyName="added", PolicyDocument=document)
    yield name
    iam.delete_role_policy(RoleName=name, PolicyName="added")


@pytest.mark.long
def test_over_wide_role_fails(verify: Verify, wide_role: str) -> None:
    failed_checks = group_failed_checks(verify("warehouse-roles", "other-prefixes"))

    assert set(failed_checks) == {"warehouse-roles"}, "the session policies of vended credentials limit the role"
    attempts = [check.attempt for check in failed_checks["warehouse-roles"]]
    assert f"reach objects beside the warehouse with role {wide_role}" in attempts
    assert f"change the bucket with role {wide_role}" in attempts
    assert "TooMuch" in failed_checks["warehouse-roles"][0].evidence


@pytest.fixture
def role_with_open_trust(acme: Tenant) -> Iterator[str]:
    """A role of the tenant whose trust policy accepts any external ID."""
    iam = aws_client(acme.sandbox, "iam")
    (role,) = (role for role in iam.list_roles()["Roles"] if "acme" in role["RoleName"] and "exec" in role["RoleName"])
    trust = role["AssumeRolePolicyDocument"]
    (statement,) = [part for part in trust["Statement"] if part["Action"] == "sts:AssumeRole"]
    opened = {**statement, "Condition": {"StringLike": {"sts:ExternalId": "?*"}}}
    document = {**trust, "Statement": [opened]}
    iam.update_assume_role_policy(RoleName=role["RoleName"], PolicyDocument=json.dumps(document))
    yield role["RoleName"]
    iam.update_assume_role_policy(RoleName=role["RoleName"], PolicyDocument=json.dumps(trust))


def test_trust_with_any_external_id_fails(verify: Verify, role_with_open_trust: str) -> None:
    (check,) = group_failed_checks(verify("warehouse-roles"))["warehouse-roles"]

    assert check.attempt == f"assume role {role_with_open_trust} as another principal, or without its external ID"
    assert "expected `StringEquals` with its literal value" in check.evidence


def test_over_wide_credentials_fail_at_s3(verify: Verify, acme: Tenant) -> None:
    s3 = aws_client(acme.sandbox, "s3")
    buckets = ("acme-lakehouse", "globex-lakehouse")
    policies = [s3.get_bucket_policy(Bucket=bucket)["Policy"] for bucket in buckets]

    admin = acme.sandbox.admin
    with wide_catalog(acme.sandbox, admin.access_key_id, admin.secret_access_key.get_secret_value()) as endpoint:
        config = acme.catalog_config().model_copy(update={"uri": f"{endpoint}/catalog"})
        failed_checks = group_failed_checks(verify(*AT_S3, config=config.select_warehouses(["executions"])))

    assert set(failed_checks) == set(AT_S3)
    assert len(failed_checks["other-tables"]) == 4
    assert [s3.get_bucket_policy(Bucket=bucket)["Policy"] for bucket in buckets] == policies
    keys = [entry["Key"] for bucket in buckets for entry in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
    assert [key for key in keys if CANARY in key] == []


def test_unit_with_the_stacks_identity_fails(verify: Verify, acme: Tenant, stack_http: httpx.Client) -> None:
    tokens = acme.sandbox.tokens
    assert tokens is not None
    source = ClientToken(tokens.token_url, tokens.client_id, f"file:{tokens.client_secret_file}")
    failed_checks = group_failed_checks(
        verify("identity", "management", "foreign-catalog", subjects=[ProbeIdentity("unit", (), source)])
    )

    assert set(failed_checks) == {"identity", "management", "foreign-catalog"}
    assert failed_checks["identity"][0].attempt == "be the stack's own identity"
    created = next(check for check in failed_checks["management"] if check.attempt.startswith("create a project"))
    assert created.evidence == "201; removed again"
    projects = stack_http.get("/management/v1/project-list").json()["projects"]
    assert not any(project["project-id"].startswith("lakewright-verify") for project in projects)


def test_unit_without_an_identity_fails(verify: Verify) -> None:
    failed_checks = group_failed_checks(verify("identity", subjects=[ProbeIdentity("unit", (), None)]))

    assert [check.evidence for check in failed_checks["identity"]] == ["requests are anonymous"]


def test_unavailable_credential_is_no_proof(verify: Verify, acme: Tenant) -> None:
    source = ClientToken("http://127.0.0.1:1/token", "x", "env:NO_SUCH_VARIABLE")
    report = verify("authorization", "table", subjects=[ProbeIdentity("unit", ("executions",), source)])

    assert [check.found for check in report.checks] == ["not proven", "not proven"]
    assert "NO_SUCH_VARIABLE" in report.checks[0].evidence


@pytest.mark.parametrize("failure", ["no token", "refused token"])
def test_request_without_an_accepted_token_is_no_proof(verify: Verify, tmp_path: Path, failure: str) -> None:
    """No identity provider responds, or the catalog does not accept the token."""
    secret = tmp_path / "secret"
    secret.write_text("not-a-token")
    source: CredentialSource = JobsToken(f"file:{secret}")
    if failure == "no token":
        source = ClientToken("http://127.0.0.1:1/token", "jobs-acme", f"file:{secret}")
    names = ("identity", "table", "other-prefixes", "foreign-catalog", "foreign-signing", "management")

    report = verify(*names, subjects=[ProbeIdentity("unit", ("executions",), source)])

    checks = [check for check in report.checks if check.attempt != "be the stack's own identity"]
    assert {check.probe for check in checks} == {*names}
    assert {check.found for check in checks} == {"not proven"}
    reason = "did not respond" if failure == "no token" else "responded with 401"
    assert [check.evidence for check in checks if reason not in check.evidence] == []


def test_refusal_of_anonymous_requests_is_a_denial(verify: Verify) -> None:
    report = verify("foreign-catalog", "management", subjects=[ProbeIdentity("unit", (), None)])

    assert report.holds
    assert "401 not authenticated" in {check.evidence for check in report.checks}


def test_table_of_an_anonymous_subject_is_denied(verify: Verify) -> None:
    report = verify("table", subjects=[ProbeIdentity("unit", ("executions",), None)])

    assert ("write a table", "denied") in {(check.attempt, check.found) for check in report.checks}


@pytest.fixture
def server_admin(stack_http: httpx.Client) -> Iterator[None]:
    """The unit's user as an administrator of the server, whom the server's configuration does not name."""
    path, grant = "/management/v1/permissions/server/assignments", {"type": "admin", "user": "oidc~jobs-acme"}
    stack_http.post(path, json={"writes": [grant], "deletes": []}).raise_for_status()
    yield
    stack_http.post(path, json={"writes": [], "deletes": [grant]}).raise_for_status()


@pytest.mark.usefixtures("server_admin")
def test_unit_with_rights_on_the_server_fails(verify: Verify) -> None:
    (check,) = group_failed_checks(verify("identity"))["identity"]

    assert (check.attempt, check.found) == ("be an administrator of the server", "allowed")
    assert "is-instance-admin false; server actions: create_project" in check.evidence


def test_unreachable_catalog_is_no_proof(verify: Verify, acme: Tenant) -> None:
    config = acme.catalog_config().model_copy(update={"uri": "http://127.0.0.1:1/catalog"})
    report = verify("table", "bucket-root", "foreign-signing", config=config.select_warehouses(["executions"]))

    assert not report.holds
    assert report.checks
    assert {check.found for check in report.checks} == {"not proven"}


def test_failed_probe_leaves_nothing_behind(verify: Verify, acme: Tenant, stack_http: httpx.Client) -> None:
    def fail(session: WarehouseSession) -> Any:
        session.ensure_table("first")
        session.ensure_table("second")
        raise ProbeFailedError("in the middle")

    report = verify(probes=[WarehouseProbe("failing", fail)])

    assert {check.evidence for check in report.checks} == {"in the middle"}
    assert not report.holds
    assert probe_namespaces(acme, stack_http) == []


def test_abandoned_namespace_is_dropped(verify: Verify, acme: Tenant, stack_http: httpx.Client) -> None:
    def abandon(session: WarehouseSession) -> Any:
        body = {"namespace": [f"{PREFIX}abandoned"], "properties": {CREATED: "1000000000"}}
        session.identity.catalog.require("POST", session.tables.root, body=body, project="acme")
        return []

    verify(probes=[WarehouseProbe("abandoning", abandon)])
    assert set(probe_namespaces(acme, stack_http)) == {f"{PREFIX}abandoned"}
    verify("bucket-root")

    assert probe_namespaces(acme, stack_http) == []


@pytest.mark.parametrize("version", [1, 2, 3])
def test_probe_table_is_readable_by_pyiceberg(verify: Verify, acme: Tenant, version: int) -> None:
    rows: list[Any] = []

    def read(session: WarehouseSession) -> Any:
        session.ensure_table("first")
        namespace = session.namespaces[0]
        session.tables.create_table(namespace, f"v{version}", version).append()
        table = acme.catalog(session.warehouse.name).load_table((namespace, f"v{version}"))
        rows.extend(table.scan().to_arrow()["n"].to_pylist())
        assert table.metadata.format_version == version
        return []

    report = verify(
        probes=[WarehouseProbe("reading", read)], config=acme.catalog_config().select_warehouses(["executions"])
    )

    assert report.checks == []
    assert rows == [42]
