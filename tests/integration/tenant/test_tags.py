"""Tags that AWS refuses: by a tag policy of the organization, and by the limit of tags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.tenant.conftest import MakeTenant
from tests.tag_policies import attach_tag_policy

pytestmark = [pytest.mark.timeout(300), pytest.mark.stand_in("makes buckets, keys and roles on AWS")]


@pytest.fixture
def open_client(sandbox: Sandbox) -> Any:
    """Return a function that opens a client of a service as the administrator of the account."""

    def open_service(service: str) -> Any:
        return boto3.client(
            service,  # type: ignore[call-overload]
            endpoint_url=sandbox.aws.endpoint,
            region_name=sandbox.aws.region,
            aws_access_key_id=sandbox.admin.access_key_id,
            aws_secret_access_key=sandbox.admin.secret_access_key.get_secret_value(),
        )

    return open_service


@pytest.fixture
def policies() -> Iterator[ExitStack]:
    """Attached policies, which the test or its end detaches."""
    with ExitStack() as stack:
        yield stack


def test_refused_tag_is_named_and_leaves_nothing(
    make_tenant: MakeTenant, open_client: Any, policies: ExitStack
) -> None:
    """`doctor` names the tag before AWS refuses it; `up` fails with one error, and succeeds after the correction."""
    store = {"backend": "aws", "encryption": {"kms": "own"}}
    tenant = make_tenant(labels={"stage": "test"})
    tenant.spec["storage"]["main"] |= store
    tenant.write()
    policies.enter_context(
        attach_tag_policy(open_client("organizations"), "stage", ["prod", "dev-*"], resources=["s3:bucket"])
    )

    findings = tenant.run("doctor").stdout
    refused = tenant.error("up", "--yes", "--engine", "embedded")

    assert "expected `prod` or `dev-*` in the tag `stage` of s3:bucket, found `test`" in " ".join(findings.split())
    sentence = "The tag policy does not allow the specified value for the following tag key: 'stage'"
    assert " ".join(refused.split()).count(sentence) == 1
    assert f"creating the bucket {tenant.bucket}" in " ".join(refused.split())
    assert "change the label or the tag" in " ".join(refused.split())
    assert tenant.bucket not in [bucket["Name"] for bucket in open_client("s3").list_buckets()["Buckets"]]

    tenant.spec["labels"] = {"stage": "dev-1"}
    tenant.write()
    tenant.up()
    tags = open_client("s3").get_bucket_tagging(Bucket=tenant.bucket)["TagSet"]
    assert {"Key": "stage", "Value": "dev-1"} in tags

    tenant.spec["labels"] = {"stage": "test"}
    tenant.write()
    assert sentence in " ".join(tenant.error("up", "--yes", "--engine", "embedded").split())
    assert open_client("s3").get_bucket_tagging(Bucket=tenant.bucket)["TagSet"] == tags

    policies.close()
    tenant.up()


def test_most_labels_fit_the_limit_of_aws(make_tenant: MakeTenant, open_client: Any) -> None:
    """With 45 labels, a bucket has 49 tags, and `adopt consent` may add one."""
    tenant = make_tenant(labels={f"label{number}": "x" for number in range(45)})

    tenant.up()
    assert len(open_client("s3").get_bucket_tagging(Bucket=tenant.bucket)["TagSet"]) == 49
