"""IAM documents of a warehouse's roles: who may assume a role, and what it may do. Pure functions.

Each role has the rights of one `RolePurpose` on the prefix of one warehouse, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lakewright_spark.aws_partition import bucket_arn, find_partition, service_host

OWN_ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
"""Actions on objects that Lakekeeper uses itself."""

OBJECT_ACTIONS = (
    "s3:GetObject",
    "s3:GetObjectVersion",
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
)
"""Actions on objects that Lakekeeper allows in the session policy of vended credentials; they include its own."""

Policy = dict[str, Any]

DEFAULT_SESSION_SECONDS = 3600
"""Seconds that sessions of a role may last unless the role says otherwise; also IAM's minimum for that setting."""

CURRENT_TIME = "aws:CurrentTime"
"""Condition key of the time at which AWS decides about a request."""


class RolePurpose(StrEnum):
    """Purpose of a role, which decides its rights."""

    CATALOG = "catalog"
    """Lakekeeper's own access, and the credentials that it vends."""
    OWN_ACCESS = "own-access"
    """Lakekeeper's own access, beside a role of `VENDING`."""
    SIGNING = "signing"
    """Lakekeeper's own access, and the requests of clients that it signs."""
    VENDING = "vending"
    """The credentials that Lakekeeper vends."""
    MAINTENANCE = "maintenance"
    """Maintenance outside the catalog: find files without a table, read old versions, delete files. It cannot delete
    versions, so whatever it deletes can be restored while the bucket keeps old versions."""
    SHARE = "share"
    """Reading by a consumer outside the catalog."""


@dataclass(frozen=True)
class _Rights:
    """The rights of a purpose, by the resource that the actions need."""

    objects: tuple[str, ...]
    listing: tuple[str, ...] = ("s3:ListBucket",)
    bucket: tuple[str, ...] = ()
    key: tuple[str, ...] = ("kms:Decrypt", "kms:GenerateDataKey")


_VENDED = _Rights(OBJECT_ACTIONS, bucket=("s3:GetBucketLocation",))

_RIGHTS: dict[RolePurpose, _Rights] = {
    RolePurpose.CATALOG: _VENDED,
    RolePurpose.OWN_ACCESS: _Rights(OWN_ACTIONS),
    RolePurpose.SIGNING: _Rights(OBJECT_ACTIONS),
    RolePurpose.VENDING: _VENDED,
    RolePurpose.MAINTENANCE: _Rights(
        ("s3:GetObject", "s3:GetObjectVersion", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"),
        listing=("s3:ListBucket", "s3:ListBucketVersions"),
    ),
    RolePurpose.SHARE: _Rights(("s3:GetObject",), bucket=("s3:GetBucketLocation",), key=("kms:Decrypt",)),
}


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


def principal_trust(principal_arn: str, external_id: str, *, ends: str | None = None) -> Policy:
    """Return the trust policy of a role for another principal than the catalog's, such as a consumer's.

    Args:
        principal_arn: The principal.
        external_id: External ID that the principal must name.
        ends: Time from which the role cannot be assumed, RFC 3339, UTC; None if it never ends.
    """
    statement = {
        "Sid": "PrincipalAssumes",
        "Effect": "Allow",
        "Principal": {"AWS": principal_arn},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
    }
    return {"Version": "2012-10-17", "Statement": _end_statements([statement], ends)}


def access_policy(
    bucket: str,
    key_prefix: str,
    kms_key_arn: str | None = None,
    *,
    region: str,
    purpose: RolePurpose = RolePurpose.CATALOG,
    ends: str | None = None,
) -> Policy:
    """Return the policy of access to `BUCKET/KEY_PREFIX/*` for a purpose.

    With `ends` (RFC 3339, UTC), open sessions of the role lose their rights at that time, too.
    """
    arn, rights = bucket_arn(bucket, region), _RIGHTS[purpose]
    statements: list[dict[str, Any]] = [
        {
            "Sid": "WarehouseObjects",
            "Effect": "Allow",
            "Action": list(rights.objects),
            "Resource": f"{arn}/{key_prefix}/*",
        },
        {
            "Sid": "WarehouseListing",
            "Effect": "Allow",
            "Action": _as_written(rights.listing),
            "Resource": arn,
            "Condition": {"StringLike": {"s3:prefix": f"{key_prefix}/*"}},
        },
    ]
    if rights.bucket:
        statements.append(
            {"Sid": "BucketLocation", "Effect": "Allow", "Action": _as_written(rights.bucket), "Resource": arn}
        )
    if kms_key_arn:
        statements.append(
            {
                "Sid": "BucketKey",
                "Effect": "Allow",
                "Action": list(rights.key),
                "Resource": kms_key_arn,
                "Condition": key_conditions(arn, key_prefix, region),
            }
        )
    return {"Version": "2012-10-17", "Statement": _end_statements(statements, ends)}


def _end_statements(statements: list[dict[str, Any]], ends: str | None) -> list[dict[str, Any]]:
    """Return statements that allow nothing from a time on."""
    if ends is None:
        return statements
    limit = {"DateLessThan": {CURRENT_TIME: ends}}
    return [{**statement, "Condition": {**statement.get("Condition", {}), **limit}} for statement in statements]


def find_end(policy: Policy) -> str | None:
    """Return the time from which a policy of `access_policy` allows nothing; None if it never ends."""
    for statement in policy.get("Statement", []):
        if ends := statement.get("Condition", {}).get("DateLessThan", {}).get(CURRENT_TIME):
            return str(ends)
    return None


def key_conditions(arn: str, key_prefix: str, region: str) -> dict[str, Any]:
    """Return conditions that limit the key to S3 and the warehouse's objects, or to the bucket with a bucket key.

    Source: KMS, "kms:ViaService" and "kms:EncryptionContext:context-key"; S3, "Using server-side encryption with KMS".
    """
    hosts = [service_host("s3", region)]
    if find_partition(region) == "aws-cn":
        hosts.append(f"s3.{region}.amazonaws.com")  # KMS documents one form for all partitions
    return {
        "StringEquals": {"kms:ViaService": hosts[0] if len(hosts) == 1 else hosts},
        "StringLike": {"kms:EncryptionContext:aws:s3:arn": [arn, f"{arn}/{key_prefix}/*"]},
    }


def _as_written(actions: tuple[str, ...]) -> str | list[str]:
    return actions[0] if len(actions) == 1 else list(actions)
