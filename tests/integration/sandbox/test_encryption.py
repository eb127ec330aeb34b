"""Encrypted objects: reading and writing them needs rights on the key, too."""

from typing import Any

import pytest

from tests.integration.sandbox.conftest import Aws, allow, expect_refusal


@pytest.fixture
def key(aws: Aws) -> str:
    return aws.client("kms").create_key()["KeyMetadata"]["Arn"]


@pytest.fixture
def bucket(aws: Aws, key: str) -> str:
    name = aws.bucket()
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    aws.client("s3").put_bucket_encryption(
        Bucket=name,
        ServerSideEncryptionConfiguration={"Rules": [{"ApplyServerSideEncryptionByDefault": default}]},
    )
    aws.client("s3").put_object(Bucket=name, Key="there", Body=b"x")
    return name


def user(aws: Aws, *statements: dict[str, Any]) -> Any:
    _, credentials = aws.user(allow("s3:*"), *statements)
    return aws.client("s3", credentials)


def test_writing_needs_a_data_key(aws: Aws, bucket: str, key: str) -> None:
    with expect_refusal("AccessDenied", "kms:GenerateDataKey"):
        user(aws, allow("kms:Decrypt", key)).put_object(Bucket=bucket, Key="new", Body=b"x")
    assert user(aws, allow("kms:GenerateDataKey", key)).put_object(Bucket=bucket, Key="new", Body=b"x")


def test_reading_needs_decryption_by_this_key(aws: Aws, bucket: str, key: str) -> None:
    other = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    with expect_refusal("AccessDenied", "kms:Decrypt"):
        user(aws, allow("kms:Decrypt", other)).get_object(Bucket=bucket, Key="there")
    assert user(aws, allow("kms:Decrypt", key)).get_object(Bucket=bucket, Key="there")["Body"].read() == b"x"


def test_an_upload_in_parts_needs_both(aws: Aws, bucket: str, key: str) -> None:
    with expect_refusal("AccessDenied", "kms:Decrypt"):
        user(aws, allow("kms:GenerateDataKey", key)).create_multipart_upload(Bucket=bucket, Key="parts")
    both = user(aws, allow(["kms:GenerateDataKey", "kms:Decrypt"], key))
    assert both.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]


def test_objects_without_a_key_need_no_kms_rights(aws: Aws) -> None:
    plain = aws.bucket()
    client = user(aws)
    client.put_object(Bucket=plain, Key="a", Body=b"x")
    assert client.get_object(Bucket=plain, Key="a")["Body"].read() == b"x"


def test_calls_to_kms_are_decided_by_the_callers_policies(aws: Aws, key: str) -> None:
    _, credentials = aws.user(allow("kms:DescribeKey", key))
    kms = aws.client("kms", credentials)
    assert kms.describe_key(KeyId=key.rpartition("/")[2])["KeyMetadata"]["Arn"] == key
    with expect_refusal("AccessDeniedException", "kms:ScheduleKeyDeletion"):
        kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)


def test_another_key_policy_than_the_default_is_refused_by_name(aws: Aws, key: str) -> None:
    with expect_refusal("UnsupportedOperationException", "default policy only"):
        aws.client("kms").put_key_policy(KeyId=key, PolicyName="default", Policy="{}")


def test_s3_passes_service_and_object_to_kms(aws: Aws, bucket: str, key: str) -> None:
    """`kms:ViaService` and the encryption context; a call to KMS itself has neither."""
    via = {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}
    inside = {"StringLike": {"kms:EncryptionContext:aws:s3:arn": f"arn:aws:s3:::{bucket}/there*"}}
    allowed = user(aws, allow("kms:Decrypt", key) | {"Condition": via | inside})
    elsewhere = {"StringLike": {"kms:EncryptionContext:aws:s3:arn": "arn:aws:s3:::other/*"}}

    assert allowed.get_object(Bucket=bucket, Key="there")["Body"].read() == b"x"
    with expect_refusal("AccessDenied", "kms:Decrypt"):
        user(aws, allow("kms:Decrypt", key) | {"Condition": elsewhere}).get_object(Bucket=bucket, Key="there")
    _, credentials = aws.user(allow("kms:DescribeKey", key) | {"Condition": via})
    with expect_refusal("AccessDeniedException", "kms:DescribeKey"):
        aws.client("kms", credentials).describe_key(KeyId=key)


def test_with_a_bucket_key_the_context_is_the_bucket(aws: Aws, key: str) -> None:
    name = aws.bucket()
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    rule = {"ApplyServerSideEncryptionByDefault": default, "BucketKeyEnabled": True}
    aws.client("s3").put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": [rule]})
    both = ["kms:GenerateDataKey", "kms:Decrypt"]

    def with_context(resource: str) -> Any:
        condition = {"StringEquals": {"kms:EncryptionContext:aws:s3:arn": resource}}
        return user(aws, allow(both, key) | {"Condition": condition})

    with_context(f"arn:aws:s3:::{name}").put_object(Bucket=name, Key="there", Body=b"x")
    assert with_context(f"arn:aws:s3:::{name}").get_object(Bucket=name, Key="there")["Body"].read() == b"x"
    with expect_refusal("AccessDenied", "kms:Decrypt"):
        with_context(f"arn:aws:s3:::{name}/there").get_object(Bucket=name, Key="there")


CUSTOMER_KEY = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "k" * 32}


def set_blocked_type(aws: Aws, bucket: str, kind: str) -> None:
    rule = {
        "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"},
        "BlockedEncryptionTypes": {"EncryptionType": [kind]},
    }
    aws.client("s3").put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})


def read_blocked_types(aws: Aws, bucket: str) -> list[str]:
    (rule,) = aws.client("s3").get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    return rule["BlockedEncryptionTypes"]["EncryptionType"]


def test_new_buckets_block_keys_of_customers(aws: Aws) -> None:
    bucket = aws.bucket()
    client = user(aws)

    with expect_refusal("AccessDenied", "blocks uploads with the encryption type SSE-C"):
        client.put_object(Bucket=bucket, Key="a", Body=b"x", **CUSTOMER_KEY)
    with expect_refusal("AccessDenied", "blocks uploads with the encryption type SSE-C"):
        client.create_multipart_upload(Bucket=bucket, Key="a", **CUSTOMER_KEY)
    client.put_object(Bucket=bucket, Key="a", Body=b"x")
    with expect_refusal("AccessDenied", "blocks uploads with the encryption type SSE-C"):
        client.copy_object(Bucket=bucket, Key="b", CopySource=f"{bucket}/a", **CUSTOMER_KEY)


def test_keys_of_customers_can_be_allowed_and_blocked_again(aws: Aws) -> None:
    bucket = aws.bucket()
    set_blocked_type(aws, bucket, "NONE")

    assert read_blocked_types(aws, bucket) == ["NONE"]
    user(aws).put_object(Bucket=bucket, Key="a", Body=b"x", **CUSTOMER_KEY)

    set_blocked_type(aws, bucket, "SSE-C")
    assert read_blocked_types(aws, bucket) == ["SSE-C"]
    with expect_refusal("AccessDenied", "SSE-C"):
        user(aws).put_object(Bucket=bucket, Key="b", Body=b"x", **CUSTOMER_KEY)
    assert user(aws).get_object(Bucket=bucket, Key="a", **CUSTOMER_KEY)["Body"].read() == b"x"
