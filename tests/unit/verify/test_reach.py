"""What a role's policies allow beyond its warehouse."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lakewright.aws.access import RolePurpose, access_policy, trust_policy
from lakewright.client_access.check import Attempt
from lakewright.client_access.role_documents import RoleDocuments
from lakewright.client_access.role_policies import (
    PolicyRequest,
    find_allowing_statement,
    find_open_trust,
    find_unconditional_statement,
)
from lakewright.verify.probes import warehouse_roles
from lakewright.verify.session.stack_warehouses import StackWarehouse

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
    assert find_allowing_statement([NARROW], request_) is None


def test_a_warehouses_policy_allows_its_prefix() -> None:
    assert find_allowing_statement([NARROW], PolicyRequest("s3:PutObject", f"{BUCKET}/acme/executions/x"))
    assert find_allowing_statement([NARROW], PolicyRequest("s3:ListBucket", BUCKET, "acme/executions/x"))


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
    assert find_allowing_statement([NARROW, policy(**statement)], request_) == "Wide"


def test_a_deny_wins_only_without_conditions() -> None:
    wide = policy(Action="s3:*", Resource="*")
    deny = policy(Effect="Deny", Action="s3:GetObject", Resource="*")
    condition = {"Bool": {"aws:SecureTransport": "false"}}

    assert find_allowing_statement([wide, deny], OUTSIDE[0]) is None
    conditional = policy(Effect="Deny", Action="s3:GetObject", Resource="*", Condition=condition)
    assert find_allowing_statement([wide, conditional], OUTSIDE[0]) == "Wide"


def test_resources_are_compared_with_their_case() -> None:
    wide = policy(Action="s3:*", Resource="*")
    deny = policy(Effect="Deny", Action="S3:*", Resource=f"{BUCKET}/Globex/*")

    assert find_allowing_statement([wide, deny], OUTSIDE[0]) == "Wide"
    assert find_allowing_statement([policy(Action="s3:*", Resource=f"{BUCKET}/Globex/*")], OUTSIDE[0]) is None


NOON = datetime(2027, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("condition", "is_allowed", "is_unconditional"),
    [
        ({}, True, True),
        ({"Bool": {"aws:SecureTransport": "true"}}, True, True),
        ({"Bool": {"aws:SecureTransport": False}}, True, False),
        ({"DateLessThan": {"aws:CurrentTime": "2027-02-01T00:00:00Z"}}, True, True),
        ({"DateLessThan": {"aws:CurrentTime": "2027-01-31T00:00:00Z"}}, False, False),
        ({"DateGreaterThan": {"AWS:CurrentTime": "2027-01-31"}}, True, True),
        ({"DateLessThan": {"aws:CurrentTime": 1577836800}}, False, False),
        ({"DateLessThan": {"aws:CurrentTime": "${aws:PrincipalTag/end}"}}, True, False),
        ({"DateLessThan": {"aws:TokenIssueTime": "2027-02-01T00:00:00Z"}}, True, False),
        ({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, True, False),
    ],
)
def test_conditions_of_an_allow(condition: dict[str, Any], *, is_allowed: bool, is_unconditional: bool) -> None:
    policies = [policy(Action="s3:GetObject", Resource="*", Condition=condition)]
    request = PolicyRequest("s3:GetObject", f"{BUCKET}/x", time=NOON)

    assert bool(find_allowing_statement(policies, request)) is is_allowed
    assert bool(find_unconditional_statement(policies, request)) is is_unconditional


@pytest.mark.parametrize(
    ("condition", "is_unconditional"),
    [
        ({"Bool": {"aws:SecureTransport": "false"}}, True),
        ({"DateGreaterThan": {"aws:CurrentTime": "2027-02-01T00:00:00Z"}}, True),
        ({"StringNotEquals": {"aws:SourceVpce": "vpce-1"}}, False),
    ],
)
def test_conditions_of_a_deny(condition: dict[str, Any], *, is_unconditional: bool) -> None:
    wide = policy(Action="s3:*", Resource="*")
    deny = policy(Effect="Deny", Action="s3:*", Resource="*", Condition=condition)
    request = PolicyRequest("s3:GetObject", f"{BUCKET}/x", time=NOON)

    assert find_allowing_statement([wide, deny], request) == "Wide"
    assert bool(find_unconditional_statement([wide, deny], request)) is is_unconditional


def test_role_of_a_share_reads_until_its_end() -> None:
    end = "2027-01-31T13:00:00Z"
    share = access_policy("lakehouse", "acme", region="us-east-1", purpose=RolePurpose.SHARE, ends=end)
    before = PolicyRequest("s3:GetObject", f"{BUCKET}/acme/x", time=NOON)
    after = PolicyRequest("s3:GetObject", f"{BUCKET}/acme/x", time=NOON.replace(hour=13))

    assert find_unconditional_statement([share], before)
    assert find_allowing_statement([share], after) is None


CATALOG = "arn:aws:iam::1:user/lakekeeper"
ID = "0123456789abcdef"
NO_ID = f"no external ID is required of {CATALOG}: expected `StringEquals` with its literal value"


def trust_statement(**changes: Any) -> dict[str, Any]:
    condition = {"StringEquals": {"sts:ExternalId": ID}}
    return {"Principal": {"AWS": CATALOG}, "Action": "sts:AssumeRole", "Condition": condition} | changes


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ({"Principal": "*"}, "any principal may assume it"),
        ({"Principal": {"AWS": ["*"]}, "Action": "sts:*"}, "any principal may assume it"),
        ({"Principal": {"AWS": [CATALOG, "*"]}}, "any principal may assume it"),
        ({"NotPrincipal": {"AWS": CATALOG}}, "all but some principals may assume it (`NotPrincipal`)"),
        (
            {"Principal": {"AWS": [CATALOG, "arn:aws:iam::2:root"]}},
            f"another principal may assume it: arn:aws:iam::2:root; expected {CATALOG} only",
        ),
        (
            {"Principal": {"AWS": CATALOG, "Service": "ec2.amazonaws.com"}},
            f"another principal may assume it: ec2.amazonaws.com; expected {CATALOG} only",
        ),
        (
            {"Principal": {"Federated": "cognito.example"}, "Action": "sts:AssumeRoleWithWebIdentity"},
            f"another principal may assume it: cognito.example; expected {CATALOG} only",
        ),
        ({"Action": None, "NotAction": "s3:*", "Condition": {}}, NO_ID),
        ({"Condition": {}}, NO_ID),
        ({"Condition": {"StringEqualsIfExists": {"sts:ExternalId": ID}}}, NO_ID),
        ({"Condition": {"StringEqualsIgnoreCase": {"sts:ExternalId": ID}}}, NO_ID),
        ({"Condition": {"StringLike": {"sts:ExternalId": "?*"}}}, NO_ID),
        ({"Condition": {"StringLike": {"sts:ExternalId": ID}}}, NO_ID),
        ({"Condition": {"ForAllValues:StringEquals": {"sts:ExternalId": [ID]}}}, NO_ID),
        ({"Condition": {"StringEquals": {"sts:ExternalId": [ID, "*"]}}}, NO_ID),
        ({"Condition": {"StringEquals": {"sts:ExternalId": "${sts:ExternalId}"}}}, NO_ID),
        ({"Condition": {"StringEquals": {"sts:ExternalId": ""}}}, NO_ID),
        ({"Condition": {"StringEquals": {"sts:ExternalId": []}}}, NO_ID),
        ({"Condition": {"StringNotEquals": {"sts:ExternalId": "x"}}}, NO_ID),
    ],
)
def test_open_trust_is_found(statement: dict[str, Any], reason: str) -> None:
    assert find_open_trust(policy(**trust_statement(**statement)), CATALOG) == reason


def test_second_statement_for_a_foreign_principal_is_found() -> None:
    foreign = {"Effect": "Allow", **trust_statement(Principal={"AWS": "arn:aws:iam::2:root"})}
    catalog_statement = {"Effect": "Allow", **trust_statement()}

    assert find_open_trust({"Statement": [catalog_statement, foreign]}, CATALOG) == (
        f"another principal may assume it: arn:aws:iam::2:root; expected {CATALOG} only"
    )
    assert find_open_trust({"Statement": [catalog_statement, foreign]}) == (
        f"several principals may assume it: {CATALOG}, arn:aws:iam::2:root"
    )


def test_the_stacks_trust_is_closed() -> None:
    assert find_open_trust(trust_policy(CATALOG, ID, session_tags=True), CATALOG) is None
    assert find_open_trust(trust_policy(CATALOG, ID)) is None
    both = {"StringEquals": {"STS:ExternalId": [ID, "the-next-one"]}}
    assert find_open_trust(policy(**trust_statement(Condition=both)), CATALOG) is None


ROLE = "arn:aws:iam::1:role/executions"


@pytest.mark.parametrize("pattern", ["acme/executions*", "acme/*", "acme/executions-*"])
def test_role_that_reaches_beside_its_prefix_fails(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = policy(Action="s3:GetObject", Resource=f"{BUCKET}/{pattern}")
    condition = {"StringLike": {"s3:prefix": pattern}}
    listing = policy(Action="s3:ListBucket", Resource=BUCKET, Condition=condition)
    documents = RoleDocuments(ROLE, trust_policy(CATALOG, ID), [NARROW, objects, listing])
    reader = SimpleNamespace(find_account=lambda: "1", read=lambda _arn: documents)
    monkeypatch.setattr(warehouse_roles, "RoleReader", lambda _settings: reader)
    warehouse = StackWarehouse(
        "acme", "acme", "executions", "1", "https://lake.test", "lakehouse", "acme/executions", "", role_arns=(ROLE,)
    )
    settings = SimpleNamespace(aws=None, server=SimpleNamespace(principal_arn=CATALOG))
    session = SimpleNamespace(warehouses=[warehouse], other_warehouses=[], settings=settings)

    results = [*warehouse_roles.probe_warehouse_roles(cast(Any, session))]

    allowed = [result.attempt for result in results if isinstance(result, Attempt) and result.result == "allowed"]
    assert allowed == [
        "reach objects beside the warehouse with role executions",
        "list beside the warehouse with role executions",
    ]
