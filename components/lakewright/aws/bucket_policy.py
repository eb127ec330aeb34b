"""Bucket policies: of tenants' buckets, and of the buckets that receive their access logs. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakewright_spark.aws_partition import bucket_arn

Policy = dict[str, Any]

LOGGING_SERVICE = "logging.s3.amazonaws.com"
"""Service principal that delivers S3 access logs."""


def tenant_bucket_policy(bucket: str, region: str, account: str) -> Policy:
    """Return the bucket policy that denies requests without TLS and principals of other accounts.

    Args:
        bucket: Name of the bucket.
        region: Region of the bucket.
        account: ID of the bucket's account.
    """
    return {"Version": "2012-10-17", "Statement": _denials(bucket, region, account)}


def log_bucket_policy(bucket: str, region: str, account: str, sources: Sequence[str], *, prefix: str = "") -> Policy:
    """Return the policy of a bucket for access logs: the logging service may write logs of some buckets.

    Source: S3, "Enabling Amazon S3 server access logging", "Permissions for log delivery".

    Args:
        bucket: Name of the bucket that receives the logs.
        region: Region of the bucket.
        account: ID of its account, which is that of the sources.
        sources: Names of the buckets whose requests are logged, or patterns with `*`.
        prefix: Prefix of the logs' keys.
    """
    arns = [bucket_arn(source, region) for source in sources]
    delivery = {
        "Sid": "AccessLogs",
        "Effect": "Allow",
        "Principal": {"Service": LOGGING_SERVICE},
        "Action": "s3:PutObject",
        "Resource": f"{bucket_arn(bucket, region)}/{prefix}*",
        "Condition": {
            "ArnLike": {"aws:SourceArn": arns[0] if len(arns) == 1 else arns},
            "StringEquals": {"aws:SourceAccount": account},
        },
    }
    return {"Version": "2012-10-17", "Statement": [*_denials(bucket, region, account), delivery]}


def _denials(bucket: str, region: str, account: str) -> list[dict[str, Any]]:
    arn = bucket_arn(bucket, region)
    everything: dict[str, Any] = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, f"{arn}/*"],
    }
    return [
        {"Sid": "TlsOnly", **everything, "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
        {
            "Sid": "OwnAccountOnly",
            **everything,
            "Condition": {
                "StringNotEquals": {"aws:PrincipalAccount": account},
                # Anonymous requests lack the key; they are denied, too.
                "BoolIfExists": {"aws:PrincipalIsAWSService": "false"},
            },
        },
    ]
