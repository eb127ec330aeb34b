"""Signatures of requests: keys, secrets, presigned URLs, foreign signatures, and calls that no signature allows."""

import urllib.error
import urllib.request
from datetime import timedelta
from typing import Any

import boto3
import httpx
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from tests.integration.sandbox.conftest import CATALOG_ARN, Aws, AwsClock, allow, expect_refusal, trusts


@pytest.fixture
def bucket(aws: Aws) -> str:
    name = aws.bucket()
    aws.client("s3").put_object(Bucket=name, Key="a b/ä+1", Body=b"x")
    return name


def test_an_unknown_key(aws: Aws, bucket: str) -> None:
    stranger = {"AccessKeyId": "AKIA" + "X" * 16, "SecretAccessKey": "secret"}
    with expect_refusal("InvalidAccessKeyId"):
        aws.client("s3", stranger).get_object(Bucket=bucket, Key="a b/ä+1")
    with expect_refusal("InvalidClientTokenId"):
        aws.client("sts", stranger).get_caller_identity()


@pytest.mark.parametrize("service", ["s3", "iam", "sts"])
def test_a_wrong_secret(aws: Aws, service: str) -> None:
    call = {"s3": "list_buckets", "iam": "list_users", "sts": "get_caller_identity"}[service]
    forged = {"AccessKeyId": aws.keys["admin"].access_key_id, "SecretAccessKey": "guessed"}
    with expect_refusal("SignatureDoesNotMatch"):
        getattr(aws.client(service, forged), call)()


def test_a_deactivated_key(aws: Aws, bucket: str) -> None:
    arn, key = aws.user(allow("s3:*"))
    aws.client("iam").update_access_key(
        UserName=arn.rpartition("/")[2], AccessKeyId=key["AccessKeyId"], Status="Inactive"
    )
    with expect_refusal("InvalidAccessKeyId"):
        aws.client("s3", key).get_object(Bucket=bucket, Key="a b/ä+1")


def test_presigned_urls(aws: Aws, bucket: str) -> None:
    session = aws.assume(aws.role(trusts(CATALOG_ARN), allow(["s3:GetObject", "s3:PutObject"])))
    for identity in ("admin", session):
        s3 = aws.client("s3", identity, signature_version="s3v4")
        put = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "new/ö"})
        assert httpx.put(put, content=b"by url").status_code == 200
        get = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "new/ö"})
        assert httpx.get(get).content == b"by url"
        # The URL allows a single operation.
        assert httpx.put(get, content=b"no").status_code == 403
        assert httpx.get(get.replace("new/", "old/")).status_code == 403
        assert httpx.get(get + "&versionId=1").status_code == 403
        assert httpx.put(put, headers={"x-amz-copy-source": f"/{bucket}/a b"}).status_code == 403
    lister = aws.client("s3", session, signature_version="s3v4")
    assert httpx.get(lister.generate_presigned_url("list_objects_v2", Params={"Bucket": bucket})).status_code == 403


def test_a_presigned_url_ends(aws_with_clock: tuple[Aws, AwsClock]) -> None:
    aws, clock = aws_with_clock
    name = aws.bucket()
    s3 = aws.client("s3", signature_version="s3v4")
    s3.put_object(Bucket=name, Key="a", Body=b"x")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": name, "Key": "a"}, ExpiresIn=60)
    assert httpx.get(url).content == b"x"
    try:
        clock.ahead = timedelta(seconds=65)
        response = httpx.get(url)
        assert response.status_code == 403
        assert "Request has expired" in response.text
        clock.ahead = timedelta(minutes=16)
        with expect_refusal("RequestTimeTooSkewed"):
            s3.get_object(Bucket=name, Key="a")
    finally:
        clock.ahead = timedelta()


def sign(aws: Aws, method: str, url: str, headers: dict[str, str]) -> dict[str, str]:
    """Sign as a catalog does for its clients, without the body; return the signed headers."""
    key = aws.keys["admin"]
    credentials = Credentials(key.access_key_id, key.secret_access_key.get_secret_value())
    request = AWSRequest(method, url, headers=headers)
    signer = S3SigV4Auth(credentials, "s3", "us-east-1")
    signer.payload = lambda _request: "UNSIGNED-PAYLOAD"
    signer.add_auth(request)
    return dict(request.headers.items())


def test_a_signature_made_elsewhere(aws: Aws, bucket: str) -> None:
    url = f"{aws.endpoint}/{bucket}/remote/1"
    assert httpx.put(url, content=b"abc", headers=sign(aws, "PUT", url, {})).status_code == 200
    headers = sign(aws, "GET", url, {"range": "bytes=1-2"})
    assert httpx.get(url, headers=headers).content == b"bc"
    assert httpx.get(url, headers={**headers, "range": "bytes=0-2"}).status_code == 403
    assert httpx.delete(url, headers=headers).status_code == 403
    assert httpx.put(url, headers={**sign(aws, "PUT", url, {}), "x-amz-acl": "public-read"}).status_code == 403


def test_a_body_that_differs_from_the_signed_body(aws: Aws, bucket: str) -> None:
    s3 = aws.client("s3", request_checksum_calculation="when_required")
    s3.meta.events.register(
        "before-send.s3.PutObject", lambda request, **_: setattr(request, "body", b"forged") and None
    )
    s3.meta.events.register("before-sign.s3.PutObject", lambda request, **_: _sign_payload(request))
    with expect_refusal("XAmzContentSHA256Mismatch"):
        s3.put_object(Bucket=bucket, Key="a", Body=b"signed")


def _sign_payload(request: Any) -> None:
    request.context["payload_signing_enabled"] = True


def test_old_signatures_are_refused_by_name(aws: Aws, bucket: str) -> None:
    old = boto3.client(
        "s3",
        endpoint_url=aws.endpoint,
        region_name="us-east-1",
        aws_access_key_id=aws.keys["admin"].access_key_id,
        aws_secret_access_key=aws.keys["admin"].secret_access_key.get_secret_value(),
        config=Config(signature_version="s3"),
    )
    with expect_refusal("InvalidRequest", "AWS4-HMAC-SHA256"):
        old.get_object(Bucket=bucket, Key="a")


def test_no_other_account_by_header(aws: Aws, bucket: str) -> None:
    s3 = aws.client("s3")
    s3.meta.events.register(
        "before-sign.s3.GetObject", lambda request, **_: request.headers.add_header("x-moto-account-id", "999999999999")
    )
    assert s3.get_object(Bucket=bucket, Key="a b/ä+1")["Body"].read() == b"x"


def test_motos_own_api_neither_exposes_nor_resets_anything(aws: Aws, bucket: str) -> None:
    assert httpx.get(f"{aws.endpoint}/moto-api/").status_code == 200
    assert httpx.post(f"{aws.endpoint}/moto-api/reset-auth", content=b"0").status_code == 200
    for method, path in (("GET", "data.json"), ("POST", "reset"), ("POST", "reset-auth"), ("POST", "seed?a=1")):
        assert httpx.request(method, f"{aws.endpoint}/moto-api/{path}").status_code == 403
    aws.client("s3").head_bucket(Bucket=bucket)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{aws.endpoint}/{bucket}?list-type=2")


@pytest.mark.parametrize("service", ["dynamodb", "sqs", "ec2"])
def test_other_services_are_refused_by_name(aws: Aws, service: str) -> None:
    call = {"dynamodb": "list_tables", "sqs": "list_queues", "ec2": "describe_vpcs"}[service]
    with pytest.raises(Exception, match="S3, IAM, STS, KMS, Organizations, CloudTrail"):
        getattr(aws.client(service), call)()


class SignsExpect(S3SigV4Auth):
    """Signs the header Expect, as Lakekeeper does when it signs a request of a client."""

    def headers_to_sign(self, request: AWSRequest) -> Any:
        headers = super().headers_to_sign(request)
        headers["expect"] = "100-continue"
        return headers


def test_a_signed_expect_header_may_be_removed(aws: Aws, bucket: str) -> None:
    """Clients remove it when they send the body."""
    key = aws.keys["admin"]
    url = f"{aws.endpoint}/{bucket}/expected"
    request = AWSRequest("PUT", url, data=b"x")
    credentials = Credentials(key.access_key_id, key.secret_access_key.get_secret_value())
    SignsExpect(credentials, "s3", "us-east-1").add_auth(request)

    response = httpx.put(url, content=b"x", headers=dict(request.headers.items()))

    assert "expect;host" in request.headers["Authorization"]
    assert response.status_code == 200
