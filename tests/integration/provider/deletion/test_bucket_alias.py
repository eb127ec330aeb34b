"""Aliases of KMS keys: buckets `a.b` and `a-b` would have one alias, which has the key of the first."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from lakewright.aws.existing import ExistingObjects
from lakewright.environment.environment import AwsAccount
from lakewright.lakekeeper.buckets.bucket_key import describe_key, end_key, name_alias
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.errors import BucketRefusedError
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.ownership import running_stack
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.conftest import AwsClient
from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.stand_in("makes KMS keys")


@pytest.fixture
def similar_buckets(sandbox: Sandbox, unique: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Props, Props]:
    """Two buckets whose names differ only in `.` and `-`, for an identity that may do everything."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sandbox.admin.secret_access_key.get_secret_value())
    location = {"region": sandbox.aws.region, "endpoint": sandbox.aws.endpoint}
    return {"bucket": f"lake-{unique}"} | location, {"bucket": f"lake.{unique}"} | location


def make_key(aws: AwsClient, bucket: str) -> str:
    """Make the key of a bucket with its alias, as the `aws` plugin does. Return its id."""
    key_id: str = aws("kms").create_key(Description=describe_key(bucket))["KeyMetadata"]["KeyId"]
    aws("kms").create_alias(AliasName=name_alias(bucket), TargetKeyId=key_id)
    return key_id


def preview_record(server: Props, tenant: str, *buckets: Props) -> str:
    """Return the operation of the preview of a new tenant's record, whose buckets have keys of the stack."""
    record = Resource(TenantRecordProvider())
    storages = {f"storage-{index}": bucket | {"has_own_key": True} for index, bucket in enumerate(buckets)}
    props = {"server": server, "tenant": tenant, "warehouses": {}, "buckets": storages}
    return running_stack.run_as_stack("lakewright", "acme", lambda: record.preview(**props))


def test_alias_of_another_buckets_key_is_refused(
    similar_buckets: tuple[Props, Props], aws: AwsClient, server: Props, unique: str
) -> None:
    first, second = similar_buckets
    make_key(aws, first["bucket"])

    assert preview_record(server, unique, first) == "create"
    names = rf"bucket `{second['bucket']}` .* which the key of bucket `{first['bucket']}` has"
    with pytest.raises(BucketRefusedError, match=names):
        preview_record(server, unique, second)


def test_two_new_keys_with_one_alias_are_refused(
    similar_buckets: tuple[Props, Props], server: Props, unique: str
) -> None:
    with pytest.raises(BucketRefusedError, match=rf"would have the alias `alias/lake-{unique}`"):
        preview_record(server, unique, *similar_buckets)


def test_recorded_key_is_not_compared_again(
    similar_buckets: tuple[Props, Props], aws: AwsClient, server: Props, unique: str
) -> None:
    """The alias has changed its target outside the stack. The key of the state has no other alias."""
    first, second = similar_buckets
    record = Resource(TenantRecordProvider())
    props: Any = {"server": server, "tenant": unique, "warehouses": {}}
    props["buckets"] = {"main": second | {"has_own_key": True}}
    running_stack.run_as_stack("lakewright", "acme", lambda: record.up(**props))
    make_key(aws, first["bucket"])

    assert running_stack.run_as_stack("lakewright", "acme", lambda: record.preview(**props)) == "same"
    running_stack.run_as_stack("lakewright", "acme", record.destroy)


def test_deleted_key_leaves_the_alias_of_another_key(similar_buckets: tuple[Props, Props], aws: AwsClient) -> None:
    first, second = similar_buckets
    kms, first_key = aws("kms"), make_key(aws, first["bucket"])
    second_key = kms.create_key(Description=describe_key(second["bucket"]))["KeyMetadata"]["KeyId"]

    end_key(OwnBucket(**second), second_key)

    assert kms.describe_key(KeyId=second_key)["KeyMetadata"]["KeyState"] == "PendingDeletion"
    assert kms.describe_key(KeyId=name_alias(first["bucket"]))["KeyMetadata"]["KeyId"] == first_key
    end_key(OwnBucket(**first), first_key)
    assert name_alias(first["bucket"]) not in [alias["AliasName"] for alias in kms.list_aliases()["Aliases"]]


def test_key_of_another_bucket_is_not_adopted(
    sandbox: Sandbox, similar_buckets: tuple[Props, Props], aws: AwsClient
) -> None:
    first, second = similar_buckets
    make_key(aws, first["bucket"])
    existing = ExistingObjects(AwsAccount(endpoint=sandbox.aws.endpoint), sandbox.aws.region)

    with pytest.raises(pulumi.RunError, match=rf"encrypts bucket `{first['bucket']}` and cannot be adopted"):
        existing.key(name_alias(second["bucket"]), second["bucket"], "acme")
