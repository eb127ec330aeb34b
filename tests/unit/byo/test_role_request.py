"""What the owner of a bucket is asked to make: policies by the rules of `aws`, as JSON, Terraform, CloudFormation."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from lakewright.aws.access import access_policy, trust_policy
from lakewright.aws.role_request import RoleRequest, permission_policy
from lakewright.aws.role_request_formats import RequestFormat, render

REGION = "us-west-2"
PREFIXES = ("acme/executions", "acme/reports")


def request(**changes: Any) -> RoleRequest:
    fields: dict[str, Any] = {
        "tenant": "acme",
        "storage": "own",
        "bucket": "acme-own",
        "region": REGION,
        "key_prefixes": PREFIXES[:1],
        "external_id": "0b6a7bd1-5a3f-4a09-9f4d-9a1d5d7f2c11",
        "principal_arn": "arn:aws:iam::123456789012:role/lakekeeper",
    }
    return RoleRequest(**fields | changes)


def test_one_prefix_has_the_policies_of_a_warehouse_role() -> None:
    role_request = request()

    assert role_request.permissions == access_policy("acme-own", PREFIXES[0], region=REGION)
    assert role_request.trust == trust_policy(role_request.principal_arn, role_request.external_id)


def test_several_prefixes_are_merged_by_statement() -> None:
    statements = {item["Sid"]: item for item in request(key_prefixes=PREFIXES).permissions["Statement"]}

    assert statements["WarehouseObjects"]["Resource"] == [f"arn:aws:s3:::acme-own/{prefix}/*" for prefix in PREFIXES]
    listing = statements["WarehouseListing"]
    assert listing["Resource"] == "arn:aws:s3:::acme-own"
    assert listing["Condition"] == {"StringLike": {"s3:prefix": [f"{prefix}/*" for prefix in PREFIXES]}}


def test_without_deletion_only_validation_probes_are_deleted() -> None:
    policy = permission_policy("acme-own", PREFIXES, region=REGION, may_delete=False)

    deleting = [item for item in policy["Statement"] if "s3:DeleteObject" in item["Action"]]
    assert [item["Resource"] for item in deleting] == [
        [f"arn:aws:s3:::acme-own/{prefix}/*/metadata/test" for prefix in PREFIXES]
    ]


def test_terraform_holds_both_policies() -> None:
    text = render(request(), RequestFormat.TERRAFORM)

    documents = [json.loads(document) for document in re.findall(r"jsonencode\((\{.*?\n  \})\)", text, re.DOTALL)]
    assert documents == [request().trust, request().permissions]
    assert 'path                 = "/lakewright/"' in text


def test_terraform_escapes_templates() -> None:
    text = render(request(key_prefixes=("a${*}b",)), RequestFormat.TERRAFORM)

    assert "a$${*}b" in text
    assert not re.search(r"(?<!\$)\$\{", text)


@pytest.mark.parametrize("may_delete", [True, False])
def test_cloudformation_holds_both_policies(may_delete: bool) -> None:  # noqa: FBT001 - a parameter of the test
    role_request = request(may_delete=may_delete)

    template = json.loads(render(role_request, RequestFormat.CLOUDFORMATION))

    role = template["Resources"]["LakewrightRole"]["Properties"]
    assert role["AssumeRolePolicyDocument"] == role_request.trust
    assert role["Policies"][0]["PolicyDocument"] == role_request.permissions
    assert (role["Path"], role["RoleName"]) == ("/lakewright/", "lakewright.acme.own")


def test_role_allows_the_longest_session() -> None:
    role_request = request(session_seconds=7200)

    template = json.loads(render(role_request, RequestFormat.CLOUDFORMATION))
    assert template["Resources"]["LakewrightRole"]["Properties"]["MaxSessionDuration"] == 7200
    assert "max_session_duration = 7200" in render(role_request, RequestFormat.TERRAFORM)
    assert json.loads(render(role_request, RequestFormat.JSON))["max_session_seconds"] == 7200
