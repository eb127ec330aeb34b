"""Emptying the key prefix of a deleted warehouse, but for what other warehouses have there."""

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import RefusedError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.buckets import bucket_emptying
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.buckets.unaccounted_tables import find_tables
from lakewright.lakekeeper.preflight import surroundings
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.names import key_prefixes


def empty(client: Client, warehouse_id: str, own: OwnBucket, key_prefix: str) -> None:
    """Delete what is under the key prefix of a deleted warehouse.

    What other warehouses have there stays. Where some warehouses cannot be seen, tables stay that are not where this
    warehouse had its own.
    """
    around = surroundings.look_around_in_run(client)
    others = [one for one in around.within(own, key_prefix, [warehouse_id]) if _is_there(client, one.id)]
    for one in others:
        warn(f"{own.where} keeps what is under {one.place.prefix}/ of {key_prefix}/: {one} is there")
    spared = [one.place.prefix for one in others]
    if around.unseen and not any(key_prefixes.is_within(key_prefix, one) for one in spared):
        spared += _tables_of_unseen(own, key_prefix, spared, around.unseen)
    bucket_emptying.empty(own, key_prefix, spared)


def _tables_of_unseen(own: OwnBucket, key_prefix: str, spared: list[str], unseen: str) -> list[str]:
    found = find_tables(own, key_prefix, spared)
    for folder in found.unaccounted:
        warn(
            f"{own.where} keeps what is under {folder}/ of {key_prefix}/: it holds tables that another warehouse may"
            f" have. {unseen} If no warehouse has them, delete that folder and run the command again."
        )
    if found.own:
        warn(
            f"{own.where}: tables that were dropped without a purge are deleted under {key_prefix}/, in"
            f" {len(found.own)} folders such as {found.own[0]}/. {unseen}"
        )
    return found.unaccounted


def _is_there(client: Client, warehouse_id: str) -> bool:
    """Whether a warehouse is still there: this run may have deleted it since it looked."""
    try:
        return warehouses.get(client, warehouse_id) is not None
    except RefusedError:
        return True
