"""The stack's own KMS key of a bucket: whether objects need it, and its deletion."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from lakewright.lakekeeper.buckets.bucket_emptying import refused
from lakewright.lakekeeper.buckets.own_bucket import (
    NO_BUCKET,
    ObjectVersion,
    OwnBucket,
    client_of,
    code_of,
    entries,
    listing,
)
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.ownership.consent import Consent, ConsentKind
from lakewright.ownership.mark import Claimant, Ownership, parse_tags
from lakewright.ownership.marked_object import MarkedObject

LOOKED_AT = 20_000
"""Limit of objects checked for their key, one call each. A bucket with more counts as encrypted with the key."""
PAGE = 1000
"""Objects that are checked before the next ones are listed."""
AT_A_TIME = 10
"""Concurrent calls, as many as a client has connections."""

T = TypeVar("T")


def alias_of(bucket: str) -> str:
    """Return the alias of the key that the stack creates for a bucket."""
    return f"alias/{bucket}".replace(".", "-")


def description_of(bucket: str) -> str:
    """Return the description of the key that the stack creates for a bucket. It identifies the key."""
    return f"Encrypts bucket {bucket}"


def encrypted(own: OwnBucket) -> str | None:
    """Find an object that is encrypted with a KMS key.

    A bucket with a key of the stack has no other default KMS key, so any KMS key counts.

    Returns:
        The object's key; None if there is no such object or bucket.

    Raises:
        CannotCountError: The bucket cannot be listed, or contains too many objects to check each of them.
    """
    with listing(own), ThreadPoolExecutor(AT_A_TIME) as pool:
        client = client_of(own)
        objects = (entry for entry in entries(client, own.bucket, "") if not entry.is_marker)
        looked = 0
        while looked < LOOKED_AT and (page := list(islice(objects, min(PAGE, LOOKED_AT - looked)))):
            looked += len(page)
            answers = pool.map(partial(_is_encrypted, client, own), page)
            if found := next((entry for entry, is_encrypted in zip(page, answers, strict=True) if is_encrypted), None):
                return found.key
        is_more = next(objects, None) is not None
    if is_more:
        raise CannotCountError(
            f"{own.where} holds more than {LOOKED_AT} objects and versions, too many to check the key of each one."
        )
    return None


def _is_encrypted(client: Any, own: OwnBucket, entry: ObjectVersion) -> bool:
    """Return whether a version is encrypted with a KMS key. A version deleted since the listing is not."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    try:
        head = client.head_object(Bucket=own.bucket, Key=entry.key, VersionId=entry.version)
    except ClientError as error:
        if code_of(error) not in {*NO_BUCKET, "NoSuchKey", "NoSuchVersion"}:
            raise
        return False
    return str(head.get("ServerSideEncryption", "")).startswith("aws:kms")


def is_default(own: OwnBucket, key_id: str) -> bool:
    """Return whether a bucket encrypts new objects with a key; False if it does not exist. Raises CannotCountError."""
    return any(key.rpartition("/")[2] == key_id for key in _default_keys(own))


def _default_keys(own: OwnBucket) -> list[str]:
    """Return the KMS keys that a bucket encrypts new objects with: one or none."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    with listing(own):
        try:
            found = client_of(own).get_bucket_encryption(Bucket=own.bucket)
        except ClientError as error:
            if code_of(error) not in {*NO_BUCKET, "ServerSideEncryptionConfigurationNotFoundError"}:
                raise
            return []
    rules = found["ServerSideEncryptionConfiguration"]["Rules"]
    keys = [rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID") or "" for rule in rules]
    return [key for key in keys if key]


def find_marked_key(own: OwnBucket, key_id: str) -> MarkedObject:
    """Return the key of a bucket with its mark, which is empty if the key does not exist.

    Raises:
        BucketRefusedError: KMS refused to list the tags.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    tags: dict[str, str] = {}
    with refused(f"reading the tags of KMS key {key_id} of {own.where}"):
        try:
            listed = client_of(own, "kms").list_resource_tags(KeyId=key_id)["Tags"]
            tags = {tag["TagKey"]: tag["TagValue"] for tag in listed}
        except ClientError as error:
            if code_of(error) != "NotFoundException":
                raise
    names = (alias_of(own.bucket), key_id)
    consents = (Consent(ConsentKind.BUCKET, own.bucket), *(Consent(ConsentKind.KEY, name) for name in names))
    return MarkedObject(f"KMS key {key_id} of {own.where}", parse_tags(tags), consents)


def is_own_default(own: OwnBucket) -> bool:
    """Return whether a bucket encrypts new objects with a key that the stack created for it.

    An identity without access to the key did not create it.

    Raises:
        CannotCountError: The bucket's encryption cannot be read.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    for key in _default_keys(own):
        with listing(own):
            try:
                found = client_of(own, "kms").describe_key(KeyId=key)["KeyMetadata"]
            except ClientError as error:
                if code_of(error) not in {"AccessDeniedException", "AccessDenied", "NotFoundException"}:
                    raise
                continue
        if found.get("Description") == description_of(own.bucket):
            return True
    return False


def find_left_over_keys(own: OwnBucket, claimant: Claimant) -> list[str]:
    """Return the ids of the keys that a stack created for a bucket, for a bucket that an interrupted run left.

    Each key of the region is compared: the run may have ended before it made the key's alias. An identity that may
    not list keys or their tags created none.

    Raises:
        BucketRefusedError: KMS refused a call for another reason.
    """
    with refused(f"looking up the KMS keys of {own.where}"):
        kms = client_of(own, "kms")
        pages = kms.get_paginator("list_keys").paginate()
        key_ids = _unless_denied(lambda: [key["KeyId"] for page in pages for key in page["Keys"]], [])
        return [key_id for key_id in key_ids if _is_left_over(kms, own, key_id, claimant)]


def _is_left_over(kms: Any, own: OwnBucket, key_id: str, claimant: Claimant) -> bool:
    found = _unless_denied(lambda: kms.describe_key(KeyId=key_id)["KeyMetadata"], {})
    if found.get("Description") != description_of(own.bucket) or found.get("KeyState") == "PendingDeletion":
        return False
    return find_marked_key(own, key_id).mark.compare(claimant) is Ownership.OWN


def _unless_denied(call: Callable[[], T], if_denied: T) -> T:
    """Return the result of a call to KMS, or another value if the identity may not make it."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    try:
        return call()
    except ClientError as error:
        if code_of(error) not in {"AccessDeniedException", "AccessDenied", "NotFoundException"}:
            raise
        return if_denied


def end_key(own: OwnBucket, key_id: str) -> None:
    """Schedule the deletion of a key, and delete its alias, which a new key of the bucket may need.

    Raises:
        BucketRefusedError: KMS refused a call.
    """
    with refused(f"scheduling the deletion of KMS key {key_id} of {own.where}"):
        kms = client_of(own, "kms")
        _ignoring(lambda: kms.delete_alias(AliasName=alias_of(own.bucket)), "NotFoundException")
        _ignoring(lambda: kms.schedule_key_deletion(KeyId=key_id), "NotFoundException", "KMSInvalidStateException")


def _ignoring(call: Any, *codes: str) -> None:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    try:
        call()
    except ClientError as error:
        if code_of(error) not in codes:
            raise
