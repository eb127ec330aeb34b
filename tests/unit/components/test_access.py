"""Policy documents: exactly the rights that the catalog needs, without findings of a linter."""

from __future__ import annotations

import json
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from lakewright.aws.access import access_policy, trust_policy
from lakewright.aws.bucket import tls_only_policy
from lakewright.names.object_names import role_name

REGION = "us-west-2"
CATALOG = "arn:aws:iam::123456789012:role/lakekeeper"
KEY = "arn:aws:kms:us-west-2:123456789012:key/11111111-2222-3333-4444-555555555555"


def _findings(policy: dict[str, Any]) -> list[str]:
    return [str(finding) for finding in _linter()(json.dumps(policy)).findings]


def _linter() -> Any:
    """Return Parliament's findings. It needs `pkg_resources`, which setuptools no longer has, for two of its files."""
    places = ModuleType("pkg_resources")
    spec = find_spec("parliament")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    places.__dict__["resource_filename"] = lambda _package, name: str(folder / name)
    sys.modules.setdefault("pkg_resources", places)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from parliament import analyze_policy_string

    return analyze_policy_string


@pytest.mark.parametrize("key", [None, KEY])
def test_linter_finds_nothing_in_the_rights(key: str | None) -> None:
    assert _findings(access_policy("acme-lakehouse", "acme/executions", key, region=REGION)) == []


def test_linter_finds_a_right_on_the_wrong_resource() -> None:
    policy = access_policy("acme-lakehouse", "acme/executions", region=REGION)
    policy["Statement"][0]["Resource"] = "arn:aws:s3:::acme-lakehouse"

    assert _findings(policy)


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
    arns = [item["Resource"] for item in rights["Statement"]] + tls_only_policy("b", region)["Statement"][0]["Resource"]

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


def test_access_without_tls_is_denied() -> None:
    (statement,) = tls_only_policy("acme-lakehouse", REGION)["Statement"]

    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Resource"] == ["arn:aws:s3:::acme-lakehouse", "arn:aws:s3:::acme-lakehouse/*"]
    assert _findings(tls_only_policy("acme-lakehouse", REGION)) == []


def test_no_two_warehouses_share_a_role() -> None:
    assert role_name("a-b", "c") != role_name("a", "b-c")
    assert len(role_name("t" * 40, "w" * 12)) <= 64
