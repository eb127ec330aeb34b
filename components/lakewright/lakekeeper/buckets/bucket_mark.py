"""Marks of buckets: read, compared, and released when a stack keeps a bucket but is destroyed."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.bucket_emptying import raise_refusals
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket, open_client
from lakewright.ownership.consent import Consent, ConsentKind
from lakewright.ownership.mark import MARK_TAGS, OwnershipMark, parse_tags
from lakewright.ownership.marked_object import MarkedObject

CONCURRENT_CALLS = 10
"""Concurrent calls."""
_SYSTEM_TAGS = "aws:"
"""Beginning of tags that AWS keeps when tags are replaced, and refuses in requests."""


def find_marked_bucket(bucket: OwnBucket) -> MarkedObject:
    """Return a bucket with its mark, which is empty if the bucket does not exist.

    Raises:
        CannotCountError: The tags cannot be read, so the owner is not known.
    """
    return MarkedObject(
        bucket.where, parse_tags(own_bucket.tags(bucket)), (Consent(ConsentKind.BUCKET, bucket.bucket),)
    )


def find_marked_buckets(buckets: Sequence[OwnBucket]) -> list[MarkedObject]:
    """Return buckets with their marks, in the same order. Raises the errors of `find_marked_bucket`."""
    if len(buckets) < 2:
        return [find_marked_bucket(bucket) for bucket in buckets]
    with ThreadPoolExecutor(CONCURRENT_CALLS) as pool:
        return [*pool.map(find_marked_bucket, buckets)]


def find_marked_logs(sources: Sequence[tuple[OwnBucket, str | None]]) -> list[MarkedObject]:
    """Return the buckets for logs, which are in the account of the buckets whose requests are logged.

    Args:
        sources: Buckets, each with the name of the bucket for its logs, if it is to be compared.

    Raises:
        CannotCountError: The tags cannot be read, so the owner is not known.
    """
    return find_marked_buckets([bucket.model_copy(update={"bucket": logs}) for bucket, logs in sources if logs])


def write_mark(bucket: OwnBucket, mark: OwnershipMark) -> None:
    """Replace the mark of a bucket, and keep its other tags.

    Raises:
        BucketRefusedError: S3 refused a call.
        CannotCountError: The tags cannot be read.
    """
    other_tags = {name: value for name, value in own_bucket.tags(bucket).items() if name not in MARK_TAGS}
    tags = {name: value for name, value in other_tags.items() if not name.startswith(_SYSTEM_TAGS)} | mark.to_tags()
    tag_set = [{"Key": name, "Value": value} for name, value in tags.items()]
    with raise_refusals(f"marking {bucket.where}"):
        open_client(bucket).put_bucket_tagging(Bucket=bucket.bucket, Tagging={"TagSet": tag_set})
