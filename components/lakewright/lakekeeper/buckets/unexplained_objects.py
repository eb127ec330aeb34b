"""Objects under the key prefix of an adopted warehouse that none of its tables and views explains.

A purge empties the whole prefix. Objects that existed before the adoption may have other owners.
"""

import re
from collections.abc import Iterator
from itertools import islice

from lakewright.lakekeeper.api.catalog import contents, tables
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.own_bucket import MAX_LISTED_KEYS, OwnBucket, entries, open_client
from lakewright.lakekeeper.provider.errors import CannotCountError

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""Lakekeeper puts a table into a folder whose name contains the table's id."""


def describe_problem(client: Client, warehouse_id: str, name: str, bucket: OwnBucket, key_prefix: str) -> str | None:
    """Return why an adopted warehouse must not be purged; None if its tables explain all objects of its prefix.

    Soft-deleted tables count as well. Old versions of deleted objects do not.

    Args:
        client: Client of the server.
        warehouse_id: Id of the warehouse.
        name: Name of the warehouse.
        bucket: Its bucket.
        key_prefix: Its key prefix, without slashes at its ends.

    Raises:
        CannotCountError: The bucket cannot be listed, or the warehouse is inactive.
    """
    return _describe(_find_unexplained(client, warehouse_id, name, bucket, key_prefix), name, bucket, key_prefix)


def describe_purge_problem(
    client: Client, warehouse_id: str, name: str, bucket: OwnBucket, key_prefix: str
) -> str | None:
    """Return what `describe_problem` returns, for a purge that nothing has checked at the start of the run.

    No table explains the objects of a warehouse that no longer exists.
    """
    if warehouses.get(client, warehouse_id) is not None:
        return describe_problem(client, warehouse_id, name, bucket, key_prefix)
    return _describe(_find_current(bucket, key_prefix), name, bucket, key_prefix)


def _find_current(bucket: OwnBucket, key_prefix: str) -> Iterator[str]:
    with own_bucket.raise_uncounted(bucket):
        versions = entries(open_client(bucket), bucket.bucket, f"{key_prefix}/")
        yield from (entry.key for entry in versions if entry.is_current and not entry.is_marker)


def _describe(unexplained: Iterator[str], name: str, bucket: OwnBucket, key_prefix: str) -> str | None:
    keys = [*islice(unexplained, MAX_LISTED_KEYS + 1)]
    if not keys:
        return None
    more = " and more" if len(keys) > MAX_LISTED_KEYS else ""
    return (
        f"{bucket.where} holds objects under {key_prefix}/ that no table of the adopted warehouse `{name}` explains:"
        f" {', '.join(keys[:MAX_LISTED_KEYS])}{more}. `deletion: purge` would delete them. Move them to another prefix,"
        " or set `deletion` to `retain` and run `up` first"
    )


def _find_unexplained(
    client: Client, warehouse_id: str, name: str, bucket: OwnBucket, key_prefix: str
) -> Iterator[str]:
    warehouse = warehouses.get(client, warehouse_id)
    if warehouse is None:
        return
    if warehouse["status"] != "active":
        raise CannotCountError(
            f"warehouse `{name}` ({warehouse_id}) at {client.endpoint} is inactive, so its tables cannot be listed."
            " Set `active: true` and run `up` first"
        )
    tabulars = contents.read_warehouse(client, warehouse_id).tabulars
    ids = {tabular.tabular_id.casefold() for tabular in tabulars}
    folders: list[str] | None = None
    with own_bucket.raise_uncounted(bucket):
        for entry in entries(open_client(bucket), bucket.bucket, f"{key_prefix}/"):
            if not entry.is_current or entry.is_marker or not ids.isdisjoint(_UUID.findall(entry.key.casefold())):
                continue
            if folders is None:  # one call for each table, so only if the layout does not explain an object
                loaded = (
                    tables.load(client, warehouse_id, tabular.namespace, tabular.name)
                    for tabular in tabulars
                    if tabular.kind == "table" and not tabular.dropped
                )
                folders = [str(metadata["location"]).rstrip("/") for metadata in loaded if metadata]
            location = f"s3://{bucket.bucket}/{entry.key}"
            if not any(location.startswith(f"{folder}/") for folder in folders):
                yield entry.key
