"""Programs with AWS objects of the sandbox, and clients to inspect them."""

from __future__ import annotations

import json
from typing import Any

import boto3

TRUST, RIGHTS = (
    json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})
    for statement in (
        {"Action": "sts:AssumeRole", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}},
        {"Action": "s3:ListAllMyBuckets", "Resource": "*"},
    )
)


def stack_program(sandbox: object) -> str:
    aws, admin = sandbox.aws, sandbox.admin  # type: ignore[attr-defined]
    return f"""
import pulumi
import pulumi_aws as aws
url = "{aws.endpoint}"
provider = aws.Provider("sandbox", region="{aws.region}", access_key="{admin.access_key_id}",
    secret_key="{admin.secret_access_key.get_secret_value()}", s3_use_path_style=True,
    endpoints=[aws.ProviderEndpointArgs(s3=url, iam=url, sts=url)])
opts = pulumi.ResourceOptions(provider=provider)
"""


def client(sandbox: object, service: str) -> Any:
    aws, admin = sandbox.aws, sandbox.admin  # type: ignore[attr-defined]
    return boto3.client(
        service,
        endpoint_url=aws.endpoint,
        region_name=aws.region,
        aws_access_key_id=admin.access_key_id,
        aws_secret_access_key=admin.secret_access_key.get_secret_value(),
    )
