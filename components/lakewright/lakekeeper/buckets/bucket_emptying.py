"""Empty a key prefix of a bucket of the stack, and delete an empty bucket."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.buckets.own_bucket import (
    NO_BUCKET,
    ObjectVersion,
    OwnBucket,
    describe_contents,
    entries,
    entries_outside,
    open_client,
    read_code,
)
from lakewright.lakekeeper.provider.diagnostics import note
from lakewright.lakekeeper.provider.errors import BucketRefusedError, StillHeldError
from lakewright.names.types import is_prefix_within

MAX_OBJECTS_PER_CALL = 1000
"""Objects in one DeleteObjects call, S3's limit."""


def empty(bucket: OwnBucket, key_prefix: str, spared: Sequence[str] = ()) -> None:
    """Delete every object, old version and delete marker under a key prefix, and nothing else.

    Args:
        bucket: The bucket. A missing bucket counts as empty.
        key_prefix: Without slashes at its ends; never empty.
        spared: Key prefixes of other warehouses. If one equals or contains `key_prefix`, nothing is deleted.

    Raises:
        BucketRefusedError: The prefix is empty, S3 refused a call, or it kept an object.
    """
    if not key_prefix:
        raise BucketRefusedError(
            f"{bucket.where} was not emptied: expected the key prefix of a warehouse, found none. Give the warehouse a"
            " `key_prefix` and run `up`."
        )
    if any(is_prefix_within(key_prefix, other) for other in spared):
        return
    with raise_refusals(f"emptying {key_prefix}/ of {bucket.where}"):
        client = open_client(bucket)
        versions = entries_outside(client, bucket.bucket, f"{key_prefix}/", [f"{other}/" for other in spared])
        _delete(client, bucket, versions)


def delete_unless_held(bucket: OwnBucket, kept_warehouses: Sequence[str]) -> None:
    """Delete an empty bucket; keep a bucket with the data of the warehouses in `kept_warehouses`.

    Raises:
        StillHeldError: The bucket holds data of no purged warehouse.
    """
    if kept_warehouses:
        note(f"{bucket.where} is kept: `deletion: retain` keeps the data of warehouse {', '.join(kept_warehouses)}")
    elif content := describe_contents(bucket):
        raise StillHeldError(
            f"{bucket.where} is not deleted, since it holds {content}, which belongs to no purged warehouse."
            " Delete these objects, and run the command again."
        )
    else:
        delete_bucket(bucket)


def delete_bucket(bucket: OwnBucket) -> None:
    """Delete a bucket that contains at most deleted validation objects. Succeed if it does not exist.

    Raises:
        BucketRefusedError: S3 refused the call.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    with raise_refusals(f"deleting {bucket.where}"):
        client = open_client(bucket)
        _delete(client, bucket, (entry for entry in entries(client, bucket.bucket, "") if entry.is_deleted_probe))
        try:
            client.delete_bucket(Bucket=bucket.bucket)
        except ClientError as error:
            if read_code(error) not in NO_BUCKET:
                raise


def _delete(client: Any, bucket: OwnBucket, versions: Iterator[ObjectVersion]) -> None:
    while batch := list(islice(versions, MAX_OBJECTS_PER_CALL)):
        objects = [{"Key": entry.key, "VersionId": entry.version} for entry in batch]
        response = client.delete_objects(Bucket=bucket.bucket, Delete={"Objects": objects, "Quiet": True})
        _require_no_errors(bucket, response)


def _require_no_errors(bucket: OwnBucket, response: dict[str, Any]) -> None:
    for error in response.get("Errors", []):
        raise BucketRefusedError(
            f"emptying {bucket.where}: S3 responded {error['Code']} for {error['Key']}. Let the stack's identity delete"
            " object versions, and run the command again."
        )


@contextmanager
def raise_refusals(doing: str) -> Generator[None]:
    """Raise BucketRefusedError with the name of the operation if AWS refuses a call of the block."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    try:
        yield
    except ClientError as error:
        code = read_code(error)
        raise BucketRefusedError(
            f"{doing}: S3 responded {code}. Check the permissions of the stack's identity."
        ) from None
    except (BotoCoreError, UnresolvedCredentialError) as error:
        raise BucketRefusedError(f"{doing}: {' '.join(str(error).split())}") from None
