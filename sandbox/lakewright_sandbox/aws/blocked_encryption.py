"""Block uploads that are encrypted with a customer's key (SSE-C), which moto ignores.

Sources: Amazon S3 User Guide, "Blocking or unblocking SSE-C for a general purpose bucket": new buckets block SSE-C
since April 2026, and PutObject, CopyObject, PostObject and multipart uploads with SSE-C are refused with 403
AccessDenied; reads are not. Amazon S3 API Reference, "BlockedEncryptionTypes": the values are `SSE-C` and `NONE`.
AWS does not document a PutBucketEncryption without the setting; here it has the default of new buckets.
"""

from __future__ import annotations

from typing import Any

from lakewright_sandbox.aws.errors import AwsAccessDeniedError
from lakewright_sandbox.aws.http import HttpRequest
from lakewright_sandbox.aws.moto_app import s3
from lakewright_sandbox.aws.s3_actions import S3Action

_DEFAULT = "SSE-C"
_CUSTOMER_KEY = "x-amz-server-side-encryption-customer-algorithm"
_END_OF_RULE = b"</Rule>"


def check_upload(step: S3Action, request: HttpRequest) -> None:
    """Raise AwsAccessDeniedError for an upload with SSE-C to a bucket that blocks it."""
    if step.action != "s3:PutObject" or step.bucket is None or _CUSTOMER_KEY not in request.headers:
        return
    if find_blocked_type(step.bucket) == "SSE-C":
        raise AwsAccessDeniedError(f"Access Denied: bucket {step.bucket} blocks uploads with the encryption type SSE-C")


def find_blocked_type(name: str) -> str:
    """Return the encryption type that a bucket blocks: `SSE-C` or `NONE`."""
    bucket = s3().buckets.get(name)
    encryption: dict[str, Any] = (bucket.encryption if bucket else None) or {}
    rule: dict[str, Any] = encryption.get("Rule") or {}
    blocked_types: dict[str, Any] = rule.get("BlockedEncryptionTypes") or {}
    return str(blocked_types.get("EncryptionType") or _DEFAULT)


def add_blocked_type(name: str, response: bytes) -> bytes:
    """Return the response of GetBucketEncryption with the type that a bucket blocks, in its only rule."""
    kind = find_blocked_type(name).encode()
    element = b"<BlockedEncryptionTypes><EncryptionType>" + kind + b"</EncryptionType></BlockedEncryptionTypes>"
    return response.replace(_END_OF_RULE, element + _END_OF_RULE, 1)
