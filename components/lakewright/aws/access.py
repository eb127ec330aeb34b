"""IAM roles of warehouses: only the catalog may assume them, and each has access to one prefix only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pulumi
from lakewright_spark.aws_partition import bucket_arn, partition_of, service_host
from pulumi_aws import iam

OBJECT_ACTIONS = (
    "s3:GetObject",
    "s3:GetObjectVersion",
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
)
"""Actions that Lakekeeper uses itself, and allows in the session policy of vended credentials."""

Policy = dict[str, Any]


def trust_policy(principal_arn: str, external_id: str, *, session_tags: bool = False) -> Policy:
    """Return the trust policy: the catalog's principal may assume the role with the external ID."""
    condition = {"StringEquals": {"sts:ExternalId": external_id}}
    statements: list[dict[str, Any]] = [
        {
            "Sid": "CatalogAssumes",
            "Effect": "Allow",
            "Principal": {"AWS": principal_arn},
            "Action": "sts:AssumeRole",
            "Condition": condition,
        }
    ]
    if session_tags:
        statements.append(
            {
                "Sid": "CatalogTagsSessions",
                "Effect": "Allow",
                "Principal": {"AWS": principal_arn},
                "Action": "sts:TagSession",
            }
        )
    return {"Version": "2012-10-17", "Statement": statements}


def access_policy(bucket: str, key_prefix: str, kms_key_arn: str | None = None, *, region: str) -> Policy:
    """Return the policy of access to `BUCKET/KEY_PREFIX/*`, which covers every vended credential."""
    arn = bucket_arn(bucket, region)
    statements: list[dict[str, Any]] = [
        {
            "Sid": "WarehouseObjects",
            "Effect": "Allow",
            "Action": list(OBJECT_ACTIONS),
            "Resource": f"{arn}/{key_prefix}/*",
        },
        {
            "Sid": "WarehouseListing",
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": arn,
            "Condition": {"StringLike": {"s3:prefix": f"{key_prefix}/*"}},
        },
        {
            "Sid": "BucketLocation",
            "Effect": "Allow",
            "Action": "s3:GetBucketLocation",
            "Resource": arn,
        },
    ]
    if kms_key_arn:
        statements.append(
            {
                "Sid": "BucketKey",
                "Effect": "Allow",
                "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
                "Resource": kms_key_arn,
                "Condition": key_conditions(arn, key_prefix, region),
            }
        )
    return {"Version": "2012-10-17", "Statement": statements}


def key_conditions(arn: str, key_prefix: str, region: str) -> dict[str, Any]:
    """Return conditions that limit the key to S3 and the warehouse's objects, or to the bucket with a bucket key.

    Source: KMS, "kms:ViaService" and "kms:EncryptionContext:context-key"; S3, "Using server-side encryption with KMS".
    """
    hosts = [service_host("s3", region)]
    if partition_of(region) == "aws-cn":
        hosts.append(f"s3.{region}.amazonaws.com")  # KMS documents one form for all partitions
    return {
        "StringEquals": {"kms:ViaService": hosts[0] if len(hosts) == 1 else hosts},
        "StringLike": {"kms:EncryptionContext:aws:s3:arn": [arn, f"{arn}/{key_prefix}/*"]},
    }


def aliases(earlier: str | None) -> list[str | pulumi.Alias] | None:
    """Return the alias of a resource with an earlier name."""
    return [pulumi.Alias(name=earlier)] if earlier else None


class AccessRole(pulumi.ComponentResource):
    """The role of one warehouse."""

    arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        role: pulumi.Input[str],
        principal_arn: str,
        external_id: pulumi.Input[str],
        bucket: pulumi.Input[str],
        key_prefix: pulumi.Input[str],
        kms_key_arn: pulumi.Input[str] | None = None,
        region: str,
        permissions_boundary: str | None = None,
        session_tags: bool = False,
        tags: dict[str, str] | None = None,
        retain: bool = False,
        after: Sequence[pulumi.Resource] = (),
        existing: str | None = None,
        renamed_from: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the role after the resources in `after`, or adopt the role named `existing`.

        `role` is the name of the IAM role. It stays when the resource is renamed (`renamed_from`).
        """
        earlier = pulumi.ResourceOptions(aliases=aliases(renamed_from))
        super().__init__("lakewright:index:AccessRole", name, {}, pulumi.ResourceOptions.merge(opts, earlier))
        inside = pulumi.ResourceOptions(parent=self, retain_on_delete=retain, depends_on=after)
        within = pulumi.ResourceOptions.merge(inside, earlier)
        trust = pulumi.Output.from_input(external_id).apply(
            lambda value: json.dumps(trust_policy(principal_arn, value, session_tags=session_tags))
        )
        rights = pulumi.Output.all(bucket, key_prefix, kms_key_arn).apply(
            lambda values: json.dumps(access_policy(*values, region=region))
        )
        made = iam.Role(
            name,
            name=role,
            description=pulumi.Output.format("Lakekeeper's way to {0}/ and to nothing else", key_prefix),
            assume_role_policy=trust,
            permissions_boundary=permissions_boundary,
            tags=tags,
            opts=pulumi.ResourceOptions.merge(within, pulumi.ResourceOptions(import_=existing)),
        )
        policy = iam.RolePolicy(name, name="warehouse-prefix", role=made.name, policy=rights, opts=within)
        # Users of the ARN need the policy, so the ARN is known only after the policy exists.
        self.arn = pulumi.Output.all(made.arn, policy.id).apply(lambda values: values[0])
        self.register_outputs({"arn": self.arn})
