"""S3 through the gate: every operation requires its own right on its own resource, and works with it."""

import io
import urllib.error
import urllib.request
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.sandbox.conftest import CATALOG_ARN, Aws, allow, expect_refusal, policy, trusts

OPERATIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("s3:GetObject", "get_object", {"Key": "a/1"}),
    ("s3:GetObject", "head_object", {"Key": "a/1"}),
    ("s3:PutObject", "put_object", {"Key": "a/2", "Body": b"x"}),
    ("s3:DeleteObject", "delete_object", {"Key": "a/gone"}),
    ("s3:PutObject", "create_multipart_upload", {"Key": "a/3"}),
    ("s3:ListBucket", "list_objects_v2", {}),
    ("s3:ListBucket", "list_objects", {}),
    ("s3:ListBucket", "head_bucket", {}),
    ("s3:ListBucketVersions", "list_object_versions", {}),
    ("s3:ListBucketMultipartUploads", "list_multipart_uploads", {}),
    ("s3:GetBucketLocation", "get_bucket_location", {}),
    ("s3:GetBucketVersioning", "get_bucket_versioning", {}),
    ("s3:PutBucketVersioning", "put_bucket_versioning", {"VersioningConfiguration": {"Status": "Suspended"}}),
    ("s3:GetObjectTagging", "get_object_tagging", {"Key": "a/1"}),
    ("s3:PutObjectTagging", "put_object_tagging", {"Key": "a/1", "Tagging": {"TagSet": [{"Key": "k", "Value": "v"}]}}),
    ("s3:GetObjectAcl", "get_object_acl", {"Key": "a/1"}),
    ("s3:GetBucketAcl", "get_bucket_acl", {}),
]


@pytest.mark.parametrize(("action", "operation", "parameters"), OPERATIONS, ids=[o[1] for o in OPERATIONS])
def test_an_operation_needs_its_action_and_no_more(
    aws: Aws, action: str, operation: str, parameters: dict[str, Any]
) -> None:
    bucket = aws.bucket()
    aws.client("s3").put_object(Bucket=bucket, Key="a/1", Body=b"x")
    resources = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    _, allowed_key = aws.user(allow(action, resources))
    _, other_key = aws.user(allow("s3:*", resources), {"Effect": "Deny", "Action": action, "Resource": resources})

    getattr(aws.client("s3", allowed_key), operation)(Bucket=bucket, **parameters)
    with expect_refusal():
        getattr(aws.client("s3", other_key), operation)(Bucket=bucket, **parameters)


def test_the_message_names_user_action_and_reason(aws: Aws) -> None:
    bucket, (arn, key) = aws.bucket(), aws.user()
    message = (
        f'User: {arn} is not authorized to perform: s3:GetObject on resource: "arn:aws:s3:::{bucket}/a" '
        "because no identity-based policy allows the s3:GetObject action"
    )
    with expect_refusal("AccessDenied", message):
        aws.client("s3", key).get_object(Bucket=bucket, Key="a")


def test_listing_is_limited_by_prefix(aws: Aws) -> None:
    bucket = aws.bucket()
    _, key = aws.user(
        allow("s3:ListBucket", f"arn:aws:s3:::{bucket}", Condition={"StringLike": {"s3:prefix": "mine/*"}})
    )
    s3 = aws.client("s3", key)
    assert s3.list_objects_v2(Bucket=bucket, Prefix="mine/a")["KeyCount"] == 0
    for prefix in ("mine", "", "yours/"):
        with expect_refusal():
            s3.list_objects_v2(Bucket=bucket, Prefix=prefix)
    with expect_refusal():
        s3.list_objects_v2(Bucket=bucket)  # an absent key does not match


def test_only_callers_who_may_list_see_a_missing_object(aws: Aws) -> None:
    bucket = aws.bucket()
    with expect_refusal("NoSuchKey"):
        aws.client("s3").get_object(Bucket=bucket, Key="none")
    _, reader = aws.user(allow("s3:GetObject", f"arn:aws:s3:::{bucket}/*"))
    with expect_refusal("AccessDenied", "s3:ListBucket"):
        aws.client("s3", reader).get_object(Bucket=bucket, Key="none")

    within = allow("s3:ListBucket", f"arn:aws:s3:::{bucket}", Condition={"StringLike": {"s3:prefix": "mine/*"}})
    _, lister = aws.user(allow("s3:GetObject", f"arn:aws:s3:::{bucket}/*"), within)
    with expect_refusal("NoSuchKey"):
        aws.client("s3", lister).get_object(Bucket=bucket, Key="mine/none")
    with expect_refusal("AccessDenied"):
        aws.client("s3", lister).get_object(Bucket=bucket, Key="yours/none")


def test_versions_have_separate_rights(aws: Aws) -> None:
    bucket, admin = aws.bucket(), aws.client("s3")
    admin.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = admin.put_object(Bucket=bucket, Key="a", Body=b"old")["VersionId"]
    admin.put_object(Bucket=bucket, Key="a", Body=b"new")
    _, key = aws.user(allow(["s3:GetObject", "s3:DeleteObject", "s3:ListBucket"], f"arn:aws:s3:::{bucket}*"))
    s3 = aws.client("s3", key)
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"new"
    with expect_refusal():
        s3.get_object(Bucket=bucket, Key="a", VersionId=version)
    with expect_refusal():
        s3.delete_object(Bucket=bucket, Key="a", VersionId=version)
    assert admin.get_object(Bucket=bucket, Key="a", VersionId=version)["Body"].read() == b"old"


def test_deleting_many_decides_on_each(aws: Aws) -> None:
    bucket, admin = aws.bucket(), aws.client("s3")
    for name in ("mine/1", "mine/2", "yours/1 & <2>"):
        admin.put_object(Bucket=bucket, Key=name, Body=b"x")
    _, key = aws.user(allow("s3:DeleteObject", f"arn:aws:s3:::{bucket}/mine/*"))
    objects = [{"Key": name} for name in ("mine/1", "yours/1 & <2>", "mine/2")]
    response = aws.client("s3", key).delete_objects(Bucket=bucket, Delete={"Objects": objects})
    assert sorted(deleted["Key"] for deleted in response["Deleted"]) == ["mine/1", "mine/2"]
    assert [(e["Key"], e["Code"]) for e in response["Errors"]] == [("yours/1 & <2>", "AccessDenied")]
    assert [o["Key"] for o in admin.list_objects_v2(Bucket=bucket)["Contents"]] == ["yours/1 & <2>"]

    response = aws.client("s3", key).delete_objects(Bucket=bucket, Delete={"Objects": objects[1:2]})
    assert "Deleted" not in response
    assert len(response["Errors"]) == 1


def test_a_copy_needs_the_source_too(aws: Aws) -> None:
    bucket, admin = aws.bucket(), aws.client("s3")
    for name in ("mine/1", "yours/1"):
        admin.put_object(Bucket=bucket, Key=name, Body=b"x")
    _, key = aws.user(allow(["s3:GetObject", "s3:PutObject"], f"arn:aws:s3:::{bucket}/mine/*"))
    s3 = aws.client("s3", key)
    s3.copy_object(Bucket=bucket, Key="mine/2", CopySource={"Bucket": bucket, "Key": "mine/1"})
    with expect_refusal("AccessDenied", "yours/1"):
        s3.copy_object(Bucket=bucket, Key="mine/3", CopySource={"Bucket": bucket, "Key": "yours/1"})


def test_multipart_uploads(aws: Aws) -> None:
    bucket = aws.bucket()
    _, key = aws.user(allow("s3:PutObject", f"arn:aws:s3:::{bucket}/*"))
    s3 = aws.client("s3", key)
    content = b"0123456789" * 1_200_000
    s3.upload_fileobj(io.BytesIO(content), bucket, "big")
    assert aws.client("s3").get_object(Bucket=bucket, Key="big")["Body"].read() == content
    assert aws.client("s3").get_object(Bucket=bucket, Key="big", Range="bytes=5-9")["Body"].read() == b"56789"

    upload = s3.create_multipart_upload(Bucket=bucket, Key="big")["UploadId"]
    s3.upload_part(Bucket=bucket, Key="big", UploadId=upload, PartNumber=1, Body=b"x")
    for operation in ("list_parts", "abort_multipart_upload"):
        with expect_refusal():
            getattr(s3, operation)(Bucket=bucket, Key="big", UploadId=upload)
        getattr(aws.client("s3"), operation)(Bucket=bucket, Key="big", UploadId=upload)


@pytest.mark.parametrize("name", ["a b+c", "ä/ö", "a//b", "100%", "a?b=c&d", "a/../b", "~x'(1)*", "/lead", "end/"])
def test_keys_of_every_kind(aws: Aws, name: str) -> None:
    bucket = aws.bucket()
    _, key = aws.user(allow(["s3:GetObject", "s3:PutObject"], f"arn:aws:s3:::{bucket}/{name.replace('*', '?')}"))
    s3 = aws.client("s3", key)
    s3.put_object(Bucket=bucket, Key=name, Body=name.encode(), Metadata={"some_key": "some value"})
    response = s3.get_object(Bucket=bucket, Key=name)
    assert response["Body"].read() == name.encode()
    assert response["Metadata"] == {"some_key": "some value"}
    assert [o["Key"] for o in aws.client("s3").list_objects_v2(Bucket=bucket)["Contents"]] == [name]


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])
def test_streams_with_a_trailing_checksum(aws: Aws, algorithm: str) -> None:
    bucket, s3 = aws.bucket(), aws.client("s3")
    s3.put_object(Bucket=bucket, Key="a", Body=io.BytesIO(b"streamed" * 1000), ChecksumAlgorithm=algorithm)
    assert s3.get_object(Bucket=bucket, Key="a", ChecksumMode="ENABLED")["Body"].read() == b"streamed" * 1000


def test_one_request_cannot_mean_two_things(aws: Aws) -> None:
    bucket = aws.bucket()
    s3 = aws.client("s3")
    s3.meta.events.register(
        "before-sign.s3.GetBucketAcl", lambda request, **_: setattr(request, "url", request.url + "&policy")
    )
    with expect_refusal("InvalidArgument", "Conflicting"):
        s3.get_bucket_acl(Bucket=bucket)


def test_anonymous_requests_are_denied_unless_a_bucket_is_public(aws: Aws) -> None:
    bucket = aws.bucket()
    aws.client("s3").put_object(Bucket=bucket, Key="a", Body=b"x")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{aws.endpoint}/{bucket}/a")
    public = allow("s3:GetObject", f"arn:aws:s3:::{bucket}/*", Principal="*")
    aws.client("s3").put_bucket_policy(Bucket=bucket, Policy=policy(public))
    assert urllib.request.urlopen(f"{aws.endpoint}/{bucket}/a").read() == b"x"


def test_two_tenants_cannot_reach_each_other(aws: Aws) -> None:
    bucket = aws.bucket()
    sessions = {}
    for tenant in ("a", "b"):
        role = aws.role(
            trusts(CATALOG_ARN, StringEquals={"sts:ExternalId": f"secret-of-{tenant}"}),
            allow(["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], f"arn:aws:s3:::{bucket}/{tenant}/*"),
            allow("s3:ListBucket", f"arn:aws:s3:::{bucket}", Condition={"StringLike": {"s3:prefix": f"{tenant}/*"}}),
        )
        with expect_refusal():
            aws.assume(role)
        with expect_refusal():
            aws.assume(role, ExternalId="secret-of-another-tenant")
        sessions[tenant] = aws.assume(role, ExternalId=f"secret-of-{tenant}")
    for tenant, other in (("a", "b"), ("b", "a")):
        s3 = aws.client("s3", sessions[tenant])
        s3.put_object(Bucket=bucket, Key=f"{tenant}/t/1", Body=b"x")
        assert s3.list_objects_v2(Bucket=bucket, Prefix=f"{tenant}/t")["KeyCount"] == 1
        for call in (
            lambda s3=s3, other=other: s3.put_object(Bucket=bucket, Key=f"{other}/t/1", Body=b"x"),
            lambda s3=s3, other=other: s3.get_object(Bucket=bucket, Key=f"{other}/t/1"),
            lambda s3=s3, other=other: s3.head_object(Bucket=bucket, Key=f"{other}/t/1"),
            lambda s3=s3, other=other: s3.delete_object(Bucket=bucket, Key=f"{other}/t/1"),
            lambda s3=s3, other=other: s3.list_objects_v2(Bucket=bucket, Prefix=f"{other}/t"),
            lambda s3=s3: s3.list_buckets(),
            lambda s3=s3: s3.get_bucket_policy(Bucket=bucket),
        ):
            with expect_refusal():
                call()


def test_the_catalogs_own_user_reaches_no_data(aws: Aws) -> None:
    bucket = aws.bucket()
    for call in (
        lambda: aws.client("s3", "lakekeeper").list_buckets(),
        lambda: aws.client("s3", "lakekeeper").put_object(Bucket=bucket, Key="a", Body=b""),
        lambda: aws.client("iam", "lakekeeper").list_users(),
    ):
        with expect_refusal():
            call()


def test_iam_requires_rights_too(aws: Aws) -> None:
    _, key = aws.user(allow("iam:GetRole", "arn:aws:iam::123456789012:role/seen-*"))
    iam = aws.client("iam", key)
    with pytest.raises(ClientError) as caught:
        iam.get_role(RoleName="seen-x")
    assert caught.value.response["Error"]["Code"] == "NoSuchEntity"
    with expect_refusal("AccessDenied", "iam:GetRole"):
        iam.get_role(RoleName="hidden")
    with expect_refusal("AccessDenied", "iam:CreateRole"):
        iam.create_role(RoleName="seen-x", AssumeRolePolicyDocument=policy(trusts(CATALOG_ARN)))
