"""The rules of the policy pack, on the inputs of resources."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.aws.access import access_policy, trust_policy
from lakewright_policy.registry import RULES, STACK_RULES
from lakewright_policy.resource import UNKNOWN, CheckedResource

WAREHOUSE = "pulumi-python:dynamic/lakekeeper:Warehouse"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
BUCKET = "aws:s3/bucket:Bucket"
DIGEST = "registry.example/spark@sha256:" + "0" * 64
OWNED = {"tags": {"lakewright:owner": "data-platform"}}


def resource(kind: str, **props: Any) -> CheckedResource:
    return CheckedResource(kind, "it", f"urn:pulumi:dev::conf::{kind}::it", props)


def find_violations(checked: CheckedResource, *, trial: bool = False) -> dict[str, str]:
    """Return the first message of each violated rule, by its name."""
    return {rule.name: messages[0] for rule in RULES if (messages := rule.find(checked, trial=trial))}


def allow_policy(**statement: Any) -> str:
    return json.dumps({"Statement": [{"Effect": "Allow", "Action": "s3:GetObject"} | statement]})


def warehouse(**changes: Any) -> CheckedResource:
    props: dict[str, Any] = {
        "server": {"endpoint": "https://lakekeeper.example"},
        "credential": {"type": "aws-system-identity"},
        "deletion": "protect",
        "delete_profile": {"type": "soft", "expiration_seconds": 604800},
    }
    return resource(WAREHOUSE, **props | changes)


def unit(container: dict[str, Any] | None = None, **pod: Any) -> CheckedResource:
    hardened = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
    spec = {"containers": [{"name": "spark", "image": DIGEST, "securityContext": hardened} | (container or {})], **pod}
    return resource(DEPLOYMENT, spec={"template": {"spec": spec}})


@pytest.mark.parametrize(
    "checked",
    [
        warehouse(),
        unit({"env": [{"name": "LAKEKEEPER_TOKEN_FILE", "value": "/var/run/secrets/token"}]}),
        resource(BUCKET, **OWNED),
        resource(ROLE_POLICY, policy=json.dumps(access_policy("lake", "acme/executions", region="us-west-2"))),
        resource("aws:iam/role:Role", assumeRolePolicy=json.dumps(trust_policy("arn:x", "id")), **OWNED),
        resource("aws:kms/key:Key", policy=allow_policy(Action="kms:*", Resource="*"), **OWNED),
        resource("aws:s3/bucketPolicy:BucketPolicy", policy=allow_policy(Effect="Deny", Principal="*", Action="*")),
    ],
    ids=lambda checked: checked.type.rpartition(":")[2],
)
def test_what_stacks_make_breaks_no_rule(checked: CheckedResource) -> None:
    assert find_violations(checked) == {}


@pytest.mark.parametrize(
    ("rule", "checked"),
    [
        ("public-bucket", resource("aws:s3/bucketAcl:BucketAcl", acl="public-read")),
        ("public-bucket", resource(BLOCK, blockPublicAcls=True, blockPublicPolicy=True, ignorePublicAcls=True)),
        ("public-bucket", resource("aws:s3/bucketPolicy:BucketPolicy", policy=allow_policy(Principal="*"))),
        ("public-bucket", resource("aws:s3/bucketPolicy:BucketPolicy", policy=allow_policy(Principal={"AWS": ["*"]}))),
        ("wildcard-action", resource(ROLE_POLICY, policy=allow_policy(Action=["s3:GetObject", "s3:Put*"]))),
        ("wildcard-action", resource(ROLE_POLICY, policy=allow_policy(NotAction="s3:DeleteObject"))),
        ("wide-resource", resource(ROLE_POLICY, policy=allow_policy(Resource="*"))),
        ("wide-resource", resource(ROLE_POLICY, policy=allow_policy(Resource="arn:aws:s3:::lake/*"))),
        ("wide-resource", resource(ROLE_POLICY, policy=allow_policy(Resource="arn:aws:s3:::lake*"))),
        ("wide-resource", resource(ROLE_POLICY, policy=allow_policy(Resource="arn:aws:s3:::*"))),
        ("wide-resource", resource("aws:iam/policy:Policy", policy=allow_policy(Resource="arn:aws:s3:::*/*"), **OWNED)),
        ("static-credential", warehouse(credential={"type": "access-key"})),
        ("static-credential", resource("aws:iam/accessKey:AccessKey", user="lakekeeper")),
        ("unprotected-warehouse", warehouse(deletion="purge")),
        ("soft-delete-off", warehouse(delete_profile={"type": "hard"})),
        ("soft-delete-off", resource(WAREHOUSE, server={"endpoint": "https://lakekeeper.example"})),
        ("pod-with-secrets", unit({"env": [{"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": {}}]})),
        ("pod-with-secrets", unit({"env": [{"name": "CATALOG_TOKEN", "value": "eyJhbGciOi"}]})),
        ("pod-with-secrets", unit({"envFrom": [{"secretRef": {"name": "all"}}]})),
        ("pod-with-privileges", unit({"securityContext": {}})),
        ("pod-with-privileges", unit(hostNetwork=True)),
        ("pod-with-privileges", unit(volumes=[{"name": "node", "hostPath": {"path": "/"}}])),
        ("image-without-digest", unit({"image": "registry.example/spark:4.1"})),
        ("missing-owner-tag", resource(BUCKET, tags={"team": "data"})),
    ],
)  # fmt: skip
def test_violation_is_found(rule: str, checked: CheckedResource) -> None:
    assert list(find_violations(checked)) == [rule]


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_unknown_values_are_left_to_the_update(rule: str) -> None:
    (tested,) = (candidate for candidate in RULES if candidate.name == rule)
    unknown = dict.fromkeys(("acl", "policy", "credential", "deletion", "delete_profile", "tags", "spec"), UNKNOWN)

    for kind in (WAREHOUSE, DEPLOYMENT, ROLE_POLICY, BUCKET):
        assert tested.find(resource(kind, **unknown)) == []


def test_trials_may_have_keys_and_purge() -> None:
    trial = {"credential": {"type": "access-key"}, "deletion": "purge"}

    assert find_violations(warehouse(**trial), trial=True) == {}
    assert set(find_violations(warehouse(**trial))) == {"static-credential", "unprotected-warehouse"}


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:8181", "http://localhost:8181", "http://[::1]:8181"])
def test_server_behind_a_port_forward_is_no_trial(endpoint: str) -> None:
    """docs/guides/platform.md recommends a port-forward for production: an address says nothing about a trial."""
    checked = warehouse(credential={"type": "access-key"}, deletion="purge", server={"endpoint": endpoint})

    assert set(find_violations(checked)) == {"static-credential", "unprotected-warehouse"}


def test_jobs_of_cron_jobs_are_checked() -> None:
    pod = {"containers": [{"name": "job", "image": "registry.example/jobs:1", "securityContext": {"privileged": True}}]}
    cron = {"jobTemplate": {"spec": {"template": {"spec": pod}}}}

    assert {"pod-with-privileges", "image-without-digest"} == set(
        find_violations(resource("kubernetes:batch/v1:CronJob", spec=cron))
    )


def test_bucket_settings_belong_by_name_or_dependency() -> None:
    bucket = resource(BUCKET, bucket="lake")
    kinds = (BLOCK, "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration")
    by_name = [resource(kind, bucket="lake") for kind in kinds]
    by_dependency = [
        CheckedResource(kind, "it", "urn:of:it", {"bucket": UNKNOWN}, {"bucket": (bucket.urn,)}) for kind in kinds
    ]
    of_others = [resource(kind, bucket="other") for kind in kinds]

    def names(resources: list[CheckedResource]) -> list[str]:
        return [rule.name for rule in STACK_RULES for _ in rule.check(resources)]

    assert names([bucket, *by_name]) == []
    assert names([bucket, *by_dependency]) == []
    assert names([bucket, *of_others]) == ["bucket-without-public-access-block", "unencrypted-bucket"]
