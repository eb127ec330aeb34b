"""Marks of buckets that cannot be read: an unknown owner is not `no owner`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from lakewright.lakekeeper.buckets import bucket_mark
from lakewright.lakekeeper.buckets.bucket_key import describe_key, name_alias
from lakewright.lakekeeper.buckets.bucket_removal import BucketRemovalProvider, remove_left_over
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.errors import BucketTagsDeniedError, CannotCountError, NotOwnedError
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.ownership import running_stack
from lakewright.ownership.mark import RECORD_TAG, STACK_TAG
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.conftest import AwsClient
from tests.integration.provider.resource import Props, Resource

REFUSAL = r"the owner of bucket `lake-.*` .* is not known: S3 responded AccessDenied .* Allow `s3:GetBucketTagging`"


@pytest.fixture
def own_bucket(sandbox: Sandbox, bucket: str, aws: AwsClient, unique: str, monkeypatch: pytest.MonkeyPatch) -> Props:
    """An empty bucket of another stack. The stack's identity may do everything but read its tags."""
    tags = [{"Key": STACK_TAG, "Value": "lakewright/other"}, {"Key": RECORD_TAG, "Value": "ffff"}]
    aws("s3").put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
    iam, user = aws("iam"), f"user-{unique}"
    iam.create_user(UserName=user)
    statements = [
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": "s3:GetBucketTagging", "Resource": "*"},
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_user_policy(UserName=user, PolicyName="p", PolicyDocument=document)
    key = iam.create_access_key(UserName=user)["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    return {"bucket": bucket, "region": sandbox.aws.region, "endpoint": sandbox.aws.endpoint}


@pytest.fixture
def admin_bucket(sandbox: Sandbox, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Props:
    """An empty bucket, for an identity that may do everything."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sandbox.admin.secret_access_key.get_secret_value())
    return {"bucket": bucket, "region": sandbox.aws.region, "endpoint": sandbox.aws.endpoint}


def run_as_stack(hook: Callable[[], Any]) -> Any:
    return running_stack.run_as_stack("lakewright", "acme", hook)


def list_tags(aws: AwsClient, bucket: str) -> dict[str, str]:
    tags = aws("s3").get_bucket_tagging(Bucket=bucket)["TagSet"]
    return {tag["Key"]: tag["Value"] for tag in tags}


def test_bucket_with_unreadable_tags_is_not_deleted(own_bucket: Props, aws: AwsClient, server: Props) -> None:
    removal, guard = Resource(BucketRemovalProvider()), Resource(DeletionGuardProvider())
    removal.up(**own_bucket)
    guard.up(server=server, warehouses={}, buckets=[own_bucket], record="0123")

    for delete in (guard.destroy, removal.destroy):
        with pytest.raises(BucketTagsDeniedError, match=REFUSAL):
            run_as_stack(delete)

    remove_left_over(OwnBucket(**own_bucket), "0123")
    aws("s3").head_bucket(Bucket=own_bucket["bucket"])


def test_up_stops_at_a_bucket_with_unreadable_tags(own_bucket: Props, server: Props, unique: str) -> None:
    """The `aws` plugin would change its policy. A bucket that is not in the state may be another account's."""
    record = Resource(TenantRecordProvider())
    tenant = {"server": server, "tenant": unique, "warehouses": {}, "buckets": {"main": own_bucket}}
    run_as_stack(lambda: record.up(**tenant))

    with pytest.raises(BucketTagsDeniedError, match=REFUSAL):
        run_as_stack(lambda: record.preview(**tenant))
    another = own_bucket | {"bucket": f"{own_bucket['bucket']}-2"}
    assert run_as_stack(lambda: record.preview(**tenant | {"buckets": {"main": another}})) == "update"
    run_as_stack(record.destroy)


def test_unreadable_bucket_does_not_hide_a_foreign_one(
    own_bucket: Props, aws: AwsClient, server: Props, unique: str
) -> None:
    """The tags of one bucket cannot be read, the tags of another can. Both buckets are new to the stack."""
    readable = f"lake-{unique}-2"
    aws("s3").create_bucket(Bucket=readable)
    aws("s3").put_bucket_tagging(Bucket=readable, Tagging={"TagSet": [{"Key": STACK_TAG, "Value": "lakewright/other"}]})
    iam, user = aws("iam"), f"user-{unique}"
    denied = {"Effect": "Deny", "Action": "s3:GetBucketTagging", "Resource": f"arn:aws:s3:::{own_bucket['bucket']}"}
    allowed = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [allowed, denied]})
    iam.put_user_policy(UserName=user, PolicyName="p", PolicyDocument=document)
    record = Resource(TenantRecordProvider())
    buckets = {"main": own_bucket, "more": own_bucket | {"bucket": readable}}

    with pytest.raises(NotOwnedError, match=rf"bucket `{readable}` .* belongs to stack `lakewright/other`"):
        run_as_stack(lambda: record.preview(server=server, tenant=unique, warehouses={}, buckets=buckets))


def test_consent_keeps_tags_that_cannot_be_read(own_bucket: Props, aws: AwsClient) -> None:
    before = list_tags(aws, own_bucket["bucket"])
    bucket = OwnBucket(**own_bucket)

    with pytest.raises((BucketTagsDeniedError, ClientError)):
        bucket_mark.write_mark(bucket, bucket_mark.find_marked_bucket(bucket).mark.permit("lakewright/acme"))

    assert list_tags(aws, own_bucket["bucket"]) == before


def test_left_over_bucket_is_removed_with_its_key(
    sandbox: Sandbox, bucket: str, aws: AwsClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs were killed before their key had an alias, and before `KeyRemoval`. Another stack's key is alike."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sandbox.admin.secret_access_key.get_secret_value())
    kms, mark = aws("kms"), {STACK_TAG: "lakewright/acme", RECORD_TAG: "0123"}
    tag_set = [{"Key": name, "Value": value} for name, value in mark.items()]
    aws("s3").put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tag_set})
    keys: list[str] = []
    for record in ("0123", "0123", "ffff"):
        tags = [{"TagKey": name, "TagValue": value} for name, value in (mark | {RECORD_TAG: record}).items()]
        keys.append(kms.create_key(Description=describe_key(bucket), Tags=tags)["KeyMetadata"]["KeyId"])
    kms.create_alias(AliasName=name_alias(bucket), TargetKeyId=keys[0])
    own_bucket = OwnBucket(bucket=bucket, region=sandbox.aws.region, endpoint=sandbox.aws.endpoint)

    run_as_stack(lambda: remove_left_over(own_bucket, "0123"))

    states = [kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] for key in keys]
    assert states == ["PendingDeletion", "PendingDeletion", "Enabled"]
    assert name_alias(bucket) not in [alias["AliasName"] for alias in kms.list_aliases()["Aliases"]]
    assert bucket not in [listed_bucket["Name"] for listed_bucket in aws("s3").list_buckets()["Buckets"]]


@pytest.mark.stand_in("looks up a role on AWS")
def test_only_a_run_that_keeps_all_continues_without_tags(
    admin_bucket: Props, server: Props, unique: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """S3 does not respond at all."""
    warehouse = {"bucket": admin_bucket["bucket"], "deletion": "purge", "key_prefix": "main"}
    record = Resource(TenantRecordProvider())
    tenant = {"server": server, "tenant": unique, "warehouses": {"main": warehouse}}
    record.up(**tenant, buckets={"main": admin_bucket})
    unreachable = {"buckets": {"main": admin_bucket | {"endpoint": "http://127.0.0.1:9"}}}
    record.inputs, record.outs = record.inputs | unreachable, record.outs | unreachable

    assert run_as_stack(lambda: record.preview(**tenant, **unreachable)) == "same"
    assert "could not compare the owner" in capsys.readouterr().err
    for risky_props in ({**tenant, "warehouses": {}}, {**tenant, "adopting": ["main"]}):
        with pytest.raises(CannotCountError, match="this run deletes or adopts objects whose owner is not known"):
            run_as_stack(lambda risky=risky_props: record.preview(**risky, **unreachable))


def test_purge_keeps_the_logs_of_another_stack(admin_bucket: Props, server: Props, aws: AwsClient) -> None:
    """The `aws` plugin deletes a log bucket with its contents after these resources, and compares nothing."""
    logs = f"{admin_bucket['bucket']}-logs"
    aws("s3").create_bucket(Bucket=logs)
    foreign_tags = [{"Key": STACK_TAG, "Value": "lakewright/other"}]
    aws("s3").put_bucket_tagging(Bucket=logs, Tagging={"TagSet": foreign_tags})
    removal, guard = Resource(BucketRemovalProvider()), Resource(DeletionGuardProvider())
    removal.up(**admin_bucket, log_bucket=logs)
    guard.up(server=server, warehouses={}, buckets=[admin_bucket | {"log_bucket": logs}], record="0123")

    for delete in (guard.destroy, removal.destroy):
        with pytest.raises(NotOwnedError, match=rf"bucket `{logs}` .* belongs to stack `lakewright/other`"):
            run_as_stack(delete)

    aws("s3").head_bucket(Bucket=admin_bucket["bucket"])


def test_interrupted_destroy_spares_a_namesakes_bucket(admin_bucket: Props, aws: AwsClient) -> None:
    """The guard is deleted already, so that only the resource knows the record id."""
    removal = Resource(BucketRemovalProvider())
    run_context.current().record_id = "0123"
    removal.up(**admin_bucket)
    run_context.start(run_context.current().next())
    namesake_tags = [{"Key": STACK_TAG, "Value": "lakewright/acme"}, {"Key": RECORD_TAG, "Value": "ffff"}]
    aws("s3").put_bucket_tagging(Bucket=admin_bucket["bucket"], Tagging={"TagSet": namesake_tags})

    with pytest.raises(NotOwnedError, match="a stack `lakewright/acme` in another backend"):
        run_as_stack(removal.destroy)

    aws("s3").head_bucket(Bucket=admin_bucket["bucket"])
