"""The KMS permissions that a request needs: calls to KMS itself, and S3's use of keys for encrypted objects.

Keys have KMS's default policy, which leaves all decisions to the identities' policies.
"""

import json
from dataclasses import dataclass

from lakewright_sandbox.aws import ACCOUNT_ID
from lakewright_sandbox.aws.errors import AwsError
from lakewright_sandbox.aws.http import HttpRequest
from lakewright_sandbox.aws.moto_app import kms, s3
from lakewright_sandbox.aws.s3_actions import S3Action
from lakewright_sandbox.typed.json_values import JsonObject, is_object

_SERVICE = "TrentService."
_ALGORITHM = "x-amz-server-side-encryption"
_KEY = "x-amz-server-side-encryption-aws-kms-key-id"
_BUCKET_KEY = "x-amz-server-side-encryption-bucket-key-enabled"


def parse_call(request: HttpRequest, region: str) -> tuple[str, str]:
    """Return action and resource of a call to KMS.

    Raises:
        AwsError: It is not a call to KMS, or it sets another key policy than the default.
    """
    _, is_kms, operation = request.headers.get("x-amz-target", "").partition(_SERVICE)
    try:
        parameters = json.loads(request.body or b"{}")
    except ValueError:
        parameters = None
    if not is_kms or not is_object(parameters):
        raise AwsError("UnknownOperationException", "This is not a call to KMS.")
    if operation == "PutKeyPolicy" or parameters.get("Policy"):
        raise AwsError("UnsupportedOperationException", "The sandbox's KMS keys have the default policy only.")
    key_name = parameters.get("KeyId") or parameters.get("TargetKeyId") or parameters.get("AliasName")
    return f"kms:{operation}", arn(key_name, region) if isinstance(key_name, str) else "*"


def arn(key: str, region: str) -> str:
    """Return the ARN of a key that is named by id, ARN or alias."""
    name = key.partition(":alias/")[2] or key.removeprefix("alias/")
    target = kms(region).get_key_id_from_alias(f"alias/{name}") if name != key else None
    if target is None and key.startswith("arn:"):
        return key
    return f"arn:aws:kms:{region}:{ACCOUNT_ID}:key/{target or key}"


@dataclass(frozen=True)
class KeyUse:
    """S3's use of a key for a caller who reads or writes an object."""

    action: str
    key: str
    context: dict[str, list[str]]
    """Condition keys of S3's call to KMS."""


def _via_s3(bucket: str, key: str, region: str, bucket_key: object) -> dict[str, list[str]]:
    """Return the condition keys: with a bucket key the encryption context is the bucket, otherwise the object."""
    is_bucket = str(bucket_key).lower() == "true"
    return {
        "kms:viaservice": [f"s3.{region}.amazonaws.com"],
        "kms:encryptioncontext:aws:s3:arn": [f"arn:aws:s3:::{bucket}" + ("" if is_bucket else f"/{key}")],
    }


def list_key_uses(step: S3Action, request: HttpRequest, region: str) -> list[KeyUse]:
    """Return the key uses that an action on an object needs beyond S3's own, as S3 documents for SSE-KMS."""
    bucket = s3().buckets.get(step.bucket or "")
    if bucket is None or step.bucket is None or step.key is None:
        return []
    if step.action == "s3:PutObject":
        whole: JsonObject = (bucket.encryption or {}).get("Rule") or {}
        rule: JsonObject = whole.get("ApplyServerSideEncryptionByDefault") or {}
        algorithm = request.headers.get(_ALGORITHM) or rule.get("SSEAlgorithm")
        key = request.headers.get(_KEY) or rule.get("KMSMasterKeyID")
        parts = "uploads" in request.query or "uploadId" in request.query
        actions = ["kms:GenerateDataKey", *(["kms:Decrypt"] if parts else [])]
        if algorithm != "aws:kms" or not key:
            return []
        context = _via_s3(
            step.bucket, step.key, region, request.headers.get(_BUCKET_KEY) or whole.get("BucketKeyEnabled")
        )
        return [KeyUse(action, arn(key, region), context) for action in actions]
    if step.action in ("s3:GetObject", "s3:GetObjectVersion") and request.method != "HEAD":
        s3_object = s3().get_object(step.bucket, step.key, version_id=request.query.get("versionId"))
        if s3_object is not None and s3_object.encryption == "aws:kms" and s3_object.kms_key_id:
            context = _via_s3(step.bucket, step.key, region, s3_object.bucket_key_enabled)
            return [KeyUse("kms:Decrypt", arn(s3_object.kms_key_id, region), context)]
    return []
