"""The management events of requests that change something: their names and parameters, as CloudTrail has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakewright_sandbox.cloudtrail.trail import ManagementCall
from lakewright_sandbox.typed.json_values import is_object

_SETTINGS = {
    "encryption": "BucketEncryption",
    "lifecycle": "BucketLifecycle",
    "logging": "BucketLogging",
    "ownershipControls": "BucketOwnershipControls",
    "policy": "BucketPolicy",
    "publicAccessBlock": "BucketPublicAccessBlock",
    "tagging": "BucketTagging",
    "versioning": "BucketVersioning",
}
"""S3's sub-resources of a bucket, with the end of their events' names."""
_READING = ("Get", "List", "Simulate", "Generate", "Describe", "Encrypt", "Decrypt", "ReEncrypt")
_IAM_PARAMETERS = ("RoleName", "PolicyName", "UserName", "Description", "MaxSessionDuration", "PermissionsBoundary")
_KMS_PARAMETERS = ("KeyId", "AliasName", "TargetKeyId", "PendingWindowInDays", "Description")


def bucket_call(method: str, bucket: str, query: Mapping[str, str], region: str) -> ManagementCall | None:
    """Return the event of a request about a bucket itself; None if it reads."""
    verb = {"PUT": "Put", "DELETE": "Delete"}.get(method)
    if verb is None:
        return None
    setting = next((end for name, end in _SETTINGS.items() if name in query), None)
    plain = {"Put": "CreateBucket", "Delete": "DeleteBucket"}[verb]
    if setting is None and any(name for name in query if name != "x-id"):
        return None
    return ManagementCall("s3", f"{verb}{setting}" if setting else plain, {"bucketName": bucket}, region)


def iam_call(parameters: Mapping[str, str]) -> ManagementCall | None:
    """Return the event of a call of IAM; None if it reads."""
    action = parameters.get("Action", "")
    return None if action.startswith(_READING) else _call("iam", action, parameters, _IAM_PARAMETERS, "us-east-1")


def kms_call(operation: str, body: bytes, region: str) -> ManagementCall | None:
    """Return the event of a call of KMS; None if it reads or uses a key."""
    try:
        parameters: Any = json.loads(body or b"{}")
    except ValueError:
        return None
    if operation.startswith(_READING) or not is_object(parameters):
        return None
    return _call("kms", operation, parameters, _KMS_PARAMETERS, region)


def _call(
    service: str, name: str, parameters: Mapping[str, Any], recorded_keys: tuple[str, ...], region: str
) -> ManagementCall:
    recorded_parameters = {key[0].lower() + key[1:]: parameters[key] for key in recorded_keys if key in parameters}
    return ManagementCall(service, name, recorded_parameters, region)
