"""What KMS has to allow: calls to KMS itself, and what S3 does there for who reads and writes encrypted objects.

Keys have KMS's default policy, which leaves everything to the policies of the account's identities.
"""

import json

from lakewright_sandbox.aws import ACCOUNT_ID
from lakewright_sandbox.aws.errors import AwsError
from lakewright_sandbox.aws.http import HttpRequest
from lakewright_sandbox.aws.moto_app import kms, s3
from lakewright_sandbox.aws.s3_actions import Step

_SERVICE = "TrentService."
_ALGORITHM = "x-amz-server-side-encryption"
_KEY = "x-amz-server-side-encryption-aws-kms-key-id"


def asked(request: HttpRequest, region: str) -> tuple[str, str]:
    """Action and resource of a call to KMS. Raises AwsError for what is no call to it, and for other key policies."""
    _, is_kms, operation = request.headers.get("x-amz-target", "").partition(_SERVICE)
    try:
        parameters = json.loads(request.body or b"{}")
    except ValueError:
        parameters = None
    if not is_kms or not isinstance(parameters, dict):
        raise AwsError("UnknownOperationException", "This is no call to KMS.")
    if operation == "PutKeyPolicy" or parameters.get("Policy"):
        raise AwsError("UnsupportedOperationException", "The sandbox's KMS keys have the default policy only.")
    named = parameters.get("KeyId") or parameters.get("TargetKeyId") or parameters.get("AliasName")
    return f"kms:{operation}", arn(named, region) if isinstance(named, str) else "*"


def arn(key: str, region: str) -> str:
    """The ARN of a key that is named by id, ARN or alias."""
    name = key.partition(":alias/")[2] or key.removeprefix("alias/")
    target = kms(region).get_key_id_from_alias(f"alias/{name}") if name != key else None
    if target is None and key.startswith("arn:"):
        return key
    return f"arn:aws:kms:{region}:{ACCOUNT_ID}:key/{target or key}"


def uses(step: Step, request: HttpRequest, region: str) -> list[tuple[str, str]]:
    """Actions and keys that a step on an object needs beyond S3's own, as S3 documents for SSE-KMS."""
    bucket = s3().buckets.get(step.bucket or "")
    if bucket is None or step.bucket is None or step.key is None:
        return []
    if step.action == "s3:PutObject":
        rule = ((bucket.encryption or {}).get("Rule") or {}).get("ApplyServerSideEncryptionByDefault") or {}
        algorithm = request.headers.get(_ALGORITHM) or rule.get("SSEAlgorithm")
        key = request.headers.get(_KEY) or rule.get("KMSMasterKeyID")
        parts = "uploads" in request.query or "uploadId" in request.query
        actions = ["kms:GenerateDataKey", *(["kms:Decrypt"] if parts else [])]
        return [(action, arn(key, region)) for action in actions] if algorithm == "aws:kms" and key else []
    if step.action in ("s3:GetObject", "s3:GetObjectVersion") and request.method != "HEAD":
        found = s3().get_object(step.bucket, step.key, version_id=request.query.get("versionId"))
        if found is not None and found.encryption == "aws:kms" and found.kms_key_id:
            return [("kms:Decrypt", arn(found.kms_key_id, region))]
    return []
