"""Keys that may use one bucket of the sandbox's store alone, as two stores have them."""

from __future__ import annotations

import json
import uuid

import boto3
import pytest
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog.auth import S3Keys


def create_bucket_key(sandbox: Sandbox, bucket: str, monkeypatch: pytest.MonkeyPatch) -> S3Keys:
    """Create a user with access to one bucket, and return references to its key."""
    admin, name = sandbox.admin, f"bucket-{uuid.uuid4().hex[:8]}"
    iam = boto3.client(
        "iam",
        endpoint_url=sandbox.aws.endpoint,
        region_name=sandbox.aws.region,
        aws_access_key_id=admin.access_key_id,
        aws_secret_access_key=admin.secret_access_key.get_secret_value(),
    )
    resources = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": resources}
    iam.create_user(UserName=name)
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=name, PolicyName="bucket", PolicyDocument=policy)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    variable = name.upper().replace("-", "_")
    monkeypatch.setenv(f"{variable}_ID", key["AccessKeyId"])
    monkeypatch.setenv(f"{variable}_SECRET", key["SecretAccessKey"])
    return S3Keys(access_key_id=f"env:{variable}_ID", secret_access_key=f"env:{variable}_SECRET")
