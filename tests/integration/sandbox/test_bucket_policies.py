"""Bucket policies over HTTP: allowed and denied callers, and refused policies."""

import pytest
from botocore import UNSIGNED

from tests.integration.sandbox.conftest import ACCOUNT, CATALOG_ARN, Aws, allow, expect_refusal, policy, trusts


@pytest.fixture
def bucket(aws: Aws) -> str:
    name = aws.bucket()
    aws.client("s3").put_object(Bucket=name, Key="a/1", Body=b"x")
    return name


def set_bucket_policy(aws: Aws, bucket: str, *statements: dict[str, object]) -> None:
    aws.client("s3").put_bucket_policy(Bucket=bucket, Policy=policy(*statements))


def test_tls_only_does_not_lock_out_loopback(aws: Aws, bucket: str) -> None:
    both = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    insecure = {"Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    set_bucket_policy(aws, bucket, {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": both, **insecure})
    s3 = aws.client("s3")
    assert s3.get_object(Bucket=bucket, Key="a/1")["Body"].read() == b"x"
    s3.put_object(Bucket=bucket, Key="a/2", Body=b"y")
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 2


def test_a_deny_holds_even_for_the_admin(aws: Aws, bucket: str) -> None:
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject", "Resource": f"arn:aws:s3:::{bucket}/*"}
    set_bucket_policy(aws, bucket, deny)
    with expect_refusal("AccessDenied", "explicit deny in a resource-based policy"):
        aws.client("s3").delete_object(Bucket=bucket, Key="a/1")
    response = aws.client("s3").delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a/1"}]})
    assert response["Errors"][0]["Code"] == "AccessDenied"
    aws.client("s3").delete_bucket_policy(Bucket=bucket)
    aws.client("s3").delete_object(Bucket=bucket, Key="a/1")


def test_a_policy_may_allow_a_user_without_rights(aws: Aws, bucket: str) -> None:
    (ann, ann_key), (_, bob_key) = aws.user(), aws.user()
    set_bucket_policy(aws, bucket, allow("s3:GetObject", f"arn:aws:s3:::{bucket}/a/*", Principal={"AWS": ann}))
    assert aws.client("s3", ann_key).get_object(Bucket=bucket, Key="a/1")["Body"].read() == b"x"
    with expect_refusal():
        aws.client("s3", bob_key).get_object(Bucket=bucket, Key="a/1")


def test_a_policy_may_allow_a_role_within_its_session_policy(aws: Aws, bucket: str) -> None:
    role = aws.role(trusts(CATALOG_ARN))
    set_bucket_policy(aws, bucket, allow("s3:GetObject", f"arn:aws:s3:::{bucket}/*", Principal={"AWS": role}))
    assert aws.client("s3", aws.assume(role)).get_object(Bucket=bucket, Key="a/1")["Body"].read() == b"x"
    narrow = aws.assume(role, Policy=policy(allow("s3:GetObject", f"arn:aws:s3:::{bucket}/b/*")))
    with expect_refusal("AccessDenied", "no session policy allows"):
        aws.client("s3", narrow).get_object(Bucket=bucket, Key="a/1")


def test_only_one_role_may_write(aws: Aws, bucket: str) -> None:
    writer, other = (aws.role(trusts(CATALOG_ARN), allow("s3:*")) for _ in range(2))
    set_bucket_policy(
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
        with expect_refusal():
            aws.client("s3", session).put_object(Bucket=bucket, Key="a/2", Body=b"x")


def test_unencrypted_uploads_can_be_refused(aws: Aws, bucket: str) -> None:
    set_bucket_policy(
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
    with expect_refusal():
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
    with expect_refusal("MalformedPolicy"):
        set_bucket_policy(aws, bucket, {**statement, "Resource": resource})
    with expect_refusal("NoSuchBucketPolicy"):
        aws.client("s3").get_bucket_policy(Bucket=bucket)


def test_other_accounts_and_anonymous_callers_are_denied(aws: Aws, bucket: str) -> None:
    """A user with the path `/accounts/ID/` acts as a user of that account."""
    foreign, key = aws.user(allow("s3:*"), path="/accounts/210987654321/")
    assert aws.client("sts", key).get_caller_identity()["Account"] == "210987654321"
    with expect_refusal("AccessDenied", "no resource-based policy allows"):
        aws.client("s3", key).get_object(Bucket=bucket, Key="a/1")
    everything = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    shared = allow("s3:GetObject", everything, Principal={"AWS": foreign})
    set_bucket_policy(aws, bucket, shared)
    assert aws.client("s3", key).get_object(Bucket=bucket, Key="a/1")["Body"].read() == b"x"

    own_only = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": everything,
        "Condition": {
            "StringNotEquals": {"aws:PrincipalAccount": ACCOUNT},
            "BoolIfExists": {"aws:PrincipalIsAWSService": "false"},
        },
    }
    set_bucket_policy(aws, bucket, shared, allow("s3:GetObject", everything, Principal="*"), own_only)

    with expect_refusal("AccessDenied", "explicit deny in a resource-based policy"):
        aws.client("s3", key).get_object(Bucket=bucket, Key="a/1")
    with expect_refusal("AccessDenied", "explicit deny in a resource-based policy"):
        aws.client("s3", signature_version=UNSIGNED).get_object(Bucket=bucket, Key="a/1")
    assert aws.client("s3").get_object(Bucket=bucket, Key="a/1")["Body"].read() == b"x"


def test_logs_are_delivered_if_the_policy_allows_the_service(aws: Aws, bucket: str) -> None:
    s3, logs = aws.client("s3"), aws.bucket()
    target = {"LoggingEnabled": {"TargetBucket": logs, "TargetPrefix": "a/"}}

    def delivery(source: str, prefix: str = "a/", service: str = "logging.s3.amazonaws.com") -> dict[str, object]:
        conditions = {
            "ArnLike": {"aws:SourceArn": f"arn:aws:s3:::{source}"},
            "StringEquals": {"aws:SourceAccount": ACCOUNT},
        }
        service_and_conditions = {"Principal": {"Service": service}, "Condition": conditions}
        return allow("s3:PutObject", f"arn:aws:s3:::{logs}/{prefix}*", **service_and_conditions)

    for useless in (delivery("other"), delivery(bucket, "b/"), delivery(bucket, service="ec2.amazonaws.com")):
        set_bucket_policy(aws, logs, useless)
        with expect_refusal("InvalidTargetBucketForLogging"):
            s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus=target)
    set_bucket_policy(aws, logs, delivery(bucket))
    s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus=target)
    s3.get_object(Bucket=bucket, Key="a/1")
    delivered = s3.list_objects_v2(Bucket=logs)["KeyCount"]
    set_bucket_policy(aws, logs, delivery("other"))
    s3.get_object(Bucket=bucket, Key="a/1")

    assert delivered == 1
    assert s3.list_objects_v2(Bucket=logs)["KeyCount"] == delivered
