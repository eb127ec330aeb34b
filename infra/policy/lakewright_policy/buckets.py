"""Rules on buckets: not public, and encrypted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from lakewright_policy.conditions import limits_callers
from lakewright_policy.policy_documents import find_allowing_statements
from lakewright_policy.resource import UNKNOWN, CheckedResource, ResourceRule, StackRule, as_mapping, items

_BUCKET = re.compile(r"aws:s3/bucket(V2)?:Bucket(V2)?")
_BLOCK = re.compile(r"aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock")
_ENCRYPTION = re.compile(
    r"aws:s3/bucketServerSideEncryptionConfiguration(V2)?:BucketServerSideEncryptionConfiguration(V2)?"
)
_ACL = r"aws:s3/bucketAcl(V2)?:BucketAcl(V2)?"
_POLICY = (
    r"aws:s3/bucketPolicy:BucketPolicy|aws:s3/accessPoint:AccessPoint"
    r"|aws:s3control/accessPointPolicy:AccessPointPolicy"
)
_OPEN_ACLS = frozenset({"public-read", "public-read-write", "authenticated-read"})
_OPEN_GROUPS = ("/global/AllUsers", "/global/AuthenticatedUsers")
_BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")


def _public(resource: CheckedResource) -> Iterator[str]:
    if _BLOCK.fullmatch(resource.type):
        if off := [name for name in _BLOCKS if resource.is_known(name) and resource.props.get(name) is not True]:
            yield f"the bucket may become public: set {', '.join(off)} to true"
        return
    acl = resource.props.get("acl")
    if isinstance(acl, str) and acl in _OPEN_ACLS:
        yield f"the ACL `{acl}` makes the bucket public: use bucket policies for the principals that need access"
    for grant in _grants(resource):
        if isinstance(grant, str) and grant.endswith(_OPEN_GROUPS):
            yield f"the ACL grants access to everyone ({grant.rpartition('/')[2]}): remove the grant"
    for statement in find_allowing_statements(resource.props.get("policy")):
        if statement.is_for_everyone and not limits_callers(statement.conditions):
            yield (
                f"statement {statement.label} of the bucket policy allows everyone: name the principals, or require a"
                " literal value of a key about the caller, such as `aws:PrincipalOrgID`"
            )


def _grants(resource: CheckedResource) -> Iterator[object]:
    for grant in items(as_mapping(resource.props.get("accessControlPolicy")).get("grants")):
        yield as_mapping(as_mapping(grant).get("grantee")).get("uri")
    for grant in items(resource.props.get("grants")):
        yield as_mapping(grant).get("uri")


def _belongs(setting: CheckedResource, bucket: CheckedResource) -> bool:
    """Return whether a setting is one of a bucket: it depends on it, or names it."""
    bucket_name = setting.props.get("bucket")
    if bucket.urn in setting.needs.get("bucket", ()):
        return True
    return bucket_name is not UNKNOWN and bucket_name is not None and bucket_name == bucket.props.get("bucket")


def _require_setting(
    kind: re.Pattern[str], message: str
) -> Callable[[Sequence[CheckedResource]], Iterator[tuple[str, str]]]:
    def check(resources: Sequence[CheckedResource]) -> Iterator[tuple[str, str]]:
        settings = [resource for resource in resources if kind.fullmatch(resource.type)]
        for bucket in resources:
            if _BUCKET.fullmatch(bucket.type) and not any(_belongs(setting, bucket) for setting in settings):
                yield bucket.urn, message

    return check


PUBLIC_BUCKET = ResourceRule(
    "public-bucket",
    "Buckets are not public.",
    re.compile(f"{_BUCKET.pattern}|{_ACL}|{_POLICY}|{_BLOCK.pattern}"),
    _public,
)

BLOCKED_BUCKET = StackRule(
    "bucket-without-public-access-block",
    "Each bucket has a public access block.",
    _require_setting(_BLOCK, "the bucket has no BucketPublicAccessBlock: declare one with all four settings"),
)

ENCRYPTED_BUCKET = StackRule(
    "unencrypted-bucket",
    "Each bucket declares its encryption.",
    _require_setting(_ENCRYPTION, "the bucket declares no encryption: add a BucketServerSideEncryptionConfiguration"),
)
