"""Drift of AWS objects, from lists for all stacks: equal to the drift of `preview --refresh`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import boto3
import httpx
import pytest
import yaml
from lakewright.drift.detection.run import find_drift
from lakewright.drift.detection.steps import DriftOptions
from lakewright.drift.model import Difference, DifferenceKind, DriftReport, UnmanagedSearch
from lakewright.fleet.selection import SelectedStack
from lakewright.lakekeeper.buckets.bucket_key import name_alias
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.object_reader import ObjectReader
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.steps.object_read import ObjectRead
from lakewright_sandbox.runtime.state import Sandbox
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.tenant_project import PASSPHRASE, Tenant, create_project, new_name, tenant_spec

pytestmark = pytest.mark.xdist_group("drift-of-aws")


@pytest.fixture(scope="module")
def tenant(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Iterator[Tenant]:
    """A deployed tenant with a bucket, its own key, and a bucket for access logs."""
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


@pytest.fixture
def report(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> Callable[[], DriftReport]:
    """Return a function that finds the drift of the tenant."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tenant.folder / "state").as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    monkeypatch.chdir(tenant.folder)

    def run(options: DriftOptions | None = None) -> DriftReport:
        stacks = [SelectedStack(tenant.name, tenant.spec)]
        return find_drift(PulumiProject.load(tenant.folder), stacks, parallel=8, options=options)

    return run


def list_aws_differences(report: DriftReport) -> list[Difference]:
    assert [problem for stack in report.stacks for problem in stack.problems] == []
    return [difference for difference in report.differences() if difference.type.startswith("aws:")]


@retry(retry=retry_if_result(lambda is_later: not is_later), wait=wait_fixed(0.05), stop=stop_after_delay(5))
def wait_for_later_second(than: datetime) -> bool:
    """Wait: records of AWS have whole seconds, and records of the update's second prove nothing."""
    return datetime.now(UTC).replace(microsecond=0) > than


def run_refresh_preview(tenant: Tenant) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the drift of `preview --refresh`: result and property keys by URN of AWS objects."""
    steps = tenant.verb("preview", "--refresh")["steps"]
    return {
        step["urn"]: (step["result"], frozenset(step["keys"] if step["result"] == "update" else ()))
        for step in steps
        if step["op"] == "refresh" and step["result"] != "same" and step["type"].startswith("aws:")
    }


def summarize_differences(differences: Sequence[Difference]) -> dict[str, tuple[str, frozenset[str]]]:
    """Return differences in the same form."""
    result: dict[str, tuple[str, frozenset[str]]] = {}
    for difference in differences:
        known_keys = result.get(difference.urn, ("", frozenset[str]()))[1]
        key = difference.property.replace("[", ".").partition(".")[0]
        if difference.kind is DifferenceKind.GONE:
            result[difference.urn] = "delete", frozenset[str]()
        else:
            result[difference.urn] = "update", known_keys | {key}
    return result


@pytest.mark.usefixtures("tenant")
def test_deployed_tenant_has_no_drift_without_a_provider(
    report: Callable[[], DriftReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lists alone show that no object differs: no provider is started."""
    read: list[str] = []

    def read_again(_reader: ObjectReader, resource: ResourceState, _provider: ResourceState) -> ObjectRead:
        read.append(resource.urn)
        return ObjectRead(resource, "same")

    monkeypatch.setattr(ObjectReader, "read", read_again)

    differences = list_aws_differences(report())

    assert (differences, read) == ([], [])


def test_policies_that_others_give_a_role_are_unmanaged(
    tenant: Tenant, aws: Callable[[str], Any], report: Callable[..., DriftReport]
) -> None:
    """A refresh reads the policies that a stack has; a search finds all other policies."""
    iam, role = aws("iam"), f"lakewright.{tenant.name}.executions"
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::another/*"}
    rights = {"Version": "2012-10-17", "Statement": [statement]}
    iam.put_role_policy(RoleName=role, PolicyName="stray", PolicyDocument=json.dumps(rights))
    try:
        refreshed_only = list_aws_differences(report())
        differences = list_aws_differences(report(DriftOptions(search=UnmanagedSearch.OBJECTS)))
    finally:
        iam.delete_role_policy(RoleName=role, PolicyName="stray")

    assert refreshed_only == []
    (unmanaged,) = differences
    assert (unmanaged.kind, unmanaged.type) == (DifferenceKind.UNMANAGED, "aws:iam/rolePolicy:RolePolicy")
    assert (unmanaged.stack, unmanaged.found, unmanaged.resource) == (tenant.name, "stray", f"stray of role {role}")


def test_drift_equals_the_drift_of_a_refresh(
    tenant: Tenant, aws: Callable[[str], Any], report: Callable[[], DriftReport]
) -> None:
    """All changes are by the sandbox's administrator, whom its records name."""
    wait_for_later_second(datetime.now(UTC))
    s3, iam, kms = aws("s3"), aws("iam"), aws("kms")
    role = next(
        resource["id"]
        for resource in json.loads(tenant.output("stack", "export"))["deployment"]["resources"]
        if resource["type"] == "aws:iam/role:Role"
    )
    key = kms.describe_key(KeyId=name_alias(tenant.bucket))["KeyMetadata"]["KeyId"]
    s3.put_bucket_versioning(Bucket=tenant.bucket, VersioningConfiguration={"Status": "Suspended"})
    s3.delete_public_access_block(Bucket=tenant.bucket)
    s3.delete_bucket_lifecycle(Bucket=tenant.bucket)
    s3.put_bucket_tagging(Bucket=tenant.bucket, Tagging={"TagSet": [{"Key": "team", "Value": "other"}]})
    iam.update_role(RoleName=role, MaxSessionDuration=7200)
    iam.delete_role_policy(RoleName=role, PolicyName=iam.list_role_policies(RoleName=role)["PolicyNames"][0])
    kms.disable_key_rotation(KeyId=key)
    expected = run_refresh_preview(tenant)

    differences = list_aws_differences(report())

    assert summarize_differences(differences) == expected
    assert {(difference.actor.name, difference.actor.source) for difference in differences if difference.actor} == {
        (f"arn:aws:iam::{tenant.sandbox.aws.account_id}:user/admin", "cloudtrail")
    }
    assert [difference.property for difference in differences if difference.actor is None] == []
    assert {result for result, _ in expected.values()} == {"update", "delete"}
    assert len(expected) == 7


def test_log_files_of_a_trail_name_who_made_changes(
    tenant: Tenant, aws: Callable[[str], Any], report: Callable[[], DriftReport]
) -> None:
    """The files of a trail have the events of the history, gzipped by region and day."""
    wait_for_later_second(datetime.now(UTC))
    aws("s3").put_bucket_tagging(Bucket=tenant.bucket, Tagging={"TagSet": [{"Key": "team", "Value": "another"}]})
    trail = f"{tenant.name}-trail"
    events = (tenant.sandbox.dir / "logs" / "cloudtrail.jsonl").read_text().splitlines()
    records = gzip.compress(json.dumps({"Records": [json.loads(event) for event in events]}).encode())
    s3 = aws("s3")
    s3.create_bucket(Bucket=trail)
    day = datetime.now(UTC).strftime("%Y/%m/%d")
    key = f"audit/AWSLogs/{tenant.sandbox.aws.account_id}/CloudTrail/us-east-1/{day}/x_{uuid4().hex}.json.gz"
    s3.put_object(Bucket=trail, Key=key, Body=records)
    environment = tenant.folder / "environments" / "sandbox.yaml"
    before = environment.read_text()
    audit = [{"cloudtrail": {"bucket": trail, "prefix": "audit"}}]
    environment.write_text(yaml.safe_dump({"sandbox": str(tenant.sandbox.dir), "drift": {"audit": audit}}))

    differences = list_aws_differences(report())

    environment.write_text(before)
    s3.delete_object(Bucket=trail, Key=key)
    s3.delete_bucket(Bucket=trail)
    assert differences
    assert {difference.actor.name if difference.actor else "" for difference in differences} == {
        f"arn:aws:iam::{tenant.sandbox.aws.account_id}:user/admin"
    }


def test_lakekeeper_log_names_who_made_changes(tenant: Tenant, report: Callable[[], DriftReport]) -> None:
    """The sandbox writes the audit events of Lakekeeper; without tokens, all users are anonymous."""
    warehouse = next(
        resource["id"]
        for resource in json.loads(tenant.output("stack", "export"))["deployment"]["resources"]
        if resource["type"].endswith(":Warehouse") and resource["custom"]
    )
    url = f"{tenant.sandbox.lakekeeper.endpoint}/management/v1/warehouse/{warehouse}/protection"
    protected = httpx.get(f"{url.rpartition('/')[0]}", headers={"x-project-id": tenant.name}).json()["protected"]
    httpx.post(url, json={"protected": not protected}).raise_for_status()

    difference = next(difference for difference in report().differences() if difference.property == "protected")

    assert difference.actor is not None
    assert (difference.actor.name, difference.actor.source) == ("anonymous", "lakekeeper audit log")
    httpx.post(url, json={"protected": protected}).raise_for_status()


def test_unreachable_account_is_reported_alone(tenant: Tenant, report: Callable[[], DriftReport]) -> None:
    """Objects of Lakekeeper are still compared, and each object of AWS is reported as not checked."""
    state = next((tenant.folder / "state" / ".pulumi" / "stacks").rglob(f"{tenant.name}.json"))
    text = state.read_text()
    state.write_text(text.replace(tenant.sandbox.aws.endpoint, "http://127.0.0.1:9"))

    drift_report = report()

    state.write_text(text)
    unreachable = {item.type.partition(":")[0] for item in drift_report.differences() if item.kind == "unreachable"}
    assert (drift_report.exit_code, "aws" in unreachable) == (1, True)
    assert not [
        item for item in drift_report.differences() if item.type.startswith("aws:") and item.kind != "unreachable"
    ]
    assert 0 < len(drift_report.stacks[0].problems) <= 4
