"""What a role's policies allow beyond its warehouse."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.aws.access import access_policy, trust_policy
from lakewright.verify.roles.reach import PolicyRequest, allowing_statement, open_trust

BUCKET = "arn:aws:s3:::lakehouse"
NARROW = access_policy("lakehouse", "acme/executions", region="us-east-1")
OUTSIDE = [
    PolicyRequest("s3:GetObject", f"{BUCKET}/globex/executions/x"),
    PolicyRequest("s3:GetObject", f"{BUCKET}/acme/executions2/x"),
    PolicyRequest("s3:ListBucket", BUCKET),
    PolicyRequest("s3:ListBucket", BUCKET, ""),
    PolicyRequest("s3:ListBucket", BUCKET, "globex/"),
    PolicyRequest("s3:PutBucketPolicy", BUCKET),
]


def policy(**statement: Any) -> dict[str, Any]:
    return {"Statement": {"Effect": "Allow", "Sid": "Wide", **statement}}


@pytest.mark.parametrize("request_", OUTSIDE)
def test_a_warehouses_policy_allows_nothing_outside(request_: PolicyRequest) -> None:
    assert allowing_statement([NARROW], request_) is None


def test_a_warehouses_policy_allows_its_prefix() -> None:
    assert allowing_statement([NARROW], PolicyRequest("s3:PutObject", f"{BUCKET}/acme/executions/x"))
    assert allowing_statement([NARROW], PolicyRequest("s3:ListBucket", BUCKET, "acme/executions/x"))


@pytest.mark.parametrize(
    ("statement", "request_"),
    [
        ({"Action": "s3:*", "Resource": "*"}, OUTSIDE[0]),
        ({"Action": "S3:Get*", "Resource": f"{BUCKET}/*"}, OUTSIDE[0]),
        ({"Action": ["s3:GetObjec?"], "Resource": [f"{BUCKET}/acme/executions*"]}, OUTSIDE[1]),
        ({"NotAction": "iam:*", "Resource": "*"}, OUTSIDE[5]),
        ({"Action": "s3:GetObject", "NotResource": f"{BUCKET}/acme/*"}, OUTSIDE[0]),
        ({"Action": "s3:ListBucket", "Resource": BUCKET}, OUTSIDE[2]),
        (
            {"Action": "s3:*", "Resource": "*", "Condition": {"StringEquals": {"aws:PrincipalTag/t": "x"}}},
            OUTSIDE[0],
        ),
        (
            {"Action": "s3:ListBucket", "Resource": BUCKET, "Condition": {"StringLike": {"s3:prefix": ["glob*"]}}},
            OUTSIDE[4],
        ),
    ],
)
def test_wide_statements_are_named(statement: dict[str, Any], request_: PolicyRequest) -> None:
    assert allowing_statement([NARROW, policy(**statement)], request_) == "Wide"


def test_a_deny_wins_only_without_conditions() -> None:
    wide = policy(Action="s3:*", Resource="*")
    deny = policy(Effect="Deny", Action="s3:GetObject", Resource="*")
    condition = {"Bool": {"aws:SecureTransport": "false"}}

    assert allowing_statement([wide, deny], OUTSIDE[0]) is None
    conditional = policy(Effect="Deny", Action="s3:GetObject", Resource="*", Condition=condition)
    assert allowing_statement([wide, conditional], OUTSIDE[0]) == "Wide"


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ({"Principal": "*", "Action": "sts:AssumeRole"}, "any principal may assume it"),
        ({"Principal": {"AWS": ["*"]}, "Action": "sts:*"}, "any principal may assume it"),
        (
            {"Principal": {"AWS": "arn:aws:iam::1:root"}, "Action": "sts:AssumeRole"},
            "no external ID is required of arn:aws:iam::1:root",
        ),
        (
            {
                "Principal": {"AWS": "arn:aws:iam::1:root"},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEqualsIfExists": {"sts:ExternalId": "0123456789abcdef"}},
            },
            "no external ID is required of arn:aws:iam::1:root",
        ),
        (
            {"Principal": {"Federated": "cognito.example"}, "Action": "sts:AssumeRoleWithWebIdentity"},
            "no external ID is required of cognito.example",
        ),
    ],
)
def test_open_trust_is_found(statement: dict[str, Any], reason: str) -> None:
    assert open_trust(policy(**statement)) == reason


def test_the_stacks_trust_is_closed() -> None:
    assert open_trust(trust_policy("arn:aws:iam::1:user/lakekeeper", "0123456789abcdef", session_tags=True)) is None
