"""A bucket for states, in the sandbox's S3."""

from __future__ import annotations

import uuid
from typing import Any

import boto3
import pytest
from lakewright_sandbox.runtime.state import Sandbox


@pytest.fixture
def s3(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a client of the sandbox's S3, whose key is in the environment, as for the Pulumi CLI."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sandbox.admin.secret_access_key.get_secret_value())
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return boto3.client("s3", endpoint_url=sandbox.aws.endpoint, region_name="us-east-1")


@pytest.fixture
def bucket(s3: Any) -> str:
    """Make a bucket of this test."""
    name = f"states-{uuid.uuid4()}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture
def bucket_url(sandbox: Sandbox, bucket: str) -> str:
    """Return the URL of a backend in the bucket."""
    return f"s3://{bucket}/team/states?region=us-east-1&endpoint={sandbox.aws.endpoint}&s3ForcePathStyle=true"
