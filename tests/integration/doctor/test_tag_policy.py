"""`doctor` compares tags with the tag policy of the organization, as far as the identity of the stack may read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from lakewright.doctor import check_tag_policy
from lakewright.environment.environment import AwsAccount
from lakewright_sandbox.runtime.state import Sandbox

from tests.tag_policies import attach_tag_policy

TAGS = {"Stage": "test", "team": "data"}


def open_client(sandbox: Sandbox, service: str) -> Any:
    return boto3.client(
        service,  # type: ignore[call-overload]
        endpoint_url=sandbox.aws.endpoint,
        region_name=sandbox.aws.region,
        aws_access_key_id=sandbox.admin.access_key_id,
        aws_secret_access_key=sandbox.admin.secret_access_key.get_secret_value(),
    )


def describe_account(sandbox: Sandbox, folder: Path, key_id: str, secret: str) -> AwsAccount:
    file = folder / "credentials"
    file.write_text(f"[stack]\naws_access_key_id = {key_id}\naws_secret_access_key = {secret}\n")
    return AwsAccount(
        region=sandbox.aws.region, endpoint=sandbox.aws.endpoint, profile="stack", shared_credentials_file=file
    )


def test_each_refused_tag_is_one_finding(sandbox: Sandbox, tmp_path: Path) -> None:
    admin = sandbox.admin
    account = describe_account(sandbox, tmp_path, admin.access_key_id, admin.secret_access_key.get_secret_value())
    organizations = open_client(sandbox, "organizations")

    with (
        attach_tag_policy(organizations, "stage", resources=["s3:ALL_SUPPORTED"]),
        attach_tag_policy(organizations, "team", ["a*", "b"], resources=["kms:*", "s3:bucket"]),
    ):
        findings = check_tag_policy(account, TAGS, ("s3:bucket", "kms:key"))
        key_findings = check_tag_policy(account, {"Stage": "test", "team": "abc"}, ("kms:key",))
        nothing = check_tag_policy(account, TAGS, ())

    assert [(finding.state, finding.result) for finding in findings] == [
        ("missing", "expected the key `stage` of a tag of s3:bucket, found `Stage`"),
        ("missing", "expected `a*` or `b` in the tag `team` of s3:bucket and kms:key, found `data`"),
    ]
    assert [finding.state for finding in key_findings] == ["ok"]
    assert nothing == []
    assert check_tag_policy(account, TAGS, ("s3:bucket",)) == []


def test_unreadable_policy_is_not_compared(sandbox: Sandbox, tmp_path: Path) -> None:
    iam, name = open_client(sandbox, "iam"), f"stack-{uuid4().hex}"
    iam.create_user(UserName=name)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    account = describe_account(sandbox, tmp_path, key["AccessKeyId"], key["SecretAccessKey"])

    (finding,) = check_tag_policy(account, TAGS, ("s3:bucket",))

    assert (finding.state, finding.result) == (
        "optional",
        "not compared: AccessDeniedException for organizations:DescribeEffectivePolicy",
    )
