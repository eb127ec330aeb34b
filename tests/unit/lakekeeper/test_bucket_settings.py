"""Settings of buckets in one spelling."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.lakekeeper.buckets import bucket_settings

STATEMENT = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::lake/*"}


def policy(**changes: Any) -> str:
    document = {"Version": "2012-10-17", "Statement": [STATEMENT | changes]}
    return bucket_settings.policy_text(json.dumps(document))


@pytest.mark.parametrize(
    "spelling",
    [
        {"Action": ["s3:GetObject"]},
        {"Principal": {"AWS": "*"}},
        {"Principal": {"AWS": ["*"]}, "Resource": ["arn:aws:s3:::lake/*"], "Sid": "", "Condition": {}},
    ],
)
def test_same_policy_in_another_spelling(spelling: dict[str, Any]) -> None:
    assert policy(**spelling) == policy()


@pytest.mark.parametrize("change", [{"Effect": "Deny"}, {"Action": "s3:*"}, {"Principal": {"AWS": ["someone"]}}])
def test_other_policy_differs(change: dict[str, Any]) -> None:
    assert policy(**change) != policy()


def test_condition_values_keep_their_case() -> None:
    by_prefix = [policy(Condition={"StringLike": {"s3:prefix": prefix}}) for prefix in ("Tenant/*", "tenant/*")]

    assert by_prefix[0] != by_prefix[1]
    assert policy(Condition={"Bool": {"aws:SecureTransport": False}}) == policy(
        Condition={"Bool": {"aws:SecureTransport": ["false"]}}
    )


def test_lifecycle_as_minio_answers_it() -> None:
    expiration = {"NoncurrentVersionExpiration": {"NoncurrentDays": 7}}
    responses = [{"ID": "old-versions", "Status": "Enabled", **scope, **expiration} for scope in ({}, {"Filter": {}})]

    assert {bucket_settings.lifecycle_text([response]) for response in responses} == {bucket_settings.lifecycle(7)}
    assert bucket_settings.lifecycle_text([]) is None
    narrower = responses[0] | {"Filter": {"Prefix": "acme/"}}
    assert bucket_settings.lifecycle_text([narrower]) != bucket_settings.lifecycle(7)
