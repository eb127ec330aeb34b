"""The events of CloudTrail that change a property of an AWS object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.drift.actors.source import DriftedObject
from lakewright.drift.model import Actor, DifferenceKind
from lakewright.validation.documents import as_mapping

SOURCE = "cloudtrail"


@dataclass(frozen=True)
class _Kind:
    """A kind of resource: the events that change its properties."""

    changes: Mapping[str, tuple[str, ...]]
    """Names of events by property; `*` for all others."""
    deletions: tuple[str, ...]
    """Names of events that delete the object."""
    parameters: Mapping[str, int | None]
    """Request parameter -> part of the id, which has colons between its parts; None for the whole id."""


_BUCKET: Mapping[str, int | None] = {"bucketName": None}
_ROLE: Mapping[str, int | None] = {"roleName": None}
_KEY: Mapping[str, int | None] = {"keyId": None}


def _make_setting_kind(put: str, delete: str) -> _Kind:
    """Return a setting of a bucket, which is written as a whole and deleted with its bucket."""
    return _Kind({"*": (put, delete)}, (delete, "DeleteBucket"), _BUCKET)


_KINDS: dict[str, _Kind] = {
    "aws:s3/bucket:Bucket": _Kind(
        {"tags": ("PutBucketTagging", "DeleteBucketTagging"), "tagsAll": ("PutBucketTagging", "DeleteBucketTagging")},
        ("DeleteBucket",),
        _BUCKET,
    ),
    "aws:s3/bucketVersioning:BucketVersioning": _make_setting_kind("PutBucketVersioning", "DeleteBucket"),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _make_setting_kind(
        "PutBucketEncryption", "DeleteBucketEncryption"
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _make_setting_kind(
        "PutBucketPublicAccessBlock", "DeleteBucketPublicAccessBlock"
    ),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": _make_setting_kind(
        "PutBucketOwnershipControls", "DeleteBucketOwnershipControls"
    ),
    "aws:s3/bucketPolicy:BucketPolicy": _make_setting_kind("PutBucketPolicy", "DeleteBucketPolicy"),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _make_setting_kind(
        "PutBucketLifecycle", "DeleteBucketLifecycle"
    ),
    "aws:s3/bucketLogging:BucketLogging": _Kind(
        {"*": ("PutBucketLogging",)}, ("PutBucketLogging", "DeleteBucket"), _BUCKET
    ),
    "aws:iam/role:Role": _Kind(
        {
            "assumeRolePolicy": ("UpdateAssumeRolePolicy",),
            "description": ("UpdateRole", "UpdateRoleDescription"),
            "maxSessionDuration": ("UpdateRole",),
            "permissionsBoundary": ("PutRolePermissionsBoundary", "DeleteRolePermissionsBoundary"),
            "tags": ("TagRole", "UntagRole"),
            "tagsAll": ("TagRole", "UntagRole"),
        },
        ("DeleteRole",),
        _ROLE,
    ),
    "aws:iam/rolePolicy:RolePolicy": _Kind(
        {"policy": ("PutRolePolicy",)}, ("DeleteRolePolicy",), {"roleName": 0, "policyName": 1}
    ),
    "aws:kms/key:Key": _Kind(
        {
            "description": ("UpdateKeyDescription",),
            "enableKeyRotation": ("EnableKeyRotation", "DisableKeyRotation"),
            "isEnabled": ("EnableKey", "DisableKey"),
            "policy": ("PutKeyPolicy",),
            "tags": ("TagResource", "UntagResource"),
            "tagsAll": ("TagResource", "UntagResource"),
        },
        ("ScheduleKeyDeletion",),
        _KEY,
    ),
    "aws:kms/alias:Alias": _Kind({"targetKeyId": ("UpdateAlias",)}, ("DeleteAlias",), {"aliasName": None}),
}
"""Kinds by type token. Nothing is known about the events of others."""


def is_known(drifted: DriftedObject) -> bool:
    """Return whether an event could explain a difference."""
    return bool(_event_names(drifted))


def is_cause(event: Mapping[str, Any], drifted: DriftedObject) -> bool:
    """Return whether an event made a difference: it succeeded, and changed this property of this object."""
    if event.get("errorCode") or event.get("eventName") not in _event_names(drifted):
        return False
    parameters = as_mapping(event.get("requestParameters"))
    parts = drifted.resource.state.id.split(":")
    expected = {
        name: drifted.resource.state.id if part is None else (parts[part] if part < len(parts) else None)
        for name, part in _KINDS[drifted.difference.type].parameters.items()
    }
    # A key may be named by its ARN, which ends with its id.
    return all(
        value
        and (parameters.get(name) == value or (name == "keyId" and str(parameters.get(name)).endswith(f":key/{value}")))
        for name, value in expected.items()
    )


def read_actor(event: Mapping[str, Any]) -> Actor | None:
    """Return the identity that an event names; None if it names none."""
    identity = as_mapping(event.get("userIdentity"))
    name = identity.get("arn") or identity.get("invokedBy") or identity.get("userName") or identity.get("principalId")
    at = event.get("eventTime")
    return Actor(name, at, SOURCE) if isinstance(name, str) and isinstance(at, str) else None


def resource_name(drifted: DriftedObject) -> str:
    """Return the name under which the event history lists an object: a bucket, role, key id or alias."""
    resource = drifted.resource.state
    return resource.id.partition(":")[0] if resource.type == "aws:iam/rolePolicy:RolePolicy" else resource.id


def _event_names(drifted: DriftedObject) -> tuple[str, ...]:
    kind = _KINDS.get(drifted.difference.type)
    if kind is None:
        return ()
    if drifted.difference.kind is DifferenceKind.GONE:
        return kind.deletions
    if drifted.difference.kind is not DifferenceKind.CHANGED:
        return ()
    name = drifted.difference.property.replace("[", ".").partition(".")[0]
    return kind.changes.get(name, kind.changes.get("*", ()))
