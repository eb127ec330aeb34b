"""Empty the key prefix of a deleted warehouse, except for the data of other warehouses."""

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import RefusedError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.buckets import bucket_emptying
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.buckets.unaccounted_tables import find_tables
from lakewright.lakekeeper.preflight import surroundings
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.names.types import is_prefix_within


def empty(client: Client, warehouse_id: str, bucket: OwnBucket, key_prefix: str) -> None:
    """Delete the objects under the key prefix of a deleted warehouse.

    Data of other warehouses is kept. If the identity cannot see every warehouse, tables outside the folders of this
    warehouse are kept too.
    """
    around = surroundings.look_around_in_run(client)
    neighbours = [
        neighbour
        for neighbour in around.find_overlapping(bucket, key_prefix, [warehouse_id])
        if _is_there(client, neighbour.id)
    ]
    for neighbour in neighbours:
        warn(f"{bucket.where}: keeping objects under {neighbour.place.prefix}/ in {key_prefix}/: {neighbour} is there")
    spared = [neighbour.place.prefix for neighbour in neighbours]
    if around.unseen and not any(is_prefix_within(key_prefix, prefix) for prefix in spared):
        spared += _tables_of_unseen(bucket, key_prefix, spared, around.unseen)
    bucket_emptying.empty(bucket, key_prefix, spared)


def _tables_of_unseen(bucket: OwnBucket, key_prefix: str, spared: list[str], unseen: str) -> list[str]:
    tables = find_tables(bucket, key_prefix, spared)
    for folder in tables.unaccounted:
        warn(
            f"{bucket.where}: keeping objects under {folder}/ in {key_prefix}/: they may be tables of another"
            " warehouse."
            f" {unseen} If no warehouse has them, delete that folder and run the command again."
        )
    if tables.own:
        warn(
            f"{bucket.where}: deleting tables that were dropped without a purge under {key_prefix}/, in"
            f" {len(tables.own)} folders such as {tables.own[0]}/. {unseen}"
        )
    return tables.unaccounted


def _is_there(client: Client, warehouse_id: str) -> bool:
    """Return whether a warehouse still exists. This run may have deleted it after it listed the warehouses."""
    try:
        return warehouses.get(client, warehouse_id) is not None
    except RefusedError:
        return True
