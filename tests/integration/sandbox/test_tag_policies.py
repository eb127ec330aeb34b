"""Tag policies of AWS Organizations, as AWS documents their enforcement for buckets and KMS keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.sandbox.conftest import CATALOG_ARN, Aws, allow, expect_refusal, trusts
from tests.tag_policies import attach_tag_policy

REFUSED = "The tag policy does not allow the specified value for the following tag key: '{}'."


def tag_bucket(aws: Aws, bucket: str, **tags: str) -> None:
    tag_set = [{"Key": key, "Value": value} for key, value in tags.items()]
    aws.client("s3").put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tag_set})


def test_value_outside_the_policy_is_refused(aws: Aws) -> None:
    bucket = aws.bucket()
    with attach_tag_policy(aws.client("organizations"), "CostCenter", ["100", "300*"]):
        with expect_refusal("TagPolicyException", REFUSED.format("CostCenter")):
            tag_bucket(aws, bucket, CostCenter="200", Team="a")
        with pytest.raises(aws.client("s3").exceptions.ClientError, match="NoSuchTagSet"):
            aws.client("s3").get_bucket_tagging(Bucket=bucket)
        tag_bucket(aws, bucket, CostCenter="300-b")
    tag_bucket(aws, bucket, CostCenter="200")


def test_capitalization_of_the_key_is_enforced(aws: Aws) -> None:
    bucket = aws.bucket()
    with attach_tag_policy(aws.client("organizations"), "CostCenter"):
        with expect_refusal("TagPolicyException", REFUSED.format("costcenter")):
            tag_bucket(aws, bucket, costcenter="1")
        tag_bucket(aws, bucket, CostCenter="1")


def test_request_without_the_tag_is_not_refused(aws: Aws) -> None:
    with attach_tag_policy(aws.client("organizations"), "CostCenter", ["100"]):
        tag_bucket(aws, aws.bucket(), Team="a")


def test_policy_that_is_not_enforced_refuses_nothing(aws: Aws) -> None:
    with attach_tag_policy(aws.client("organizations"), "CostCenter", ["100"], resources=["ec2:instance"]):
        tag_bucket(aws, aws.bucket(), CostCenter="200")


@pytest.mark.parametrize("resource", ["kms:key", "kms:*", "kms:ALL_SUPPORTED"])
def test_key_is_not_made_with_a_refused_tag(aws: Aws, resource: str) -> None:
    kms = aws.client("kms")
    key = kms.create_key(Tags=[])["KeyMetadata"]["KeyId"]
    refused: Any = [{"TagKey": "CostCenter", "TagValue": "200"}]
    number_of_keys = len(kms.list_keys()["Keys"])
    with attach_tag_policy(aws.client("organizations"), "CostCenter", ["100"], resources=[resource]):
        with expect_refusal("TagException", REFUSED.format("CostCenter")):
            kms.create_key(Tags=refused)
        with expect_refusal("TagException", REFUSED.format("CostCenter")):
            kms.tag_resource(KeyId=key, Tags=refused)
    assert len(kms.list_keys()["Keys"]) == number_of_keys
    assert not kms.list_resource_tags(KeyId=key)["Tags"]


def test_roles_are_not_subject_to_tag_policies(aws: Aws) -> None:
    """AWS lists no IAM role among the types with enforcement."""
    with attach_tag_policy(aws.client("organizations"), "CostCenter", ["100"], resources=["iam:policy"]):
        assert aws.role(trusts(CATALOG_ARN), Tags=[{"Key": "CostCenter", "Value": "200"}])


def test_effective_policy_is_returned(aws: Aws) -> None:
    organizations = aws.client("organizations")
    with attach_tag_policy(organizations, "CostCenter", ["100"], resources=["s3:bucket"]):
        response = organizations.describe_effective_policy(PolicyType="TAG_POLICY")["EffectivePolicy"]
    assert json.loads(response["PolicyContent"]) == {
        "tags": {"costcenter": {"tag_key": "CostCenter", "tag_value": ["100"], "enforced_for": ["s3:bucket"]}}
    }
    with pytest.raises(organizations.exceptions.EffectivePolicyNotFoundException):
        organizations.describe_effective_policy(PolicyType="TAG_POLICY")


def test_calls_to_organizations_need_a_permission(aws: Aws) -> None:
    _, reader = aws.user(allow("organizations:ListRoots"))
    with expect_refusal("AccessDeniedException", "organizations:DescribeEffectivePolicy"):
        aws.client("organizations", reader).describe_effective_policy(PolicyType="TAG_POLICY")


def test_policy_that_cannot_be_enforced_is_refused(aws: Aws) -> None:
    organizations = aws.client("organizations")
    with attach_tag_policy(organizations, "CostCenter"):
        content = json.dumps({"tags": {"team": {"tag_value": {"@@append": ["a"]}}}})
        with expect_refusal("MalformedPolicyDocumentException", "the operator @@assign only"):
            organizations.create_policy(Name="appends", Description="", Type="TAG_POLICY", Content=content)
        with expect_refusal("UnsupportedPolicyType", "TAG_POLICY only"):
            organizations.create_policy(
                Name="scp", Description="", Type="SERVICE_CONTROL_POLICY", Content='{"Version": "2012-10-17"}'
            )
