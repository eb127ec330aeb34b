"""Count the objects of buckets that the `aws` plugin deletes with all contents, such as purged log buckets."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from lakewright_engine.plans.deleted_contents import DeletedContents
from lakewright_engine.plans.state_version import content_hash

from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.errors import CannotCountError

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState

BUCKET_TYPE = "aws:s3/bucket:Bucket"
MOST_OBJECTS = 50_000
"""Most objects and versions that are listed in a bucket: 50 calls."""
_ACCESS_LOG = re.compile(r".*\d{4}(?:-\d\d){5}-[0-9A-Z]{16}")
"""Key of an object with access logs: `PREFIXYYYY-mm-DD-HH-MM-SS-UniqueString`.

Source: Amazon S3, "Log object key format".
"""

OpenBucket = Callable[[str, str | None], OwnBucket]
"""Returns a bucket by its name and region, with how the stack reaches it. Raises CannotCountError."""


def deletes_contents(state: ResourceState) -> bool:
    """Return whether the deletion of a resource deletes a bucket with all contents."""
    return state.type == BUCKET_TYPE and state.outputs.get("forceDestroy") is True


def count_bucket(state: ResourceState, open_bucket: OpenBucket) -> DeletedContents:
    """Return the contents of a bucket, or why they cannot be counted.

    Access logs arrive at any time, so they are counted and not compared; all other objects are.

    Args:
        state: The bucket's resource.
        open_bucket: How to reach the bucket.
    """
    name, region = str(state.outputs.get("bucket") or state.id), state.outputs.get("region")
    logs, size, is_partial = 0, 0, False
    other_entries: list[tuple[str, str, int]] = []
    try:
        bucket = open_bucket(name, str(region) if region else None)
        with own_bucket.raise_uncounted(bucket):
            for entry in own_bucket.entries(own_bucket.open_client(bucket), bucket.bucket, ""):
                if entry.is_marker:
                    continue
                if logs + len(other_entries) == MOST_OBJECTS:
                    is_partial = True
                    break
                size += entry.size
                if _ACCESS_LOG.fullmatch(entry.key):
                    logs += 1
                else:
                    other_entries.append((entry.key, entry.version, entry.size))
    except CannotCountError as error:
        return DeletedContents(state.urn, state.id, state.type, unknown=f"{type(error).__name__}: {error}")
    counts = {"access log": logs, "object": len(other_entries)}
    return DeletedContents(
        state.urn,
        state.id,
        state.type,
        counts={noun: count for noun, count in counts.items() if count},
        bytes=size,
        is_partial=is_partial,
        fingerprint=content_hash(sorted(other_entries)),
        is_growing=True,
    )
