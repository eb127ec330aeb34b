"""Inputs of a review that earlier rules missed, each with variations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.aws.access import trust_policy
from lakewright.ci.trust_policies import CiIdentity, CiPurpose
from lakewright.ci.trust_policies import build_trust_policy as trust_of_jobs
from lakewright_policy.registry import RULES
from lakewright_policy.resource import CheckedResource

OWNED = {"tags": {"lakewright:owner": "data-platform"}}
ROLE = "arn:aws:iam::111122223333:role/lakekeeper"
BUCKET_POLICY = "aws:s3/bucketPolicy:BucketPolicy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
HARDENED = {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}}
CONTAINER = {"name": "spark", "image": "registry.example/spark@sha256:" + "0" * 64, "securityContext": HARDENED}


def find_violated_rules(kind: str, **props: Any) -> list[str]:
    """Return the names of the rules that a resource violates."""
    checked = CheckedResource(kind, "it", f"urn:pulumi:dev::conf::{kind}::it", props)
    return [rule.name for rule in RULES if rule.find(checked)]


def allow_policy(**statement: Any) -> str:
    return json.dumps({"Statement": [{"Effect": "Allow"} | statement]})


def bucket_policy(**statement: Any) -> list[str]:
    prefix = {"Action": "s3:GetObject", "Resource": "arn:aws:s3:::lake/acme/*"}
    return find_violated_rules(BUCKET_POLICY, policy=allow_policy(**prefix | statement))


def find_trust_violations(principal: Any, condition: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    statement = {"Principal": principal, "Action": "sts:AssumeRole", "Condition": condition or {}} | changes
    return find_violated_rules("aws:iam/role:Role", assumeRolePolicy=allow_policy(**statement), **OWNED)


def pod(kind: str = "kubernetes:apps/v1:Deployment", **container: Any) -> list[str]:
    return find_violated_rules(kind, spec={"template": {"spec": {"containers": [CONTAINER | container]}}})


@pytest.mark.parametrize(
    "condition",
    [
        {"StringLike": {"aws:PrincipalArn": "*"}},
        {"StringLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/x"}},
        {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::????????????:root"}},
        {"Bool": {"aws:SecureTransport": "true"}},
        {"StringNotEquals": {"aws:PrincipalOrgID": "o-nobody"}},
        {"StringEqualsIfExists": {"aws:PrincipalOrgID": "o-acme"}},
        {"ForAllValues:StringEquals": {"aws:PrincipalOrgID": ["o-acme"]}},
        {"StringEquals": {"aws:PrincipalArn": "${aws:PrincipalArn}"}},
        {"Null": {"aws:PrincipalArn": "false"}},
        {"IpAddress": {"aws:SourceIp": "0.0.0.0/0"}},
        {"IpAddress": {"aws:SourceIp": ["10.0.0.0/16", "128.0.0.0/1"]}},
        {"DateGreaterThan": {"aws:CurrentTime": "2000-01-01T00:00:00Z"}},
        {"StringEquals": {"aws:PrincipalTag/team": "data"}},
        {"IpAddress": {"aws:VpcSourceIp": "10.0.0.0/16"}},
    ],
)
def test_condition_that_is_always_true_is_found(condition: dict[str, Any]) -> None:
    assert bucket_policy(Principal="*", Condition=condition) == ["public-bucket"]
    assert find_trust_violations({"AWS": "*"}, condition) == ["open-trust"]


@pytest.mark.parametrize(
    "condition",
    [
        {"StringEquals": {"aws:PrincipalOrgID": "o-acme"}},
        {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::111122223333:role/lakewright/*"}},
        {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}},
        {"StringEquals": {"aws:SourceVpce": ["vpce-1", "vpce-2"]}},
    ],
)
def test_condition_on_the_caller_is_accepted(condition: dict[str, Any]) -> None:
    assert bucket_policy(Principal="*", Condition=condition) == []


@pytest.mark.parametrize("principal", [{"AWS": ROLE}, "*", {"AWS": [ROLE, "arn:aws:iam::1:root"]}])
def test_not_principal_is_found(principal: Any) -> None:
    assert bucket_policy(NotPrincipal=principal) == ["public-bucket"]
    assert find_trust_violations(None, None, NotPrincipal=principal) == ["open-trust"]


@pytest.mark.parametrize("action", ["s3:?utObject", "s3:PutObjec?", "s?:GetObject", ["s3:GetObject", "s3:????Object"]])
def test_question_mark_in_action_is_found(action: Any) -> None:
    policy = allow_policy(Action=action, Resource="arn:aws:s3:::lake/acme/*")

    assert find_violated_rules(ROLE_POLICY, policy=policy) == ["wildcard-action"]


@pytest.mark.parametrize(
    "arn",
    [
        "?*",
        "arn:aws:s3:::lake/?*",
        "arn:aws:s3:::lake/??????*",
        "arn:aws:s3:::lak?/acme/*",
        "arn:aws:s3:::lake?acme/*",
        "arn:aws:s3:::?*/acme/x",
        "arn:aws:s?:::lake/acme/*",
        "arn:aw?:s3:::lake/acme/*",
        "arn:aws:iam::111122223333:role/?*",
        "arn:aws:kms:us-east-1:111122223333:*",
    ],
)
def test_question_mark_in_resource_is_found(arn: str) -> None:
    assert find_violated_rules(ROLE_POLICY, policy=allow_policy(Action="s3:GetObject", Resource=arn)) == [
        "wide-resource"
    ]


@pytest.mark.parametrize(
    ("kind", "props"),
    [
        ("rolePolicyAttachment:RolePolicyAttachment", {"policyArn": "arn:aws:iam::aws:policy/AdministratorAccess"}),
        ("userPolicyAttachment:UserPolicyAttachment", {"policyArn": "arn:aws:iam::aws:policy/PowerUserAccess"}),
        ("groupPolicyAttachment:GroupPolicyAttachment", {"policyArn": "arn:aws-cn:iam::aws:policy/IAMFullAccess"}),
        ("policyAttachment:PolicyAttachment", {"policyArn": "arn:aws:iam::aws:policy/AmazonS3FullAccess"}),
        (
            "rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive",
            {"policyArns": ["arn:aws:iam::aws:policy/job-function/SystemAdministrator"]},
        ),
        ("rolePolicyAttachment:RolePolicyAttachment", {"policyArn": "arn:aws:iam::aws:policy/ReadOnlyAccess"}),
        (
            "rolePolicyAttachment:RolePolicyAttachment",
            {"policyArn": "arn:aws:iam::aws:policy/job-function/DataScientist"},
        ),
        (
            "rolePolicyAttachment:RolePolicyAttachment",
            {"policyArn": "arn:aws:iam::aws:policy/service-role/AmazonElasticMapReduceforEC2Role"},
        ),
        ("rolePolicyAttachment:RolePolicyAttachment", {"policyArn": "arn:aws:iam::aws:policy/AWSLambdaExecute"}),
        ("role:Role", {"managedPolicyArns": ["arn:aws:iam::aws:policy/AdministratorAccess"], **OWNED}),
    ],
)
def test_attached_administrator_policy_is_found(kind: str, props: dict[str, Any]) -> None:
    assert find_violated_rules(f"aws:iam/{kind}", **props) == ["administrator-policy"]


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::111122223333:policy/lakewright-acme",
        "arn:aws:iam::aws:policy/job-function/ViewOnlyAccess",
        "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryReadOnly",
    ],
)
def test_attached_policy_without_whole_buckets_is_accepted(arn: str) -> None:
    attached = {"policyArn": arn}

    assert find_violated_rules("aws:iam/rolePolicyAttachment:RolePolicyAttachment", **attached) == []


@pytest.mark.parametrize(
    ("principal", "condition"),
    [
        ("*", None),
        ({"AWS": [ROLE, "*"]}, None),
        ({"AWS": "arn:aws:iam::*:root"}, None),
        ({"AWS": "*"}, {"StringLike": {"sts:ExternalId": "?*"}}),
        ({"AWS": "*"}, {"StringEquals": {"sts:ExternalId": "x"}}),
        ({"AWS": "arn:aws:iam::444455556666:root"}, None),
        ({"AWS": "444455556666"}, {"StringLike": {"sts:ExternalId": "*"}}),
        ({"Federated": "arn:aws:iam::1:oidc-provider/token.actions.githubusercontent.com"}, None),
        ({"Federated": "accounts.example"}, {"StringLike": {"accounts.example:sub": "repo:*"}}),
        ({"Federated": "accounts.example"}, {"StringEquals": {"accounts.example:aud": "sts.amazonaws.com"}}),
    ],
)
@pytest.mark.parametrize("action", ["sts:AssumeRole", ["sts:assumerole", "sts:TagSession"], "sts:*", "*"])
def test_open_trust_policy_is_found(principal: Any, condition: dict[str, Any] | None, action: Any) -> None:
    rules = find_trust_violations(principal, condition, Action=action)

    assert [name for name in rules if name != "wildcard-action"] == ["open-trust"]


def test_trust_of_one_principal_is_accepted() -> None:
    account = {"StringEquals": {"sts:ExternalId": "0123456789abcdef"}}
    subject = {"StringEquals": {"oidc.example:sub": "system:serviceaccount:lakekeeper:lakekeeper"}}

    assert (
        find_violated_rules("aws:iam/role:Role", assumeRolePolicy=json.dumps(trust_policy(ROLE, "id")), **OWNED) == []
    )
    assert find_trust_violations({"AWS": "arn:aws:iam::444455556666:root"}, account) == []
    assert find_trust_violations({"AWS": "444455556666"}, {"StringEquals": {"aws:PrincipalTag/team": "data"}}) == []
    assert find_trust_violations({"Federated": "oidc.example"}, subject, Action="sts:AssumeRoleWithWebIdentity") == []
    assert find_trust_violations({"Service": "pods.eks.amazonaws.com"}) == []
    for host in (None, "gitlab.com"):
        for purpose in CiPurpose:
            identity = CiIdentity("111122223333", "acme/lake", "main", "production", host, None, None)
            document = json.dumps(trust_of_jobs(identity, purpose))
            assert find_violated_rules("aws:iam/role:Role", assumeRolePolicy=document, **OWNED) == []


def test_key_for_everyone_is_found() -> None:
    policy = allow_policy(Principal={"AWS": "*"}, Action="kms:Decrypt", Resource="*")

    assert find_violated_rules("aws:kms/key:Key", policy=policy, **OWNED) == ["open-trust"]


@pytest.mark.parametrize(
    "kind",
    [
        "core/v1:Pod",
        "apps/v1:Deployment",
        "apps/v1:DaemonSet",
        "apps/v1:StatefulSet",
        "batch/v1:Job",
        "batch/v1:CronJob",
    ],
)
@pytest.mark.parametrize("form", ["Patch", "List"])
def test_patches_and_lists_are_checked(kind: str, form: str) -> None:
    bad = {
        "name": "spark",
        "image": "spark:latest",
        "securityContext": {"privileged": True},
        "args": ["--token=hunter2"],
    }
    spec: dict[str, Any] = {"containers": [bad]}
    if "Pod" not in kind:
        spec = {"template": {"spec": spec}}
    if "CronJob" in kind:
        spec = {"jobTemplate": {"spec": spec}}
    props = {"items": [{"spec": spec}]} if form == "List" else {"spec": spec}

    rules = find_violated_rules(f"kubernetes:{kind}{form}", **props)

    assert rules == ["pod-with-secrets", "pod-with-privileges", "image-without-digest"]


def test_patch_counts_only_what_it_sets() -> None:
    patch = {"template": {"spec": {"containers": [{"name": "spark", "image": CONTAINER["image"]}]}}}

    assert find_violated_rules("kubernetes:apps/v1:DeploymentPatch", spec=patch) == []
    assert find_violated_rules("kubernetes:apps/v1:Deployment", spec=patch) == ["pod-with-privileges"]


@pytest.mark.parametrize(
    "fields",
    [
        {"args": ["--password=hunter2"]},
        {"args": ["--db-password", "hunter2"]},
        {"args": ["-Dlakekeeper.client-secret=hunter2"]},
        {"args": ["--conf", "spark.hadoop.fs.s3a.secret.key=hunter2"]},
        {"args": ["postgres://lakekeeper:hunter2@db.example/catalog"]},
        {"args": ["--key", "AKIAIOSFODNN7EXAMPLE"]},
        {"args": ["--header", "Authorization: Bearer hunter2hunter2"]},
        {"command": ["sh", "-c", "export AWS_SECRET_ACCESS_KEY='hunter2'; run"]},
        {"command": ["run", "--token", "eyJhbGciOiJI.eyJzdWIiOiIx.c2ln"]},
        {"livenessProbe": {"exec": {"command": ["curl", "-u", "x", "--oauth-token=hunter2"]}}},
        {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "API_KEY=hunter2 stop"]}}}},
        {"env": [{"name": "DATABASE_URL", "value": "postgres://lakekeeper:hunter2@db.example/catalog"}]},
    ],
)
def test_secret_in_arguments_is_found(fields: dict[str, Any]) -> None:
    assert pod(**fields) == ["pod-with-secrets"]


@pytest.mark.parametrize(
    "name", ["DEPLOY_PASSPHRASE", "VENDOR_APIKEY", "store.accessKey", "SIGNING_PRIVATEKEY", "TOKEN"]
)
def test_plain_secret_in_the_environment_is_found(name: str) -> None:
    assert pod(env=[{"name": name, "value": "hunter2"}]) == ["pod-with-secrets"]
    assert pod(env=[{"name": name, "value": "file:/var/run/secrets/it"}]) == []


def test_arguments_without_secrets_are_accepted() -> None:
    args = [
        "--token-file=/var/run/secrets/token",
        "--password=$(DB_PASSWORD)",
        "--token-url=https://idp.example/token",
        "--token",
        "file:/var/run/token",
        "--secret=env:STORE",
        "--no-password",
        "--max-tokens=100",
        "https://user@host.example/x",
        "postgres://lakekeeper:$(DB_PASSWORD)@db.example/catalog",
    ]

    assert pod(args=args) == []
