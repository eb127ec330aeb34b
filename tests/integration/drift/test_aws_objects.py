"""Drift of AWS objects, from lists for all stacks: the same that `preview --refresh` finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import boto3
import pytest
from lakewright.drift.detection.run import find_drift
from lakewright.drift.detection.steps import DriftOptions
from lakewright.drift.model import Difference, DifferenceKind, UnmanagedSearch
from lakewright.fleet.selection import SelectedStack
from lakewright.lakekeeper.buckets.bucket_key import alias_of
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.object_reader import ObjectReader
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.steps.object_read import ObjectRead
from lakewright_sandbox.runtime.state import Sandbox

from ...tenant_project import PASSPHRASE, Tenant, create_project, new_name, tenant_spec


@pytest.fixture(scope="module")
def tenant(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Iterator[Tenant]:
    """A deployed tenant with a bucket, a key of its own, and a bucket for access logs."""
    name = new_name()
    folder = tmp_path_factory.mktemp("drift") / name
    create_project(folder, {"sandbox": str(sandbox.dir)})
    storage = {"backend": "aws", "bucket": f"{name}-lakehouse", "encryption": {"kms": "own"}}
    logs = {"bucket": f"{name}-logs", "owner": "stack"}
    tenant = Tenant(folder, sandbox, tenant_spec(name, storage | {"access_logs": logs}))
    tenant.write()
    tenant.output("stack", "init")
    tenant.up()
    yield tenant
    tenant.run("destroy", "--yes")


@pytest.fixture
def aws(sandbox: Sandbox) -> Callable[[str], Any]:
    """Return boto3 clients of the sandbox's administrator."""
    admin = sandbox.admin
    session = boto3.Session(admin.access_key_id, admin.secret_access_key.get_secret_value())
    return lambda service: session.client(service, region_name=sandbox.aws.region, endpoint_url=sandbox.aws.endpoint)


def scan(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, search: UnmanagedSearch = UnmanagedSearch.NONE
) -> list[Difference]:
    """Return the differences of the AWS objects of a tenant."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tenant.folder / "state").as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    project, stacks = PulumiProject.load(tenant.folder), [SelectedStack(tenant.name, tenant.spec)]
    report = find_drift(project, stacks, parallel=8, options=DriftOptions(search=search))
    assert [problem for stack in report.stacks for problem in stack.problems] == []
    return [difference for difference in report.differences() if difference.type.startswith("aws:")]


def refreshed(tenant: Tenant) -> dict[str, tuple[str, frozenset[str]]]:
    """Return what `preview --refresh` finds: result and property keys by URN of AWS objects."""
    steps = tenant.verb("preview", "--refresh")["steps"]
    return {
        step["urn"]: (step["result"], frozenset(step["keys"] if step["result"] == "update" else ()))
        for step in steps
        if step["op"] == "refresh" and step["result"] != "same" and step["type"].startswith("aws:")
    }


def found_by(differences: Sequence[Difference]) -> dict[str, tuple[str, frozenset[str]]]:
    """Return differences in the same form."""
    result: dict[str, tuple[str, frozenset[str]]] = {}
    for difference in differences:
        known = result.get(difference.urn, ("", frozenset[str]()))[1]
        key = difference.property.replace("[", ".").partition(".")[0]
        if difference.kind is DifferenceKind.GONE:
            result[difference.urn] = "delete", frozenset[str]()
        else:
            result[difference.urn] = "update", known | {key}
    return result


def test_deployed_tenant_is_the_same_without_provider(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists alone show that nothing differs: no provider is started."""
    read: list[str] = []

    def read_again(_reader: ObjectReader, resource: ResourceState, _provider: ResourceState) -> ObjectRead:
        read.append(resource.urn)
        return ObjectRead(resource, "same")

    monkeypatch.setattr(ObjectReader, "read", read_again)

    differences = scan(tenant, monkeypatch)

    assert (differences, read) == ([], [])


def test_finds_what_a_refresh_finds(tenant: Tenant, aws: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    s3, iam, kms = aws("s3"), aws("iam"), aws("kms")
    role = next(
        resource["id"]
        for resource in json.loads(tenant.output("stack", "export"))["deployment"]["resources"]
        if resource["type"] == "aws:iam/role:Role"
    )
    key = kms.describe_key(KeyId=alias_of(tenant.bucket))["KeyMetadata"]["KeyId"]
    s3.put_bucket_versioning(Bucket=tenant.bucket, VersioningConfiguration={"Status": "Suspended"})
    s3.delete_public_access_block(Bucket=tenant.bucket)
    s3.delete_bucket_lifecycle(Bucket=tenant.bucket)
    s3.put_bucket_tagging(Bucket=tenant.bucket, Tagging={"TagSet": [{"Key": "team", "Value": "other"}]})
    iam.update_role(RoleName=role, MaxSessionDuration=7200)
    iam.delete_role_policy(RoleName=role, PolicyName=iam.list_role_policies(RoleName=role)["PolicyNames"][0])
    kms.disable_key_rotation(KeyId=key)
    expected = refreshed(tenant)

    found = found_by(scan(tenant, monkeypatch))

    assert found == expected
    assert {result for result, _ in expected.values()} == {"update", "delete"}
    assert len(expected) == 7


def test_policies_that_others_give_a_role_are_unmanaged(
    tenant: Tenant, aws: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresh reads the policies that a stack has; a search finds the others."""
    iam, role = aws("iam"), f"lakewright.{tenant.name}.executions"
    statement = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    iam.put_role_policy(RoleName=role, PolicyName="stray", PolicyDocument=json.dumps(document))
    try:
        refreshed_only = scan(tenant, monkeypatch)
        found = scan(tenant, monkeypatch, UnmanagedSearch.OBJECTS)
    finally:
        iam.delete_role_policy(RoleName=role, PolicyName="stray")

    assert refreshed_only == []
    (unmanaged,) = found
    assert (unmanaged.kind, unmanaged.type) == (DifferenceKind.UNMANAGED, "aws:iam/rolePolicy:RolePolicy")
    assert (unmanaged.stack, unmanaged.found, unmanaged.resource) == (tenant.name, "stray", f"stray of role {role}")
