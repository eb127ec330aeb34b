"""Find Iceberg tables under a warehouse's key prefix that its layout does not explain: tables of an unseen warehouse.

Lakekeeper puts the tables of a warehouse under `PREFIX/UUID/` by default, and the tables of a warehouse at
`PREFIX/inner` under `PREFIX/inner/UUID/`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lakewright.lakekeeper.buckets import bucket_emptying
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket, entries_outside, open_client

_METADATA = re.compile(r"\.metadata\.json(\.[a-z0-9]+)?$")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True)
class FoundTables:
    """Folders directly below a key prefix that hold current table metadata."""

    own: list[str]
    """Folders named by a UUID, as the folders of the warehouse's own tables."""
    unaccounted: list[str]
    """Folders with other names."""


def find_tables(bucket: OwnBucket, key_prefix: str, spared: Sequence[str] = ()) -> FoundTables:
    """Return the folders with tables below a key prefix.

    Args:
        bucket: The bucket.
        key_prefix: Without slashes at its ends; never empty.
        spared: Key prefixes to skip.

    Raises:
        BucketRefusedError: S3 refused a call.
    """
    start = f"{key_prefix}/"
    folders: set[str] = set()
    with bucket_emptying.raise_refusals(f"looking for tables under {start} of {bucket.where}"):
        for entry in entries_outside(open_client(bucket), bucket.bucket, start, [f"{other}/" for other in spared]):
            folder, slash, _ = entry.key.removeprefix(start).partition("/")
            if slash and entry.is_current and _METADATA.search(entry.key):
                folders.add(folder)
    return FoundTables(
        own=sorted(start + folder for folder in folders if _UUID.search(folder)),
        unaccounted=sorted(start + folder for folder in folders if not _UUID.search(folder)),
    )
