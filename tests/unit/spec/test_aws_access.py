"""Mistakes in the access to storage on AWS: roles, access logs, lifecycle and tags, each with its path."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.spec import SpecError, parse_spec
from lakewright.spec.checks.aws import find_longest_prefix
from lakewright_sandbox.lakekeeper.storage.s3_profile import S3ProfileBody
from lakewright_sandbox.lakekeeper.storage.vending import session_policy

ROLE = "arn:aws:iam::123456789012:role/consumer"
OWN = {"backend": "existing", "bucket": "lake", "region": "eu-west-1", "role_arn": f"{ROLE}-own"}
AWS = {"backend": "aws", "bucket": "acme-lakehouse"}


def small(warehouse: dict[str, Any], storage: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "environment": "here",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": storage,
        "warehouses": [{"name": "executions", **warehouse}],
    } | changes


def mistakes(spec: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        parse_spec(spec, "the test's spec")
    return {problem.path: problem.expected for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("warehouse", "path", "message"),
    [
        ({"shares": {"bi": {"principal_arn": "*"}}}, "shares.bi.principal_arn", "the ARN of a principal looks like"),
        ({"shares": {"bi": {"principal_arn": "arn:aws:iam::1:role/x"}}}, "shares.bi.principal_arn", "the ARN of"),
        ({"maintenance_role": {}}, "maintenance_role.principal_arn", "required"),
        ({"token_seconds": 899}, "token_seconds", "900"),
        ({"token_seconds": 43201}, "token_seconds", "43200"),
        (
            {"vending_role": True, "delegation": "remote-signing"},
            "vending_role",
            "expected only with `delegation: vended`",
        ),
        ({"token_seconds": 900, "delegation": "remote-signing"}, "token_seconds", "expected only with `delegation"),
        ({"lifecycle": {"noncurrent_version_days": 0}}, "lifecycle.noncurrent_version_days", "1"),
        ({"lifecycle": {"glacier_days": 1}}, "lifecycle.glacier_days", "unknown key"),
        ({"shares": {"B I": {"principal_arn": ROLE}}}, "shares.B I.[key]", "pattern"),
    ],
)
def test_mistake_in_a_warehouse(warehouse: dict[str, Any], path: str, message: str) -> None:
    problems = mistakes(small(warehouse, {"main": AWS}))

    assert list(problems) == [f"warehouses.0.{path}"]
    assert message in problems[f"warehouses.0.{path}"]


@pytest.mark.parametrize(
    "feature",
    [
        {"vending_role": True},
        {"maintenance_role": {"principal_arn": ROLE}},
        {"shares": {"bi": {"principal_arn": ROLE}}},
        {"lifecycle": {"noncurrent_version_days": 7}},
    ],
)
def test_roles_need_a_storage_whose_roles_are_made(feature: dict[str, Any]) -> None:
    problems = mistakes(small(feature, {"main": OWN}))

    assert list(problems) == [f"warehouses.0.{next(iter(feature))}"]


@pytest.mark.parametrize(
    ("logs", "path"),
    [
        ({"bucket": "acme-logs"}, "access_logs.owner"),
        ({"bucket": "Acme_Logs", "owner": "stack"}, "access_logs.bucket"),
        ({"bucket": "192.168.0.1", "owner": "stack"}, "access_logs.bucket"),
        ({"bucket": "sthree-logs", "owner": "stack"}, "access_logs.bucket"),
        ({"bucket": "acme-lakehouse", "owner": "stack"}, "access_logs.bucket"),
        ({"bucket": "acme-logs", "owner": "stack", "prefix": "no-slash"}, "access_logs.prefix"),
        ({"bucket": "acme-logs", "owner": "platform", "expire_days": 3}, "access_logs"),
        ({"bucket": "acme-logs", "owner": "platform", "deletion": "purge"}, "access_logs"),
    ],
)
def test_mistake_in_access_logs(logs: dict[str, Any], path: str) -> None:
    assert list(mistakes(small({}, {"main": AWS | {"access_logs": logs}}))) == [f"storage.main.{path}"]


def test_two_storages_do_not_make_one_log_bucket() -> None:
    logs = {"bucket": "acme-logs", "owner": "stack"}
    storage = {"a": AWS | {"access_logs": logs}, "b": AWS | {"bucket": "acme-other", "access_logs": logs}}

    assert list(mistakes(small({"storage": "a"}, storage))) == ["storage.b.access_logs.bucket"]


KEY = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("storage", "path"),
    [
        (AWS | {"region": "eu-west-1", "encryption": {"kms": "{key}"}}, "storage.main.encryption.kms"),
        (OWN | {"kms_key_arn": "{key}"}, "storage.main.kms_key_arn"),
    ],
)
@pytest.mark.parametrize(
    ("key", "message"),
    [
        (KEY.partition(":key/")[0] + ":alias/lake", "Policies of AWS know no aliases"),
        (KEY.replace("123456789012", ""), "the ARN of a KMS key looks like"),
        (KEY.replace("arn:aws:", "arn:x:"), "the ARN of a KMS key looks like"),
        (KEY.replace("eu-west-1", "us-west-2"), "expected a key of the bucket's region, eu-west-1; found one of us-w"),
    ],
)
def test_keys_that_policies_cannot_name(storage: dict[str, Any], path: str, key: str, message: str) -> None:
    document = json.loads(json.dumps(storage).replace("{key}", key))

    assert message in mistakes(small({}, {"main": document}))[path]


@pytest.mark.parametrize("key", [KEY, KEY.replace("key/", "key/mrk-"), KEY.replace("arn:aws:", "arn:aws-cn:")])
def test_keys_of_the_region(key: str) -> None:
    parse_spec(small({}, {"main": OWN | {"kms_key_arn": key}}), "the test's spec")


@pytest.mark.parametrize("storage", [AWS, OWN])
def test_prefixes_that_policies_cannot_have(storage: dict[str, Any]) -> None:
    for prefix in ("データ/売上", "acme/Łódź"):
        problems = mistakes(small({"key_prefix": prefix}, {"main": storage}))
        assert problems["warehouses.0.key_prefix"].startswith("expected characters up to U+00FF")
    signing = {"delegation": "remote-signing", "key_prefix": "p" * 896}
    parse_spec(small(signing, {"main": storage}), "the test's spec")


@pytest.mark.parametrize("letter", ["p", "é"])
@pytest.mark.parametrize("storage", [AWS, OWN, OWN | {"bucket": "l" * 63, "kms_key_arn": KEY}])
def test_longest_prefix_fits_the_session_policy(storage: dict[str, Any], letter: str) -> None:
    """The sandbox writes the policy of a table as Lakekeeper does, and a table has two levels below the prefix."""
    longest = find_longest_prefix(storage)
    lengths = [len(write_session_policy(storage, letter * length)) for length in (longest, longest + 1)]
    assert lengths[0] <= 2048 < lengths[1]

    parse_spec(small({"key_prefix": letter * 400}, {"main": storage}), "the test's spec")
    if longest < 896:
        problems = mistakes(small({"key_prefix": "p" * (longest + 1)}, {"main": storage}))
        assert problems["warehouses.0.key_prefix"].startswith(f"expected at most {longest} characters with")


def write_session_policy(storage: dict[str, Any], prefix: str) -> str:
    level = "01980000-0000-7000-8000-000000000001"
    profile = S3ProfileBody.model_construct(aws_kms_key_arn=storage.get("kms_key_arn"))
    return session_policy(profile, f"s3://{storage['bucket']}/{prefix}/{level}/{level}")


@pytest.mark.parametrize("bucket", ["xn--lake", "10.0.0.1", "lake-s3alias", "lake--x-s3"])
def test_bucket_name_that_aws_reserves(bucket: str) -> None:
    assert list(mistakes(small({}, {"main": AWS | {"bucket": bucket}}))) == ["storage.main.bucket"]


def test_owner_becomes_a_tag_on_aws() -> None:
    spec = small({}, {"main": AWS}, owner="Ann & Ben")

    assert "a tag on AWS has" in mistakes(spec)["owner"]
    assert parse_spec(spec | {"storage": {"main": OWN}}, "the test's spec")


def test_longest_role_of_a_warehouse_counts() -> None:
    spec = small({"shares": {"s" * 20: {"principal_arn": ROLE}}}, {"main": AWS})
    spec["name"] = "t" * 30

    assert "IAM allows 64" in mistakes(spec)["warehouses.0.name"]
