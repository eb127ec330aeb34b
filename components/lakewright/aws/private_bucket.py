"""Settings that all buckets of a stack have: closed to the public, with a policy."""

from __future__ import annotations

import json

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
