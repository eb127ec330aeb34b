"""Policy documents: which are valid, and the messages about those that are not."""

import json
from typing import Any

import pytest
from lakewright_sandbox.policies.document import MalformedPolicyError, PolicyKind, parse

ALLOW: dict[str, Any] = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
TRUST: dict[str, Any] = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "123456789012"}}


def document(statement: Any, **more: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statement, **more})


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("identity", ALLOW),
        ("identity", [ALLOW, {**ALLOW, "Effect": "Deny"}]),
        ("resource", {**ALLOW, "Principal": "*", "Sid": "Public"}),
        ("resource", {**ALLOW, "NotPrincipal": {"AWS": ["arn:aws:iam::123456789012:root"]}}),
        ("trust", TRUST),
        ("trust", {**TRUST, "Principal": {"Service": "ec2.amazonaws.com"}}),
        ("identity", {"Effect": "Allow", "NotAction": "iam:*", "NotResource": "arn:aws:s3:::b"}),
        ("identity", {**ALLOW, "Condition": {"Bool": {"aws:SecureTransport": True}}}),
    ],
)
def test_valid_policies(kind: PolicyKind, statement: Any) -> None:
    assert parse(document(statement), kind).statements


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("identity", "{", "Syntax errors"),
        ("identity", "[]", "JSON object"),
        ("identity", document(ALLOW, Wersion="x"), "Wersion"),
        ("identity", json.dumps({"Version": "2020-01-01", "Statement": ALLOW}), "Version"),
        ("identity", json.dumps({"Version": "2012-10-17"}), "Statement"),
        ("identity", document([]), "Statement"),
        ("identity", document({**ALLOW, "Effect": "Permit"}), "Effect"),
        ("identity", document({**ALLOW, "Actions": "s3:*"}), "Actions"),
        ("identity", document({**ALLOW, "NotAction": "s3:*"}), "either Action or NotAction"),
        ("identity", document({**ALLOW, "Action": []}), "must not be empty"),
        ("identity", document({**ALLOW, "Action": "GetObject"}), "vendor"),
        ("identity", document({**ALLOW, "Resource": "bucket"}), "ARN format"),
        ("identity", document({"Effect": "Allow", "Action": "s3:*"}), "either Resource or NotResource"),
        ("identity", document({**ALLOW, "Principal": "*"}), "should not specify a principal"),
        ("identity", document({**ALLOW, "Condition": {"Sounds": {"aws:username": "a"}}}), "Condition type: Sounds"),
        ("identity", document({**ALLOW, "Condition": ["Bool"]}), "Condition"),
        ("resource", document(ALLOW), "Principal"),
        ("resource", document({**ALLOW, "Principal": {"AWS": "arn:aws:iam::1:role/*"}}), "Invalid principal"),
        ("resource", document({**ALLOW, "Principal": {"Aws": "*"}}), "Invalid principal"),
        ("trust", document({**TRUST, "Resource": "*"}), "prohibited field Resource"),
    ],
)
def test_invalid_policies(kind: PolicyKind, text: str, expected: str) -> None:
    with pytest.raises(MalformedPolicyError, match=expected):
        parse(text, kind)
