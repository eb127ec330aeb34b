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


def reading(bucket: str) -> str:
    statement = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": f"arn:aws:s3:::{bucket}/*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@pytest.fixture
def role(provider: Any) -> Any:
    inputs = {"name": f"r-{uuid4().hex[:12]}", "assumeRolePolicy": trust(), "forceDetachPolicies": True}
    made, outputs = provider.create(ROLE, inputs)
    yield made, inputs, outputs
    provider.delete(ROLE, made, outputs)


def test_a_role_has_the_real_providers_outputs(provider: Any, role: Any) -> None:
    made, inputs, outputs = role
    assert made == inputs["name"]
    assert outputs.pop("createDate").endswith("Z")
    assert outputs.pop("uniqueId").startswith("AROA")
    assert outputs == {
        "arn": f"arn:aws:iam::123456789012:role/{made}",
        "assumeRolePolicy": inputs["assumeRolePolicy"],
        "description": "",
        "forceDetachPolicies": True,
        "maxSessionDuration": 3600,
        "name": made,
        "path": "/",
        "permissionsBoundary": "",
        "tags": {},
        "tagsAll": {},
    }
    assert provider.changed(ROLE, made, outputs, inputs) == []


def test_drift_of_each_property_of_a_role_is_fixed(provider: Any, aws: Any, role: Any) -> None:
    made, inputs, outputs = role
    inputs = inputs | {"description": "reads", "maxSessionDuration": 7200, "tags": {"tenant": "a"}}
    outputs = provider.update(ROLE, made, outputs, inputs)
    iam = aws.client("iam")
    iam.update_assume_role_policy(RoleName=made, PolicyDocument=trust("210987654321"))
    iam.update_role(RoleName=made, Description="hm", MaxSessionDuration=3600)
    iam.tag_role(RoleName=made, Tags=[{"Key": "tenant", "Value": "b"}, {"Key": "stray", "Value": "1"}])

    _, live, _ = provider.read(ROLE, made, outputs, inputs)
    drift = ["assumeRolePolicy", "description", "maxSessionDuration", "tags.stray", "tags.tenant"]
    assert provider.changed(ROLE, made, live, inputs) == drift

    healed = provider.update(ROLE, made, live, inputs)
    assert healed == outputs
    assert provider.changed(ROLE, made, healed, inputs) == []


def test_removed_properties_go_back_to_their_defaults(provider: Any, role: Any) -> None:
    made, inputs, outputs = role
    outputs = provider.update(ROLE, made, outputs, inputs | {"description": "x", "tags": {"a": "b"}})
    assert provider.changed(ROLE, made, outputs, inputs) == ["description", "tags"]
    bare = provider.update(ROLE, made, outputs, inputs)
    assert (bare["description"], bare["tags"]) == ("", {})


def test_a_role_that_exists_is_refused_as_aws_does(provider: Any, role: Any) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        provider.create(ROLE, role[1])
    assert "EntityAlreadyExists" in refused.value.details()


def test_a_role_is_imported_by_its_name_alone(provider: Any, role: Any) -> None:
    made, inputs, _ = role
    found, outputs, read_inputs = provider.read(ROLE, made)
    assert found == made
    assert read_inputs.keys() == {"name", "assumeRolePolicy"}
    assert provider.changed(ROLE, made, outputs, inputs) == ["forceDetachPolicies"]


def test_a_role_policy_lives_in_its_role(provider: Any, aws: Any, role: Any) -> None:
    name, iam = role[0], aws.client("iam")
    inputs = {"name": "read", "role": name, "policy": reading("a")}
    made, outputs = provider.create(ROLE_POLICY, inputs)
    assert made == f"{name}:read"
    assert outputs == inputs
    iam.put_role_policy(RoleName=name, PolicyName="read", PolicyDocument=reading("b"))
    _, live, _ = provider.read(ROLE_POLICY, made, outputs, inputs)
    assert provider.changed(ROLE_POLICY, made, live, inputs) == ["policy"]
    assert provider.update(ROLE_POLICY, made, live, inputs) == inputs

    bare = role[2] | {"forceDetachPolicies": False}
    with pytest.raises(grpc.RpcError) as refused:
        provider.delete(ROLE, name, bare)
    assert "DeleteConflict" in refused.value.details()
    provider.delete(ROLE_POLICY, made, outputs)
    assert provider.read(ROLE_POLICY, made, outputs)[0] == ""


def test_force_detach_takes_the_policies_along(provider: Any, aws: Any, role: Any) -> None:
    made, _, outputs = role
    aws.client("iam").put_role_policy(RoleName=made, PolicyName="stray", PolicyDocument=reading("a"))
    provider.delete(ROLE, made, outputs)
    assert provider.read(ROLE, made, outputs)[0] == ""


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
    policy = iam.create_policy(PolicyName=f"p-{uuid4().hex[:12]}", PolicyDocument=reading("shared"))["Policy"]["Arn"]
    inputs = {"role": name, "policyArn": policy}

    attachment, outputs = provider.create(ATTACHMENT, inputs)

    assert attachment == f"{name}/{policy}"
    assert provider.changed(ATTACHMENT, attachment, outputs, inputs) == []
    provider.delete(ATTACHMENT, attachment, outputs)
    assert iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"] == []
