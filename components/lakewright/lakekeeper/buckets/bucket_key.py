"""The stack's own KMS key of a bucket: its alias, whether objects need it, and its deletion."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from lakewright.lakekeeper.buckets.bucket_emptying import raise_refusals
from lakewright.lakekeeper.buckets.own_bucket import (
    NO_BUCKET,
    ObjectVersion,
    OwnBucket,
    entries,
    open_client,
    raise_uncounted,
    read_code,
)
from lakewright.lakekeeper.provider.errors import BucketRefusedError, CannotCountError
from lakewright.ownership.consent import Consent, ConsentKind
from lakewright.ownership.mark import Claimant, Ownership, parse_tags
from lakewright.ownership.marked_object import MarkedObject

MAX_CHECKED_OBJECTS = 20_000
"""Limit of objects checked for their key, one call each. A bucket with more counts as encrypted with the key."""
PAGE = 1000
"""Objects that are checked before the next objects are listed."""
CONCURRENT_CALLS = 10
"""Concurrent calls, as many as a client has connections."""

_DESCRIPTION = "Encrypts bucket "

T = TypeVar("T")


def name_alias(bucket: str) -> str:
    """Return the alias of the key that the stack creates for a bucket. `a.b` and `a-b` have one alias."""
    return f"alias/{bucket}".replace(".", "-")


def describe_key(bucket: str) -> str:
    """Return the description of the key that the stack creates for a bucket. It identifies the key."""
    return f"{_DESCRIPTION}{bucket}"


def find_described_bucket(description: str) -> str | None:
    """Return the bucket that the description of a key names; None for another description."""
    return description.removeprefix(_DESCRIPTION) if description.startswith(_DESCRIPTION) else None


def refuse_taken_aliases(buckets: Iterable[OwnBucket], earlier: Iterable[OwnBucket]) -> None:
    """Raise BucketRefusedError if a bucket's key would have the alias of another bucket's key.

    Args:
        buckets: Buckets whose keys the stack creates, in this run or earlier.
        earlier: Buckets whose keys the stack created earlier.
    """
    buckets_by_alias = {(bucket.region, name_alias(bucket.bucket)): bucket.bucket for bucket in earlier}
    earlier_names = set(buckets_by_alias.values())
    for bucket in buckets:
        if bucket.bucket in earlier_names:
            continue
        alias = name_alias(bucket.bucket)
        alias_bucket = buckets_by_alias.setdefault(
            (bucket.region, alias), _find_alias_bucket(bucket, alias) or bucket.bucket
        )
        if alias_bucket != bucket.bucket:
            raise BucketRefusedError(
                f"the KMS key of {bucket.where} would have the alias `{alias}`, which the key of bucket"
                f" `{alias_bucket}` has: an alias has `-` in place of `.`. Nothing was changed. Use another bucket"
                " name, or the ARN of a key that you create in `encryption: {kms: ARN}`."
            )


def _find_alias_bucket(bucket: OwnBucket, alias: str) -> str | None:
    """Return the bucket whose key has an alias in the region of a bucket; None if no such key can be seen."""
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - slow to load

    with raise_refusals(f"looking up the alias of the KMS key of {bucket.where}"):
        kms = open_client(bucket, "kms")
        try:
            metadata = _unless_denied(lambda: kms.describe_key(KeyId=alias)["KeyMetadata"], {})
        except BotoCoreError:
            # Without an identity or a connection, the stack's `aws` provider fails before it makes a key.
            return None
    return find_described_bucket(str(metadata.get("Description", "")))


def find_encrypted_object(bucket: OwnBucket) -> str | None:
    """Find an object that is encrypted with a KMS key.

    A bucket with a key of the stack has no other default KMS key, so any KMS key counts.

    Returns:
        The object's key; None if there is no such object or bucket.

    Raises:
        CannotCountError: The bucket cannot be listed, or contains too many objects to check each of them.
    """
    with raise_uncounted(bucket), ThreadPoolExecutor(CONCURRENT_CALLS) as pool:
        client = open_client(bucket)
        objects = (entry for entry in entries(client, bucket.bucket, "") if not entry.is_marker)
        looked = 0
        while looked < MAX_CHECKED_OBJECTS and (page := list(islice(objects, min(PAGE, MAX_CHECKED_OBJECTS - looked)))):
            looked += len(page)
            responses = pool.map(partial(_is_encrypted, client, bucket), page)
            if entry := next(
                (entry for entry, is_encrypted in zip(page, responses, strict=True) if is_encrypted), None
            ):
                return entry.key
        is_more = next(objects, None) is not None
    if is_more:
        raise CannotCountError(
            f"{bucket.where} holds more than {MAX_CHECKED_OBJECTS} objects and versions, too many to check the key"
            " of each."
        )
    return None


def _is_encrypted(client: Any, bucket: OwnBucket, entry: ObjectVersion) -> bool:
    """Return whether a version is encrypted with a KMS key. A version deleted since the listing is not."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    try:
        head = client.head_object(Bucket=bucket.bucket, Key=entry.key, VersionId=entry.version)
    except ClientError as error:
        if read_code(error) not in {*NO_BUCKET, "NoSuchKey", "NoSuchVersion"}:
            raise
        return False
    return str(head.get("ServerSideEncryption", "")).startswith("aws:kms")


def is_default(bucket: OwnBucket, key_id: str) -> bool:
    """Return whether a bucket encrypts new objects with a key; False if it does not exist. Raises CannotCountError."""
    return any(key.rpartition("/")[2] == key_id for key in _default_keys(bucket))


def _default_keys(bucket: OwnBucket) -> list[str]:
    """Return the KMS keys that a bucket encrypts new objects with: at most one key."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    with raise_uncounted(bucket):
        try:
            encryption = open_client(bucket).get_bucket_encryption(Bucket=bucket.bucket)
        except ClientError as error:
            if read_code(error) not in {*NO_BUCKET, "ServerSideEncryptionConfigurationNotFoundError"}:
                raise
            return []
    rules = encryption["ServerSideEncryptionConfiguration"]["Rules"]
    keys = [rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID") or "" for rule in rules]
    return [key for key in keys if key]


def find_marked_key(bucket: OwnBucket, key_id: str) -> MarkedObject:
    """Return the key of a bucket with its mark, which is empty if the key does not exist.

    Raises:
        BucketRefusedError: KMS refused to list the tags.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    tags: dict[str, str] = {}
    with raise_refusals(f"reading the tags of KMS key {key_id} of {bucket.where}"):
        try:
            tag_list = open_client(bucket, "kms").list_resource_tags(KeyId=key_id)["Tags"]
            tags = {tag["TagKey"]: tag["TagValue"] for tag in tag_list}
        except ClientError as error:
            if read_code(error) != "NotFoundException":
                raise
    names = (name_alias(bucket.bucket), key_id)
    consents = (Consent(ConsentKind.BUCKET, bucket.bucket), *(Consent(ConsentKind.KEY, name) for name in names))
    return MarkedObject(f"KMS key {key_id} of {bucket.where}", parse_tags(tags), consents)


def is_own_default(bucket: OwnBucket) -> bool:
    """Return whether a bucket encrypts new objects with a key that the stack created for it.

    An identity without access to the key did not create it.

    Raises:
        CannotCountError: The bucket's encryption cannot be read.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    for key in _default_keys(bucket):
        with raise_uncounted(bucket):
            try:
                metadata = open_client(bucket, "kms").describe_key(KeyId=key)["KeyMetadata"]
            except ClientError as error:
                if read_code(error) not in {"AccessDeniedException", "AccessDenied", "NotFoundException"}:
                    raise
                continue
        if metadata.get("Description") == describe_key(bucket.bucket):
            return True
    return False


def find_left_over_keys(bucket: OwnBucket, claimant: Claimant) -> list[str]:
    """Return the ids of the keys that a stack created for a bucket, for a bucket that an interrupted run left.

    Each key of the region is compared: the run may have ended before it made the key's alias. An identity that may
    not list keys or their tags created none.

    Raises:
        BucketRefusedError: KMS refused a call for another reason.
    """
    with raise_refusals(f"looking up the KMS keys of {bucket.where}"):
        kms = open_client(bucket, "kms")
        pages = kms.get_paginator("list_keys").paginate()
        key_ids = _unless_denied(lambda: [key["KeyId"] for page in pages for key in page["Keys"]], [])
        return [key_id for key_id in key_ids if _is_left_over(kms, bucket, key_id, claimant)]


def _is_left_over(kms: Any, bucket: OwnBucket, key_id: str, claimant: Claimant) -> bool:
    metadata = _unless_denied(lambda: kms.describe_key(KeyId=key_id)["KeyMetadata"], {})
    if metadata.get("Description") != describe_key(bucket.bucket) or metadata.get("KeyState") == "PendingDeletion":
        return False
    return find_marked_key(bucket, key_id).mark.compare(claimant) is Ownership.OWN


def _unless_denied(call: Callable[[], T], if_denied: T) -> T:
    """Return the result of a call to KMS, or another value if the identity may not make it."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    try:
        return call()
    except ClientError as error:
        if read_code(error) not in {"AccessDeniedException", "AccessDenied", "NotFoundException"}:
            raise
        return if_denied


def end_key(bucket: OwnBucket, key_id: str) -> None:
    """Schedule the deletion of a key, and delete its alias, which a new key of the bucket may need.

    An alias of the same name that targets another key is kept.

    Raises:
        BucketRefusedError: KMS refused a call.
    """
    with raise_refusals(f"scheduling the deletion of KMS key {key_id} of {bucket.where}"):
        kms = open_client(bucket, "kms")
        _ignore_codes(lambda: _delete_alias(kms, name_alias(bucket.bucket), key_id), "NotFoundException")
        _ignore_codes(lambda: kms.schedule_key_deletion(KeyId=key_id), "NotFoundException", "KMSInvalidStateException")


def _delete_alias(kms: Any, alias: str, key_id: str) -> None:
    # A key that may not be described is compared by AWS alone, as before.
    target = _unless_denied(lambda: kms.describe_key(KeyId=alias)["KeyMetadata"]["KeyId"], "")
    if target in {"", key_id} or key_id.endswith(f"/{target}"):
        kms.delete_alias(AliasName=alias)


def _ignore_codes(call: Any, *codes: str) -> None:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    try:
        call()
    except ClientError as error:
        if read_code(error) not in codes:
            raise
