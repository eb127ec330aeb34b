"""A bucket that the stack has made."""

from __future__ import annotations

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.resource import Props


@pytest.fixture
def own_bucket(sandbox: Sandbox, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Props:
    """Properties of the test's bucket, declared as created by the stack."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sandbox.admin.secret_access_key.get_secret_value())
    return {"bucket": bucket, "region": sandbox.aws.region, "endpoint": sandbox.aws.endpoint}
