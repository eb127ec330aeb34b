"""Probes: what a unit's access to a table reaches: the table itself, and nothing else of the bucket."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial

from lakewright.client_access.check import Attempt, AttemptResult, Note, ProbeFailedError, expect_allowed, expect_denied
from lakewright.client_access.object_store import StoreResponse, make_listing_query
from lakewright.client_access.probe_table import Location
from lakewright.verify.session.sessions import WarehouseSession
from lakewright.verify.session.stack_warehouses import StackWarehouse, is_same_store


def probe_table_round_trip(session: WarehouseSession) -> Iterator[Attempt | Note]:
    """Write, read and drop a table. A failed step is the last step."""
    if not session.warehouse.may_delete:
        yield Note(
            f"{session.warehouse.name}: the files of probe tables remain, as the storage has `may_delete: false`"
        )
    name, delegation = session.warehouse.name, session.warehouse.delegation
    config = session.tenant.config
    response = session.identity.catalog.request(
        "GET", "/catalog/v1/config", params={"warehouse": f"{config.project_id}/{name}"}
    )
    result = "allowed" if response.is_success else "denied"
    yield expect_allowed("read the catalog configuration", result, f"config: {response}")
    step = "write"
    try:
        table = session.ensure_table("written")
        written = table.append()
        yield expect_allowed("write a table", "allowed", f"{delegation}: PUT {written}, commit 200")
        step = "read"
        yield expect_allowed("read the table", "allowed", f"{delegation}: GET {table.read()}")
        step = "drop"
        dropped = table.drop()
        session.forget("written")
        title = "drop and purge the table" if session.warehouse.may_delete else "drop the table"
        yield expect_allowed(title, "allowed", f"drop: {dropped}")
    except ProbeFailedError as error:
        yield expect_allowed(f"{step} a table", "denied", str(error))


def probe_other_tables(session: WarehouseSession) -> Iterator[Attempt | Note]:
    """Read, overwrite and delete files of a second table with the first table's credential."""
    name = session.warehouse.name
    if session.warehouse.delegation == "remote-signing":
        # The catalog signs by the caller's rights on the table that has the file, and the caller owns both tables.
        yield Note(f"{name}: signed requests have no credential of one table; the catalog checks each request's table")
        return
    first, second = session.ensure_table("first"), session.ensure_table("second")
    metadata = f"{second.location.key}/metadata/"
    extra = f"{second.location.key}/data/lakewright-verify-canary"
    bucket = second.location.bucket
    for attempt, response in (
        ("list", first.store.send("GET", bucket, query=make_listing_query(metadata))),
        # The file exists: for a missing file, S3 denies a credential that may read it and not list.
        ("read", first.store.send("GET", bucket, second.metadata_file.key)),
        ("write", first.store.send("PUT", bucket, extra, content=b"canary")),
        ("delete", first.store.send("DELETE", bucket, extra)),
    ):
        yield expect_denied(f"{attempt} files of another table", response.denial, str(response))


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
    return f"tenant {warehouse.tenant}'s prefix of {warehouse.name}"


def probe_bucket_root(session: WarehouseSession) -> Iterator[Attempt]:
    """List the root of the bucket."""
    table = session.ensure_table("first")
    bucket = table.location.bucket
    for title, query in (("the root", {"list-type": "2", "delimiter": "/"}), ("all objects", make_listing_query(""))):
        response = table.store.send("GET", bucket, query=query)
        yield expect_denied(f"list {title} of bucket {bucket}", response.denial, f"LIST {response}")


_INVALID_POLICY = b"not a policy"
"""Stores check the right first, and refuse this document then: nothing changes even if the identity has the right."""
_INVALID_POLICY_CODES = frozenset({"MalformedPolicy", "MalformedPolicyDocument", "InvalidPolicyDocument"})


def probe_bucket_policy(session: WarehouseSession) -> Iterator[Attempt]:
    """Read the policy, and send a policy that no store accepts."""
    table = session.ensure_table("first")
    bucket = table.location.bucket
    read = table.store.send("GET", bucket, query={"policy": ""})
    yield expect_denied(f"read the policy of bucket {bucket}", _judge_policy_access(read), f"GET {read}")
    written = table.store.send("PUT", bucket, query={"policy": ""}, content=_INVALID_POLICY)
    if written.is_success:
        # The store took the document. Restore the previous policy.
        method = "PUT" if read.is_success else "DELETE"
        table.store.send(method, bucket, query={"policy": ""}, content=read.content if read.is_success else b"")
    yield expect_denied(f"change the policy of bucket {bucket}", _judge_policy_access(written), f"PUT {written}")


def _judge_policy_access(response: StoreResponse) -> AttemptResult:
    if response.code in _INVALID_POLICY_CODES or response.code == "NoSuchBucketPolicy":
        return "allowed"
    return response.denial
