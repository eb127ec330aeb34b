"""Policy documents: exactly the rights that the catalog needs, without findings of a linter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lakewright.aws.access import RolePurpose, access_policy, find_end, principal_trust, trust_policy
from lakewright.aws.bucket_policy import log_bucket_policy, tenant_bucket_policy
from lakewright.aws.catalog_identity import assume_policy, irsa_trust, pod_identity_trust, static_trust
from lakewright.names.object_names import role_name

REGION = "us-west-2"
ACCOUNT = "123456789012"
PROVIDER = f"arn:aws:iam::{ACCOUNT}:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC"
CLUSTER = f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/platform"
CATALOG = "arn:aws:iam::123456789012:role/lakekeeper"
KEY = "arn:aws:kms:us-west-2:123456789012:key/11111111-2222-3333-4444-555555555555"


Linter = Callable[[dict[str, Any]], list[str]]


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("purpose", RolePurpose)
def test_linter_finds_nothing_in_the_rights(key: str | None, purpose: RolePurpose, lint_policy: Linter) -> None:
    assert lint_policy(access_policy("acme-lakehouse", "acme/executions", key, region=REGION, purpose=purpose)) == []


@pytest.mark.parametrize(
    "policy",
    [
        trust_policy(CATALOG, "11111111-2222", session_tags=True),
        principal_trust(CATALOG, "11111111-2222"),
        principal_trust(CATALOG, "11111111-2222", ends="2027-02-01T00:00:00Z"),
        access_policy("acme-lakehouse", "acme", KEY, region=REGION, ends="2027-02-01T00:00:00Z"),
        static_trust(CATALOG),
        irsa_trust(PROVIDER, namespace="lakekeeper", service_account="server"),
        pod_identity_trust(account=ACCOUNT, namespace="lakekeeper", service_account="server", cluster_arn=CLUSTER),
        assume_policy("aws", [ACCOUNT, "210987654321"], with_former_roles=True),
        tenant_bucket_policy("acme-lakehouse", REGION, ACCOUNT),
        log_bucket_policy("acme-logs", REGION, ACCOUNT, ["acme-lakehouse"], prefix="acme-lakehouse/"),
    ],
    ids=[
        "trust",
        "principal",
        "ending-principal",
        "ending-access",
        "static",
        "irsa",
        "pod-identity",
        "assume",
        "bucket",
        "log-bucket",
    ],
)
def test_linter_finds_nothing_in_trust_and_buckets(policy: dict[str, Any], lint_policy: Linter) -> None:
    assert lint_policy(policy) == []


def test_linter_finds_a_right_on_the_wrong_resource(lint_policy: Linter) -> None:
    policy = access_policy("acme-lakehouse", "acme/executions", region=REGION)
    policy["Statement"][0]["Resource"] = "arn:aws:s3:::acme-lakehouse"

    assert lint_policy(policy)


def test_linter_finds_a_wrong_condition_of_trust(lint_policy: Linter) -> None:
    policy = trust_policy(CATALOG, "11111111-2222")
    policy["Statement"][0]["Condition"] = {"StringEquals": {"s3:prefix": "a"}}

    assert lint_policy(policy)


def test_rights_are_limited_to_the_prefix() -> None:
    policy = access_policy("acme-lakehouse", "executions", region=REGION)

    statements = {statement["Sid"]: statement for statement in policy["Statement"]}
    assert set(statements) == {"WarehouseObjects", "WarehouseListing", "BucketLocation"}
    assert statements["WarehouseObjects"]["Resource"] == "arn:aws:s3:::acme-lakehouse/executions/*"
    assert statements["WarehouseObjects"]["Action"] == [
        "s3:GetObject",
        "s3:GetObjectVersion",
        "s3:PutObject",
        "s3:DeleteObject",
        "s3:AbortMultipartUpload",
        "s3:ListMultipartUploadParts",
    ]
    assert statements["WarehouseListing"]["Condition"] == {"StringLike": {"s3:prefix": "executions/*"}}


def test_key_is_used_only_to_read_and_write() -> None:
    rights = access_policy("acme-lakehouse", "executions", KEY, region=REGION)["Statement"][-1]

    assert (rights["Action"], rights["Resource"]) == (["kms:Decrypt", "kms:GenerateDataKey"], KEY)


def test_key_is_used_through_s3_for_the_prefix_only() -> None:
    rights = access_policy("acme-lakehouse", "executions", KEY, region=REGION)["Statement"][-1]

    assert rights["Condition"] == {
        "StringEquals": {"kms:ViaService": "s3.us-west-2.amazonaws.com"},
        "StringLike": {
            "kms:EncryptionContext:aws:s3:arn": [
                "arn:aws:s3:::acme-lakehouse",
                "arn:aws:s3:::acme-lakehouse/executions/*",
            ]
        },
    }


@pytest.mark.parametrize(
    ("region", "partition"),
    [
        ("us-west-2", "aws"),
        ("eu-central-1", "aws"),
        ("cn-north-1", "aws-cn"),
        ("us-gov-west-1", "aws-us-gov"),
        ("us-iso-east-1", "aws-iso"),
        ("us-isob-east-1", "aws-iso-b"),
        ("eusc-de-east-1", "aws-eusc"),
    ],
)
def test_every_document_names_the_regions_partition(region: str, partition: str) -> None:
    rights = access_policy("b", "p", f"arn:{partition}:kms:{region}:1:key/k", region=region)
    on_bucket = tenant_bucket_policy("b", region, ACCOUNT)["Statement"]
    logs = log_bucket_policy("l", region, ACCOUNT, ["b"])["Statement"][-1]
    arns = [item["Resource"] for item in rights["Statement"]] + on_bucket[0]["Resource"] + on_bucket[1]["Resource"]
    arns += [logs["Resource"], logs["Condition"]["ArnLike"]["aws:SourceArn"]]

    assert {arn.split(":")[1] for arn in arns} == {partition}


def test_chinas_s3_is_known_under_both_names() -> None:
    rights = access_policy("b", "p", KEY, region="cn-north-1")["Statement"][-1]

    hosts = ["s3.cn-north-1.amazonaws.com.cn", "s3.cn-north-1.amazonaws.com"]
    assert rights["Condition"]["StringEquals"]["kms:ViaService"] == hosts


def test_only_the_catalog_with_the_external_id_is_trusted() -> None:
    (statement,) = trust_policy(CATALOG, "11111111-2222")["Statement"]

    assert statement["Principal"] == {"AWS": CATALOG}
    assert statement["Action"] == "sts:AssumeRole"
    assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": "11111111-2222"}}


def test_session_tags_need_their_own_right() -> None:
    actions = [s["Action"] for s in trust_policy(CATALOG, "x" * 8, session_tags=True)["Statement"]]

    assert actions == ["sts:AssumeRole", "sts:TagSession"]


def test_access_without_tls_and_of_others_is_denied() -> None:
    tls, foreign = tenant_bucket_policy("acme-lakehouse", REGION, ACCOUNT)["Statement"]

    for statement in (tls, foreign):
        assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
        assert statement["Resource"] == ["arn:aws:s3:::acme-lakehouse", "arn:aws:s3:::acme-lakehouse/*"]
    assert foreign["Condition"] == {
        "StringNotEquals": {"aws:PrincipalAccount": ACCOUNT},
        "BoolIfExists": {"aws:PrincipalIsAWSService": "false"},
    }


def test_irsa_names_audience_and_service_account() -> None:
    (statement,) = irsa_trust(PROVIDER, namespace="lakekeeper", service_account="server")["Statement"]

    issuer = "oidc.eks.us-west-2.amazonaws.com/id/ABC"
    assert statement["Principal"] == {"Federated": PROVIDER}
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert statement["Condition"] == {
        "StringEquals": {
            f"{issuer}:aud": "sts.amazonaws.com",
            f"{issuer}:sub": "system:serviceaccount:lakekeeper:server",
        }
    }


def test_irsa_needs_the_arn_of_a_provider() -> None:
    with pytest.raises(ValueError, match="expected the ARN of an IAM OIDC provider"):
        irsa_trust("https://oidc.example", namespace="lakekeeper", service_account="server")


def test_catalog_assumes_and_tags_roles_of_the_path_only() -> None:
    allowed, denied = assume_policy("aws", [ACCOUNT])["Statement"]

    assert allowed["Action"] == denied["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert allowed["Resource"] == denied["NotResource"] == f"arn:aws:iam::{ACCOUNT}:role/lakewright/*"


def test_no_two_warehouses_share_a_role() -> None:
    assert role_name("a-b", "c") != role_name("a", "b-c")
    assert len(role_name("t" * 40, "w" * 12)) <= 64


def test_end_denies_every_statement_from_a_time_on() -> None:
    ends = "2027-02-01T00:00:00Z"
    policies = [
        principal_trust(CATALOG, "11111111-2222", ends=ends),
        access_policy("acme-lakehouse", "acme", KEY, region=REGION, purpose=RolePurpose.SHARE, ends=ends),
    ]

    for policy in policies:
        conditions = [statement["Condition"]["DateLessThan"] for statement in policy["Statement"]]
        assert conditions == [{"aws:CurrentTime": ends}] * len(policy["Statement"])
        assert find_end(policy) == ends
    assert find_end(access_policy("acme-lakehouse", "acme", region=REGION)) is None
