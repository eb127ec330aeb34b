"""The role of a request as JSON policies, as Terraform and as a CloudFormation template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from lakewright.aws.role_request import RoleRequest
from lakewright.names.object_names import ROLE_PATH

POLICY_NAME = "lakewright"


class RequestFormat(StrEnum):
    """Forms of a request for a role."""

    JSON = "json"
    TERRAFORM = "terraform"
    CLOUDFORMATION = "cloudformation"


def render(request: RoleRequest, request_format: RequestFormat) -> str:
    """Return the request in a format. It contains the external ID."""
    return _RENDERERS[request_format](request)


def to_json(request: RoleRequest) -> str:
    """Return the names and both policies as JSON."""
    document = {
        "role_name": request.role,
        "role_path": ROLE_PATH,
        "bucket": request.bucket,
        "key_prefixes": list(request.key_prefixes),
        "principal_arn": request.principal_arn,
        "external_id": request.external_id,
        "max_session_seconds": request.session_seconds,
        "trust_policy": request.trust,
        "permission_policy": request.permissions,
    }
    return json.dumps(document, indent=2)


def to_terraform(request: RoleRequest) -> str:
    """Return the role as a Terraform configuration with the output `role_arn`."""
    name = _identifier(request.role)
    return f"""\
resource "aws_iam_role" "{name}" {{
  name                 = {_hcl(request.role)}
  path                 = {_hcl(ROLE_PATH)}
  max_session_duration = {request.session_seconds}
  assume_role_policy   = jsonencode({_indent(_hcl(request.trust))})
}}

resource "aws_iam_role_policy" "{name}" {{
  name   = {_hcl(POLICY_NAME)}
  role   = aws_iam_role.{name}.id
  policy = jsonencode({_indent(_hcl(request.permissions))})
}}

output "role_arn" {{
  value = aws_iam_role.{name}.arn
}}"""


def to_cloudformation(request: RoleRequest) -> str:
    """Return the role as a CloudFormation template with the output `RoleArn`. It needs CAPABILITY_NAMED_IAM."""
    role = {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "RoleName": request.role,
            "Path": ROLE_PATH,
            "MaxSessionDuration": request.session_seconds,
            "AssumeRolePolicyDocument": request.trust,
            "Policies": [{"PolicyName": POLICY_NAME, "PolicyDocument": request.permissions}],
        },
    }
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"Access of Lakekeeper to the warehouses of tenant {request.tenant} in bucket {request.bucket}",
        "Resources": {"LakewrightRole": role},
        "Outputs": {"RoleArn": {"Value": {"Fn::GetAtt": ["LakewrightRole", "Arn"]}}},
    }
    return json.dumps(template, indent=2)


_RENDERERS: Mapping[RequestFormat, Callable[[RoleRequest], str]] = {
    RequestFormat.JSON: to_json,
    RequestFormat.TERRAFORM: to_terraform,
    RequestFormat.CLOUDFORMATION: to_cloudformation,
}


def _identifier(text: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in text)


def _hcl(value: Any) -> str:
    """Return a value as an expression of Terraform: JSON in which templates are escaped."""
    return json.dumps(value, indent=2).replace("${", "$${").replace("%{", "%%{")


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")
