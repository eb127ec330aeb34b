"""Probe: a table's access to S3 reaches no other warehouse's prefix, and nothing beside the warehouses."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial

from lakewright.client_access.check import Attempt, expect_denied
from lakewright.client_access.object_store import make_listing_query
from lakewright.client_access.probe_table import Location
from lakewright.verify.session.sessions import WarehouseSession
from lakewright.verify.session.stack_warehouses import StackWarehouse, is_same_store

CANARY = "lakewright-verify-canary"
"""How the names of canary objects and prefixes begin."""


def probe_other_prefixes(session: WarehouseSession) -> Iterator[Attempt]:
    """Read, write, list and delete in other tenants' prefixes, or in a canary prefix without other tenants."""
    table = session.ensure_table("first")
    for title, location, region in _list_forbidden_locations(session, table.location.bucket):
        key = f"{location.key}/{CANARY}-{secrets.token_hex(4)}"
        send = partial(table.store.send, region=region)
        write_response = send("PUT", location.bucket, key, content=b"canary")
        yield expect_denied(f"write to {title}", write_response.denial, f"PUT {write_response}")
        read_response = send("GET", location.bucket, key)
        yield expect_denied(f"read from {title}", read_response.denial, f"GET {read_response}")
        list_response = send("GET", location.bucket, query=make_listing_query(f"{location.key}/"))
        yield expect_denied(f"list {title}", list_response.denial, f"LIST {list_response}")
        # Also removes the object if it could be written.
        delete_response = send("DELETE", location.bucket, key)
        yield expect_denied(f"remove from {title}", delete_response.denial, f"DELETE {delete_response}")


def _list_forbidden_locations(session: WarehouseSession, bucket: str) -> Iterator[tuple[str, Location, str | None]]:
    own_warehouse = session.stack_warehouse
    other_warehouses = session.tenant.list_other_warehouses_on_store(own_warehouse)
    for warehouse in [
        *other_warehouses,
        *(warehouse for warehouse in session.tenant.warehouses if warehouse.name != own_warehouse.name),
    ]:
        if is_same_store(warehouse, own_warehouse):
            yield (
                _format_title(warehouse, own_warehouse),
                Location(warehouse.bucket, warehouse.key_prefix),
                warehouse.region,
            )
    if not other_warehouses:
        yield "a canary prefix of the bucket (there is no second tenant)", Location(bucket, CANARY), None


def _format_title(warehouse: StackWarehouse, own_warehouse: StackWarehouse) -> str:
    if warehouse.stack == own_warehouse.stack:
        return f"the tenant's own prefix of {warehouse.name}"
    return f"tenant {warehouse.project_id}'s prefix of {warehouse.name}"
