"""Bucket policies over HTTP: allowed and denied callers, and refused policies."""

import pytest

from .conftest import ACCOUNT, CATALOG_ARN, Aws, allow, policy, refused, trusts


@pytest.fixture
def bucket(aws: Aws) -> str:
    name = aws.bucket()
    aws.client("s3").put_object(Bucket=name, Key="a/1", Body=b"x")
    return name


def put(aws: Aws, bucket: str, *statements: dict[str, object]) -> None:
    aws.client("s3").put_bucket_policy(Bucket=bucket, Policy=policy(*statements))


def test_tls_only_does_not_lock_out_loopback(aws: Aws, bucket: str) -> None:
    both = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    insecure = {"Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    put(aws, bucket, {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": both, **insecure})
    s3 = aws.client("s3")
    assert s3.get_object(Bucket=bucket, Key="a/1")["Body"].read() == b"x"
    s3.put_object(Bucket=bucket, Key="a/2", Body=b"y")
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 2


def test_a_deny_holds_even_for_the_admin(aws: Aws, bucket: str) -> None:
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject", "Resource": f"arn:aws:s3:::{bucket}/*"}
    put(aws, bucket, deny)
    with refused("AccessDenied", "explicit deny in a resource-based policy"):
        aws.client("s3").delete_object(Bucket=bucket, Key="a/1")
    answer = aws.client("s3").delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a/1"}]})
    assert answer["Errors"][0]["Code"] == "AccessDenied"
    aws.client("s3").delete_bucket_policy(Bucket=bucket)
    aws.client("s3").delete_object(Bucket=bucket, Key="a/1")


def test_a_user_without_rights_gets_in_by_name(aws: Aws, bucket: str) -> None:
    (ann, ann_key), (_, bob_key) = aws.user(), aws.user()
    put(aws, bucket, allow("s3:GetObject", f"arn:aws:s3:::{bucket}/a/*", Principal={"AWS": ann}))
    assert aws.client("s3", ann_key).get_object(Bucket=bucket, Key="a/1")["Body"].read() == b"x"
    with refused():
        aws.client("s3", bob_key).get_object(Bucket=bucket, Key="a/1")


def test_a_role_gets_in_by_name_within_its_session_policy(aws: Aws, bucket: str) -> None:
    role = aws.role(trusts(CATALOG_ARN))
    put(aws, bucket, allow("s3:GetObject", f"arn:aws:s3:::{bucket}/*", Principal={"AWS": role}))
    assert aws.client("s3", aws.assume(role)).get_object(Bucket=bucket, Key="a/1")["Body"].read() == b"x"
    narrow = aws.assume(role, Policy=policy(allow("s3:GetObject", f"arn:aws:s3:::{bucket}/b/*")))
    with refused("AccessDenied", "no session policy allows"):
        aws.client("s3", narrow).get_object(Bucket=bucket, Key="a/1")


def test_only_one_role_may_write(aws: Aws, bucket: str) -> None:
    writer, other = (aws.role(trusts(CATALOG_ARN), allow("s3:*")) for _ in range(2))
    put(
        aws,
        bucket,
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:PutObject",
            "Resource": f"arn:aws:s3:::{bucket}/*",
            "Condition": {"ArnNotEquals": {"aws:PrincipalArn": writer}},
        },
    )
    aws.client("s3", aws.assume(writer)).put_object(Bucket=bucket, Key="a/2", Body=b"x")
    for session in (aws.assume(other), "admin"):
        with refused():
            aws.client("s3", session).put_object(Bucket=bucket, Key="a/2", Body=b"x")


def test_unencrypted_uploads_can_be_refused(aws: Aws, bucket: str) -> None:
    put(
        aws,
        bucket,
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:PutObject",
            "Resource": f"arn:aws:s3:::{bucket}/*",
            "Condition": {"StringNotEquals": {"s3:x-amz-server-side-encryption": "AES256"}},
        },
    )
    s3 = aws.client("s3")
    s3.put_object(Bucket=bucket, Key="a/2", Body=b"x", ServerSideEncryption="AES256")
    with refused():
        s3.put_object(Bucket=bucket, Key="a/2", Body=b"x")


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::BUCKET/*"},
        {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::another/*"},
        {"Effect": "Permit", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::BUCKET/*"},
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:role/nobody"},
            "Action": "s3:GetObject",
            "Resource": "arn:aws:s3:::BUCKET/*",
        },
    ],
    ids=["no principal", "another bucket", "no such effect", "no such role"],
)
def test_a_malformed_policy_is_not_stored(aws: Aws, bucket: str, statement: dict[str, object]) -> None:
    resource = str(statement["Resource"]).replace("BUCKET", bucket)
    with refused("MalformedPolicy"):
        put(aws, bucket, {**statement, "Resource": resource})
    with refused("NoSuchBucketPolicy"):
        aws.client("s3").get_bucket_policy(Bucket=bucket)
