"""The role that the owner of a bucket is asked to make: its trust policy and its permission policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from lakewright_spark.aws_partition import bucket_arn

from lakewright.aws.access import DEFAULT_SESSION_SECONDS, Policy, access_policy, trust_policy
from lakewright.storage.existing import ExistingStorage

DELETE_OBJECT = "s3:DeleteObject"


@dataclass(frozen=True)
class RoleRequest:
    """Values that the owner of a bucket needs to make the role of a storage."""

    tenant: str
    storage: str
    """Name of the storage in the spec."""
    bucket: str
    region: str
    key_prefixes: tuple[str, ...]
    external_id: str
    principal_arn: str
    """The AWS identity that assumes the role: the catalog's."""
    kms_key_arn: str | None = None
    session_tags: bool = False
    may_delete: bool = True
    session_seconds: int = DEFAULT_SESSION_SECONDS
    """Longest session that a warehouse of the storage asks for, in seconds."""

    @property
    def role(self) -> str:
        """Name of the role."""
        return f"lakewright.{self.tenant}.{self.storage}"

    @property
    def trust(self) -> Policy:
        """Trust policy: only the catalog's identity with the external ID."""
        return trust_policy(self.principal_arn, self.external_id, session_tags=self.session_tags)

    @property
    def permissions(self) -> Policy:
        """Permission policy: only the key prefixes of the storage's warehouses."""
        return permission_policy(
            self.bucket, self.key_prefixes, self.kms_key_arn, region=self.region, may_delete=self.may_delete
        )


def make_request(
    tenant: str,
    name: str,
    storage: ExistingStorage,
    *,
    key_prefixes: Sequence[str],
    external_id: str,
    principal_arn: str,
    session_tags: bool,
    session_seconds: int,
) -> RoleRequest:
    """Return the request for the role of a storage."""
    return RoleRequest(
        tenant,
        name,
        storage.bucket,
        storage.region,
        tuple(key_prefixes),
        external_id,
        principal_arn,
        storage.kms_key_arn,
        session_tags,
        storage.may_delete,
        session_seconds,
    )


def permission_policy(
    bucket: str, key_prefixes: Sequence[str], kms_key_arn: str | None = None, *, region: str, may_delete: bool = True
) -> Policy:
    """Return the policy of access to several key prefixes of a bucket.

    Without `may_delete`, objects cannot be deleted, except objects that Lakekeeper writes to validate the storage.
    """
    policies = [access_policy(bucket, prefix, kms_key_arn, region=region) for prefix in key_prefixes]
    merged = _merge(policies)
    return merged if may_delete else _drop_deletion(merged, bucket_arn(bucket, region), key_prefixes)


def probe_keys(arn: str, key_prefix: str) -> str:
    """Return the ARN of the objects that Lakekeeper writes, reads and deletes when it validates a storage.

    Source: Lakekeeper 0.11 to 0.14, `StorageProfile::validate_access`: PREFIX/UUID/UUID/metadata/test, and the same
    below `vended-test/`. No file of an Iceberg table has this name.
    """
    return f"{arn}/{key_prefix}/*/metadata/test"


def _merge(policies: Sequence[Policy]) -> Policy:
    """Merge policies that differ in their resources and prefixes only, statement by statement."""
    statements = [
        _merge_values([cast(dict[str, Any], statement) for statement in same])
        for same in zip(*(policy["Statement"] for policy in policies), strict=True)
    ]
    return {**policies[0], "Statement": statements}


def _merge_values(values: Sequence[Any]) -> Any:
    """Return equal values once, mappings merged by key, and other values as a list without duplicates."""
    first = values[0]
    if all(value == first for value in values):
        return first
    if isinstance(first, dict):
        keys = cast(dict[str, Any], first)
        return {key: _merge_values([value[key] for value in values]) for key in keys}
    lists = [cast(list[Any], value) if isinstance(value, list) else [value] for value in values]
    return list(dict.fromkeys(item for items in lists for item in items))


def _drop_deletion(policy: Policy, arn: str, key_prefixes: Sequence[str]) -> Policy:
    probes = [probe_keys(arn, prefix) for prefix in key_prefixes]
    return {
        **policy,
        "Statement": [
            *(_drop_action(statement, DELETE_OBJECT) for statement in policy["Statement"]),
            {
                "Sid": "ValidationProbes",
                "Effect": "Allow",
                "Action": DELETE_OBJECT,
                "Resource": probes[0] if len(probes) == 1 else probes,
            },
        ],
    }


def _drop_action(statement: dict[str, Any], action: str) -> dict[str, Any]:
    actions = statement["Action"]
    return statement | {"Action": [name for name in actions if name != action]} if action in actions else statement
