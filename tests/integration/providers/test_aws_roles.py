"""Roles and their policies, and the aws functions, over the provider protocol."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import grpc
import pytest

ROLE = "aws:iam/role:Role"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"


def trust(account: str = "123456789012") -> str:
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{account}:user/lakekeeper"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:ExternalId": "x"}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def build_read_policy(bucket: str) -> str:
    statement = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": f"arn:aws:s3:::{bucket}/*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@pytest.fixture
def role(provider: Any) -> Any:
    inputs = {"name": f"r-{uuid4().hex[:12]}", "assumeRolePolicy": trust(), "forceDetachPolicies": True}
    role_name, outputs = provider.create(ROLE, inputs)
    yield role_name, inputs, outputs
    provider.delete(ROLE, role_name, outputs)


def test_a_role_has_the_real_providers_outputs(provider: Any, role: Any) -> None:
    role_name, inputs, outputs = role
    assert role_name == inputs["name"]
    assert outputs.pop("createDate").endswith("Z")
    assert outputs.pop("uniqueId").startswith("AROA")
    assert outputs == {
        "arn": f"arn:aws:iam::123456789012:role/{role_name}",
        "assumeRolePolicy": inputs["assumeRolePolicy"],
        "description": "",
        "forceDetachPolicies": True,
        "maxSessionDuration": 3600,
        "name": role_name,
        "path": "/",
        "permissionsBoundary": "",
        "tags": {},
        "tagsAll": {},
    }
    assert provider.list_changes(ROLE, role_name, outputs, inputs) == []


def test_drift_of_each_property_of_a_role_is_fixed(provider: Any, aws: Any, role: Any) -> None:
    role_name, inputs, outputs = role
    inputs = inputs | {"description": "reads", "maxSessionDuration": 7200, "tags": {"tenant": "a"}}
    outputs = provider.update(ROLE, role_name, outputs, inputs)
    iam = aws.client("iam")
    iam.update_assume_role_policy(RoleName=role_name, PolicyDocument=trust("210987654321"))
    iam.update_role(RoleName=role_name, Description="hm", MaxSessionDuration=3600)
    iam.tag_role(RoleName=role_name, Tags=[{"Key": "tenant", "Value": "b"}, {"Key": "stray", "Value": "1"}])

    _, live, _ = provider.read(ROLE, role_name, outputs, inputs)
    drift = ["assumeRolePolicy", "description", "maxSessionDuration", "tags.stray", "tags.tenant"]
    assert provider.list_changes(ROLE, role_name, live, inputs) == drift

    healed = provider.update(ROLE, role_name, live, inputs)
    assert healed == outputs
    assert provider.list_changes(ROLE, role_name, healed, inputs) == []


def test_removed_properties_are_reset_to_their_defaults(provider: Any, role: Any) -> None:
    role_name, inputs, outputs = role
    outputs = provider.update(ROLE, role_name, outputs, inputs | {"description": "x", "tags": {"a": "b"}})
    assert provider.list_changes(ROLE, role_name, outputs, inputs) == ["description", "tags"]
    bare = provider.update(ROLE, role_name, outputs, inputs)
    assert (bare["description"], bare["tags"]) == ("", {})


def test_a_role_that_exists_is_refused_as_aws_does(provider: Any, role: Any) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        provider.create(ROLE, role[1])
    assert "EntityAlreadyExists" in refused.value.details()


def test_a_role_is_imported_by_its_name_alone(provider: Any, role: Any) -> None:
    role_name, inputs, _ = role
    imported_name, outputs, read_inputs = provider.read(ROLE, role_name)
    assert imported_name == role_name
    assert read_inputs.keys() == {"name", "assumeRolePolicy"}
    assert provider.list_changes(ROLE, role_name, outputs, inputs) == ["forceDetachPolicies"]


def test_a_role_policy_belongs_to_its_role(provider: Any, aws: Any, role: Any) -> None:
    name, iam = role[0], aws.client("iam")
    inputs = {"name": "read", "role": name, "policy": build_read_policy("a")}
    policy_id, outputs = provider.create(ROLE_POLICY, inputs)
    assert policy_id == f"{name}:read"
    assert outputs == inputs
    iam.put_role_policy(RoleName=name, PolicyName="read", PolicyDocument=build_read_policy("b"))
    _, live, _ = provider.read(ROLE_POLICY, policy_id, outputs, inputs)
    assert provider.list_changes(ROLE_POLICY, policy_id, live, inputs) == ["policy"]
    assert provider.update(ROLE_POLICY, policy_id, live, inputs) == inputs

    bare = role[2] | {"forceDetachPolicies": False}
    with pytest.raises(grpc.RpcError) as refused:
        provider.delete(ROLE, name, bare)
    assert "DeleteConflict" in refused.value.details()
    provider.delete(ROLE_POLICY, policy_id, outputs)
    assert provider.read(ROLE_POLICY, policy_id, outputs)[0] == ""


def test_force_detach_deletes_the_policies_too(provider: Any, aws: Any, role: Any) -> None:
    role_name, _, outputs = role
    aws.client("iam").put_role_policy(RoleName=role_name, PolicyName="stray", PolicyDocument=build_read_policy("a"))
    provider.delete(ROLE, role_name, outputs)
    assert provider.read(ROLE, role_name, outputs)[0] == ""


def test_the_caller_is_the_configured_identity(provider: Any) -> None:
    response = provider.invoke("aws:index/getCallerIdentity:getCallerIdentity")
    assert response["accountId"] == response["id"] == "123456789012"
    assert response["arn"].startswith("arn:aws:iam::123456789012:user/")


def test_a_policy_document_is_made_from_its_parts(provider: Any) -> None:
    extra = json.dumps({"Statement": [{"Sid": "Write", "Effect": "Deny", "Action": "s3:*", "Resource": "*"}]})
    response = provider.invoke(
        "aws:iam/getPolicyDocument:getPolicyDocument",
        {
            "statements": [
                {
                    "sid": "Read",
                    "actions": ["s3:ListBucket", "s3:GetObject"],
                    "resources": ["arn:aws:s3:::b/&{aws:username}/*"],
                    "principals": [{"type": "AWS", "identifiers": ["arn:aws:iam::1:root"]}],
                    "conditions": [{"test": "StringLike", "variable": "s3:prefix", "values": ["a/", "b/"]}],
                },
                {"sid": "Write", "actions": ["s3:PutObject"], "resources": ["*"]},
            ],
            "overridePolicyDocuments": [extra],
        },
    )
    assert json.loads(response["json"]) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Read",
                "Effect": "Allow",
                "Action": ["s3:ListBucket", "s3:GetObject"],
                "Resource": "arn:aws:s3:::b/${aws:username}/*",
                "Principal": {"AWS": "arn:aws:iam::1:root"},
                "Condition": {"StringLike": {"s3:prefix": ["b/", "a/"]}},
            },
            {"Sid": "Write", "Effect": "Deny", "Action": "s3:*", "Resource": "*"},
        ],
    }
    assert json.loads(response["minifiedJson"]) == json.loads(response["json"])


def test_an_unknown_function_is_refused_by_name(provider: Any) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        provider.invoke("aws:ec2/getAmi:getAmi")
    assert "aws:ec2/getAmi:getAmi" in refused.value.details()


def test_attached_policy_is_read_and_detached(provider: Any, aws: Any, role: Any) -> None:
    name, _, _ = role
    iam = aws.client("iam")
    policy = iam.create_policy(PolicyName=f"p-{uuid4().hex[:12]}", PolicyDocument=build_read_policy("shared"))[
        "Policy"
    ]["Arn"]
    inputs = {"role": name, "policyArn": policy}

    attachment, outputs = provider.create(ATTACHMENT, inputs)

    assert attachment == f"{name}/{policy}"
    assert provider.list_changes(ATTACHMENT, attachment, outputs, inputs) == []
    provider.delete(ATTACHMENT, attachment, outputs)
    assert iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"] == []
