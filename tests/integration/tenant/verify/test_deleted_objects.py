"""`lakewright drift` after a user deleted an object together with everything that depends on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import httpx
import pytest
from lakewright.cli.app import run
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.tenant.verify.conftest import deploy_tenant
from tests.tenant_project import PASSPHRASE, Tenant

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("deleted-objects"), pytest.mark.timeout(300)]

COLUMNS = [{"name": "id", "type": "long"}]
GRANTS = [
    {"to": "user:oidc~zoe", "privilege": "describe", "on": {"warehouse": "executions"}},
    {"to": "user:oidc~zoe", "privilege": "modify", "on": {"warehouse": "executions", "namespace": "drafts"}},
    {"to": "user:oidc~zoe", "privilege": "select", "on": {"warehouse": "executions", "table": "results.runs"}},
]
ROLE = "initrode-executions-reader"


@pytest.fixture(scope="module")
def initrode(project: Path, sandbox: Sandbox) -> Iterator[Tenant]:
    """A tenant with an object of each kind. Its stack is removed, as other modules probe all tenants of the project."""
    name = "initrode"
    tenant = deploy_tenant(
        project,
        sandbox,
        name,
        storage={"main": {"backend": "aws", "bucket": f"{name}-lakehouse", "encryption": {"kms": "own"}}},
        warehouses=[{"name": "executions", "namespaces": ["results", "drafts"], "deletion": "purge"}],
        tables=[
            {"name": "executions.results.runs", "columns": COLUMNS},
            {"name": "executions.drafts.notes", "columns": COLUMNS},
        ],
        grants=GRANTS,
        computing_units=[{"name": "unit", "runtime": "spark", "warehouse": "executions"}],
        role_members={"executions-reader": {"users": ["oidc~ann"]}},
    )
    yield tenant
    tenant.output("stack", "rm", "--force", "--yes", "--remove-spec")


@pytest.fixture
def find_deleted(
    initrode: Tenant, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[], set[tuple[str, str]]]:
    """Return a function that returns kind and name of all deleted objects, and checks all other objects."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", (initrode.folder / "state").as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    monkeypatch.chdir(initrode.folder)

    def find() -> set[tuple[str, str]]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run(["drift", "--stack", initrode.name, "--json"])
        document = json.loads(capsys.readouterr().out)
        [stack] = document["stacks"]
        assert (stack["problems"], ended.value.code) == ([], 7)
        return {
            (entry["type"].rpartition(":")[2], entry["resource"])
            for entry in stack["differences"]
            if entry["kind"] == "gone"
        }

    return find


@pytest.fixture
def ids(initrode: Tenant) -> dict[tuple[str, str], str]:
    """Ids of the tenant's resources by kind and name."""
    resources = json.loads(initrode.output("stack", "export"))["deployment"]["resources"]
    return {
        (part["type"].rpartition(":")[2], part["urn"].rpartition("::")[2]): part["id"]
        for part in resources
        if part.get("id")
    }


def delete_on_aws(sandbox: Sandbox, *, role: str, bucket: str, key: str) -> None:
    """Delete a role, a bucket with its objects, and a key with its alias."""
    session = boto3.Session(
        sandbox.admin.access_key_id, sandbox.admin.secret_access_key.get_secret_value(), region_name=sandbox.aws.region
    )
    iam, s3, kms = (session.client(service, endpoint_url=sandbox.aws.endpoint) for service in ("iam", "s3", "kms"))
    for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        iam.delete_role_policy(RoleName=role, PolicyName=policy)
    iam.delete_role(RoleName=role)
    versions = s3.list_object_versions(Bucket=bucket)
    for entry in versions.get("Versions", []) + versions.get("DeleteMarkers", []):
        s3.delete_object(Bucket=bucket, Key=entry["Key"], VersionId=entry["VersionId"])
    s3.delete_bucket(Bucket=bucket)
    for alias in kms.list_aliases(KeyId=key)["Aliases"]:
        kms.delete_alias(AliasName=alias["AliasName"])
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)


def delete(http: httpx.Client, path: str, **query: str) -> None:
    response = http.delete(path, params=query, headers={"x-project-id": "initrode"})
    assert response.is_success, response.text


def test_deleted_namespace_is_reported_with_its_dependents(
    initrode: Tenant,
    stack_http: httpx.Client,
    ids: dict[tuple[str, str], str],
    find_deleted: Callable[[], set[tuple[str, str]]],
) -> None:
    warehouse = ids["Warehouse", "initrode-executions"]
    delete(stack_http, f"/catalog/v1/{warehouse}/namespaces/drafts/tables/notes", purgeRequested="true")
    delete(stack_http, f"/catalog/v1/{warehouse}/namespaces/drafts")

    deleted_objects = find_deleted()

    assert ("Namespace", "initrode-executions-drafts") in deleted_objects
    assert {kind for kind, _ in deleted_objects} == {"Namespace", "Table", "Grant"}
    healed = initrode.run("drift", "--heal", "--yes")
    assert healed.returncode == 0, healed.stderr


def test_recreated_namespace_has_no_missing_rights(
    stack_http: httpx.Client, ids: dict[tuple[str, str], str], find_deleted: Callable[[], set[tuple[str, str]]]
) -> None:
    """The namespace exists under its name, with a new id."""
    warehouse = ids["Warehouse", "initrode-executions"]
    delete(stack_http, f"/catalog/v1/{warehouse}/namespaces/drafts/tables/notes", purgeRequested="true")
    delete(stack_http, f"/catalog/v1/{warehouse}/namespaces/drafts")
    response = stack_http.post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": ["drafts"]})
    assert response.is_success, response.text

    assert "Namespace" not in {kind for kind, _ in find_deleted()}


def test_every_deleted_kind_is_reported_without_a_problem(
    sandbox: Sandbox,
    stack_http: httpx.Client,
    ids: dict[tuple[str, str], str],
    find_deleted: Callable[[], set[tuple[str, str]]],
) -> None:
    """Delete from the smallest object to the project. Dependents are deleted with their object."""
    warehouse = ids["Warehouse", "initrode-executions"]
    users = [identity for (kind, _), identity in ids.items() if kind == "User"]
    management = "/management/v1"
    for user in users:
        delete(stack_http, f"{management}/user/{user}")
    assert {kind for kind, _ in find_deleted()} >= {"User"}
    delete(stack_http, f"{management}/role/{ids['Role', ROLE]}")
    assert {("Role", ROLE), ("RoleMembers", ROLE)} <= find_deleted()
    delete(stack_http, f"/catalog/v1/{warehouse}/namespaces/results/tables/runs", purgeRequested="true")
    assert ("Table", "initrode-executions.results.runs") in find_deleted()

    role = next(
        identity for (kind, _), identity in ids.items() if kind == "Role" and identity.startswith("lakewright.")
    )
    key = next(identity for (kind, _), identity in ids.items() if kind == "Key")
    delete_on_aws(sandbox, role=role, bucket="initrode-lakehouse", key=key)
    deleted_kinds = {kind for kind, _ in find_deleted()}
    assert deleted_kinds >= {"Key", "Alias", "Bucket", "BucketPolicy"}

    for namespace in ("results", "drafts"):
        delete(stack_http, f"/catalog/v1/{warehouse}/namespaces/{namespace}", recursive="true", force="true")
    delete(stack_http, f"{management}/warehouse/{warehouse}")
    assert {"Warehouse", "Namespace", "Grant"} <= {kind for kind, _ in find_deleted()}
    response = stack_http.get(f"{management}/role", params={"pageSize": 100}, headers={"x-project-id": "initrode"})
    for entry in response.json()["roles"]:
        delete(stack_http, f"{management}/role/{entry['id']}")
    delete(stack_http, f"{management}/project/initrode")
    assert ("Project", "initrode") in find_deleted()
