"""Files under a warehouse's key prefix that a migration in place has handed over to another catalog.

A purge empties the whole prefix, so it would delete the tables of that catalog. A cut-over writes an object for each
such table, which `lakewright_spark.handed_over` describes, and an undo deletes it.
"""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any, cast

from lakewright_spark import handed_over

from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.own_bucket import MAX_LISTED_KEYS, OwnBucket, entries, open_client

_MAX_BYTES = 65_536
"""Bytes of an object that are read. An object with more is of an unknown owner."""


def describe_problem(bucket: OwnBucket, key_prefix: str, own_ids: Collection[str]) -> str | None:
    """Return why a key prefix must not be emptied; None if no other catalog owns files under it.

    Args:
        bucket: The bucket.
        key_prefix: Without slashes at its ends; never empty.
        own_ids: Ids of the stack's warehouses. Tables that were handed over to these warehouses are its own.

    Raises:
        CannotCountError: The bucket or such an object cannot be read.
    """
    owners = [*islice(_find_owners(bucket, key_prefix, own_ids), MAX_LISTED_KEYS + 1)]
    if not owners:
        return None
    more = " and more" if len(owners) > MAX_LISTED_KEYS else ""
    return (
        f"{bucket.where} holds tables under {key_prefix}/ that a migration in place handed over to another catalog:"
        f" {'; '.join(owners[:MAX_LISTED_KEYS])}{more}. A purge would delete their files. Keep the files"
        " (`deletion: retain`), or drop these tables with their files in that catalog. If it no longer has a table,"
        " delete the object that records the table"
    )


def _find_owners(bucket: OwnBucket, key_prefix: str, own_ids: Collection[str]) -> Iterator[str]:
    folded_ids = {own_id.casefold() for own_id in own_ids}
    with own_bucket.raise_uncounted(bucket):
        client = open_client(bucket)
        for entry in entries(client, bucket.bucket, f"{key_prefix}/"):
            if not entry.is_current or entry.is_marker or not handed_over.is_key(entry.key):
                continue
            owner = handed_over.parse_document(_read(client, bucket, entry.key))
            if owner is None:
                yield f"a table with an unreadable record ({entry.key})"
            elif (owner.warehouse_id or "").casefold() not in folded_ids:
                yield f"`{owner.table}` of warehouse `{owner.warehouse}` at {owner.catalog} ({entry.key})"


def _read(client: Any, bucket: OwnBucket, key: str) -> bytes:
    response = client.get_object(Bucket=bucket.bucket, Key=key)
    return cast(bytes, response["Body"].read(_MAX_BYTES))
