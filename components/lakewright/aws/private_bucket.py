"""Settings that all buckets of a stack have: closed to the public, with a policy, encrypted."""

from __future__ import annotations

import json
from typing import Any

import pulumi
from pulumi_aws import s3

from lakewright.aws.bucket_policy import Policy


def make_private(
    name: str, bucket: s3.Bucket, policy: pulumi.Input[Policy], opts: pulumi.ResourceOptions
) -> s3.BucketPolicy:
    """Turn off ACLs and public access of a bucket, and set its policy. Return the policy's resource.

    Args:
        name: Name of the resources.
        bucket: The bucket.
        policy: Its policy.
        opts: Options of the resources.
    """
    s3.BucketOwnershipControls(name, bucket=bucket.bucket, rule={"object_ownership": "BucketOwnerEnforced"}, opts=opts)
    closed = s3.BucketPublicAccessBlock(
        name,
        bucket=bucket.bucket,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=opts,
    )
    # AWS refuses to change the policy and the public access of a bucket at the same time.
    after_closing = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[closed]))
    document = pulumi.Output.from_input(policy).apply(json.dumps)
    return s3.BucketPolicy(name, bucket=bucket.bucket, policy=document, opts=after_closing)


def encryption_rules(kms_key_arn: pulumi.Input[str] | None) -> list[Any]:
    """Return the default encryption of objects: with the given key, else with keys that S3 manages.

    Uploads with a customer's key (SSE-C) are blocked: nobody without that key could read the data.
    """
    if kms_key_arn is None:
        default: dict[str, Any] = {"sse_algorithm": "AES256"}
        return [{"apply_server_side_encryption_by_default": default, "blocked_encryption_types": ["SSE-C"]}]
    default = {"sse_algorithm": "aws:kms", "kms_master_key_id": kms_key_arn}
    return [
        {
            "apply_server_side_encryption_by_default": default,
            "bucket_key_enabled": True,
            "blocked_encryption_types": ["SSE-C"],
        }
    ]
