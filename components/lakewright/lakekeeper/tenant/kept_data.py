"""Check whether data that `retain` or `protect` left still exists. If not, a tenant's record removes its entry."""

from collections.abc import Mapping

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError, NotFoundError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.tenant.tenant_history import KeptData


def is_gone(client: Client, project_id: str, buckets: Mapping[str, OwnBucket], data: KeptData) -> bool:
    """Return whether a warehouse has neither an object on the server nor files under its key prefix.

    Data counts as existing if it cannot be checked. Files in buckets outside the stack, which no stack deletes, do not
    count; their warehouses count as existing on servers whose lists may lack a warehouse.

    Args:
        client: Client of the server.
        project_id: Id of the tenant's project.
        buckets: Buckets of the stack.
        data: Data that may remain of the warehouse.
    """
    bucket = next((bucket for bucket in buckets.values() if bucket.bucket == data.bucket), None)
    try:
        if bucket is None:
            # Only the list says that the warehouse was deleted.
            return not client.server().unlisted and not _is_listed(client, project_id, data.name)
        return (
            not _is_on_server(client, project_id, data.name)
            and own_bucket.describe_contents(bucket, within=data.key_prefix) is None
        )
    except LakekeeperError as error:
        warn(f"Could not check the remaining data of warehouse `{data.name}`, so the tenant's record keeps it: {error}")
        return False


def _is_listed(client: Client, project_id: str, name: str) -> bool:
    """Return whether the list that all resources share has a warehouse. An empty list may be that of a refusal."""
    shared_list = warehouses.list_cached(client, project_id).values()
    if not shared_list:
        return _is_on_server(client, project_id, name)
    return any(str(warehouse["name"]).casefold() == name.casefold() for warehouse in shared_list)


def _is_on_server(client: Client, project_id: str, name: str) -> bool:
    try:
        return warehouses.find_by_name(client, project_id, name) is not None
    except NotFoundError:
        return False  # the project was deleted
