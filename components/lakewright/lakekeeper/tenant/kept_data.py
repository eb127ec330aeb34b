"""Whether data that `retain` or `protect` left is gone: only then its entry in a tenant's record is forgotten."""

from collections.abc import Mapping

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError, NotFoundError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.lakekeeper.tenant.tenant_history import KeptData


def is_gone(client: Client, tenant: str, buckets: Mapping[str, OwnBucket], kept: KeptData) -> bool:
    """Return whether nothing is left of a warehouse, neither on the server nor under its key prefix.

    What cannot be looked at counts as there.

    Args:
        client: Client of the server.
        tenant: Name of the tenant, and id of its project.
        buckets: Buckets of the stack: no other can be looked into.
        kept: What the warehouse may have left.
    """
    own = next((one for one in buckets.values() if one.bucket == kept.bucket), None)
    if own is None:
        return False
    try:
        return not _is_on_server(client, tenant, kept.name) and own_bucket.held(own, within=kept.key_prefix) is None
    except (LakekeeperError, CannotCountError) as error:
        warn(f"Could not check what is left of warehouse `{kept.name}`, so it stays in the tenant's record: {error}")
        return False


def _is_on_server(client: Client, tenant: str, name: str) -> bool:
    try:
        return warehouses.find_by_name(client, tenant, name) is not None
    except NotFoundError:
        return False  # the project is gone
