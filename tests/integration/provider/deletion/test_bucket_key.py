"""Search for objects of a bucket that need its key: every object, page by page, up to a limit."""

from __future__ import annotations

import pytest
from lakewright.deletions.retention_report import is_key_kept
from lakewright.lakekeeper.buckets import bucket_key
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.conftest import AwsClient


@pytest.fixture
def own_bucket(sandbox: Sandbox, bucket: str, aws: AwsClient, monkeypatch: pytest.MonkeyPatch) -> OwnBucket:
    """A bucket with five unencrypted objects, two on each page."""
    monkeypatch.setattr(bucket_key, "PAGE", 2)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sandbox.admin.secret_access_key.get_secret_value())
    aws("s3").put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for number in range(5):
        aws("s3").put_object(Bucket=bucket, Key=f"plain-{number}", Body=b"1")
    return OwnBucket(bucket=bucket, region=sandbox.aws.region, endpoint=sandbox.aws.endpoint)


def test_encrypted_object_on_a_later_page_is_found(own_bucket: OwnBucket, aws: AwsClient) -> None:
    key = aws("kms").create_key()["KeyMetadata"]["KeyId"]
    encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
    aws("s3").put_object(Bucket=own_bucket.bucket, Key="z-encrypted", Body=b"1", **encryption)
    assert bucket_key.find_encrypted_object(own_bucket) == "z-encrypted"


def test_bucket_without_encrypted_objects_is_read_whole(own_bucket: OwnBucket) -> None:
    assert bucket_key.find_encrypted_object(own_bucket) is None


@pytest.mark.parametrize(("limit", "is_refused"), [(4, True), (5, False)])
def test_more_objects_than_the_limit_are_an_error(
    own_bucket: OwnBucket, monkeypatch: pytest.MonkeyPatch, limit: int, *, is_refused: bool
) -> None:
    monkeypatch.setattr(bucket_key, "MAX_CHECKED_OBJECTS", limit)
    if is_refused:
        with pytest.raises(CannotCountError, match=f"holds more than {limit} objects and versions"):
            bucket_key.find_encrypted_object(own_bucket)
    else:
        assert bucket_key.find_encrypted_object(own_bucket) is None


@pytest.mark.parametrize(("verb", "expected"), [("up", False), ("destroy", True)])
def test_destroy_keeps_the_default_key_of_a_bucket(
    own_bucket: OwnBucket, aws: AwsClient, verb: str, *, expected: bool
) -> None:
    """An `up` that removes a key has changed how the bucket encrypts new objects."""
    key = aws("kms").create_key()["KeyMetadata"]["KeyId"]
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": default}]}
    aws("s3").put_bucket_encryption(Bucket=own_bucket.bucket, ServerSideEncryptionConfiguration=rules)

    assert is_key_kept(verb, own_bucket.props() | {"key_id": key}) is expected


def test_key_of_encrypted_objects_is_kept(own_bucket: OwnBucket, aws: AwsClient) -> None:
    key = aws("kms").create_key()["KeyMetadata"]["KeyId"]
    encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
    aws("s3").put_object(Bucket=own_bucket.bucket, Key="encrypted", Body=b"1", **encryption)

    assert is_key_kept("up", own_bucket.props() | {"key_id": key})
