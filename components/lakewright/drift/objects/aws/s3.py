"""Buckets and their settings: a list of buckets, then the calls that declared settings need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakewright.credentials.policy_fingerprint import normalize_policy
from lakewright.drift.objects.aws.account import AwsAccountReader, ReadRefusedError, explain_errors, find_region
from lakewright.drift.objects.aws.comparison import (
    ComparedProperty,
    is_as_declared,
    sort_rules,
    to_camel_case,
    to_tags,
)
from lakewright.drift.session import ScanSession, StackResource
from lakewright.validation.documents import as_list, as_mapping

Read = Callable[[Any, str], Mapping[str, Any]]
"""Reads the live properties of a bucket by an S3 client and the bucket's name."""

_BUCKET = ComparedProperty()
_REGION = ComparedProperty(computed=True, stored=True)


@dataclass(frozen=True)
class _Setting:
    """A kind of resource about a bucket."""

    properties: Mapping[str, ComparedProperty]
    read: Read


def _read_tags(s3: Any, bucket: str) -> Mapping[str, Any]:
    try:
        with explain_errors("S3"):
            return {"tags": to_tags(s3.get_bucket_tagging(Bucket=bucket)["TagSet"])}
    except ReadRefusedError as refused:
        if refused.code == "NoSuchTagSet":
            return {"tags": {}}
        raise


def _read_versioning(s3: Any, bucket: str) -> Mapping[str, Any]:
    status = s3.get_bucket_versioning(Bucket=bucket).get("Status") or "Disabled"
    return {"versioningConfiguration": {"status": status}}


def _read_encryption(s3: Any, bucket: str) -> Mapping[str, Any]:
    rules = as_list(s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"])
    return {"rules": [_to_encryption_rule(as_mapping(rule)) for rule in rules]}


def _to_encryption_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    default = as_mapping(rule.get("ApplyServerSideEncryptionByDefault"))
    blocked_types = as_mapping(rule.get("BlockedEncryptionTypes")).get("EncryptionType")
    compared_settings = {"ApplyServerSideEncryptionByDefault", "BucketKeyEnabled", "BlockedEncryptionTypes"}
    return {
        "applyServerSideEncryptionByDefault": {
            "kmsMasterKeyId": default.get("KMSMasterKeyID"),
            "sseAlgorithm": default.get("SSEAlgorithm"),
        },
        "bucketKeyEnabled": bool(rule.get("BucketKeyEnabled")),
        "blockedEncryptionTypes": blocked_types,
        # Settings of newer APIs differ from every declaration, so that the provider decides.
        **{key: value for key, value in rule.items() if key not in compared_settings},
    }


_SWITCHES = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")


def _read_public_access(s3: Any, bucket: str) -> Mapping[str, Any]:
    return to_camel_case(s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"])


def _read_ownership(s3: Any, bucket: str) -> Mapping[str, Any]:
    rules = s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]["Rules"]
    return {"rule": {"objectOwnership": rules[0]["ObjectOwnership"]}}


def _read_policy(s3: Any, bucket: str) -> Mapping[str, Any]:
    return {"policy": s3.get_bucket_policy(Bucket=bucket)["Policy"]}


def _read_lifecycle(s3: Any, bucket: str) -> Mapping[str, Any]:
    return {"rules": to_camel_case(s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"])}


def _read_logging(s3: Any, bucket: str) -> Mapping[str, Any]:
    return to_camel_case(as_mapping(s3.get_bucket_logging(Bucket=bucket).get("LoggingEnabled")))


_SETTINGS: dict[str, _Setting] = {
    "aws:s3/bucket:Bucket": _Setting(
        {"forceDestroy": ComparedProperty(default=False, stored=True), "tags": ComparedProperty(default={})}, _read_tags
    ),
    "aws:s3/bucketVersioning:BucketVersioning": _Setting(
        {"versioningConfiguration": ComparedProperty()}, _read_versioning
    ),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _Setting(
        {"rules": ComparedProperty()}, _read_encryption
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _Setting(
        {switch: ComparedProperty(default=False) for switch in _SWITCHES}, _read_public_access
    ),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": _Setting({"rule": ComparedProperty()}, _read_ownership),
    "aws:s3/bucketPolicy:BucketPolicy": _Setting({"policy": ComparedProperty(form=normalize_policy)}, _read_policy),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _Setting(
        {"rules": ComparedProperty(form=sort_rules)}, _read_lifecycle
    ),
    "aws:s3/bucketLogging:BucketLogging": _Setting(
        {"targetBucket": ComparedProperty(), "targetPrefix": ComparedProperty()}, _read_logging
    ),
}
"""Kinds by type token. A kind that is not here is compared by the provider."""


def may_differ(
    resources: Sequence[StackResource], account: AwsAccountReader, session: ScanSession
) -> list[StackResource]:
    """Return the resources that the provider must compare: all that are not surely as declared.

    Args:
        resources: Resources about buckets of the account.
        account: The account.
        session: The run.

    Raises:
        AccountUnreachableError: S3 does not respond.
    """
    names = _list_bucket_names(account)
    same = session.map(lambda resource: _is_same(resource, names, account), resources)
    return [resource for resource, is_same in zip(resources, same, strict=True) if not is_same]


def _list_bucket_names(account: AwsAccountReader) -> frozenset[str] | None:
    """Return the names of all buckets of the account; None if it does not let list them."""
    try:
        with explain_errors("S3"):
            pages = account.client("s3").get_paginator("list_buckets").paginate()
            return frozenset(str(bucket["Name"]) for page in pages for bucket in as_list(page.get("Buckets")))
    except ReadRefusedError:
        return None


def _is_same(resource: StackResource, names: frozenset[str] | None, account: AwsAccountReader) -> bool:
    state = resource.state
    setting = _SETTINGS.get(state.type)
    bucket = state.inputs.get("bucket")
    if setting is None or state.id != bucket or (names is not None and bucket not in names):
        return False
    try:
        with explain_errors("S3"):
            live = setting.read(account.client("s3", find_region(resource)), state.id)
    except ReadRefusedError:
        return False
    properties = {"bucket": _BUCKET, "region": _REGION, **setting.properties}
    return is_as_declared(state, properties, {"bucket": bucket, **live})
