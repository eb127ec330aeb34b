"""Probe: a table's access to S3 reaches no other warehouse's prefix, and nothing beside the warehouses."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial

from lakewright.verify.attempts.check import Attempt, expect_denied
from lakewright.verify.session.places import WarehousePlace, is_same_store
from lakewright.verify.session.sessions import WarehouseSession
from lakewright.verify.table.object_store import listing
from lakewright.verify.table.probe_table import Location

CANARY = "lakewright-verify-canary"
"""How the names of canary objects and prefixes begin."""


def probe_other_prefixes(session: WarehouseSession) -> Iterator[Attempt]:
    """Read, write, list and delete in other tenants' prefixes, or in a canary prefix where there is none."""
    table = session.table("first")
    for title, place, region in _forbidden(session, table.location.bucket):
        key = f"{place.key}/{CANARY}-{secrets.token_hex(4)}"
        send = partial(table.store.send, region=region)
        written = send("PUT", place.bucket, key, content=b"canary")
        yield expect_denied(f"write to {title}", written.denial, f"PUT {written}")
        read = send("GET", place.bucket, key)
        yield expect_denied(f"read from {title}", read.denial, f"GET {read}")
        listed = send("GET", place.bucket, query=listing(f"{place.key}/"))
        yield expect_denied(f"list {title}", listed.denial, f"LIST {listed}")
        # Also removes the object if it could be written.
        deleted = send("DELETE", place.bucket, key)
        yield expect_denied(f"remove from {title}", deleted.denial, f"DELETE {deleted}")


def _forbidden(session: WarehouseSession, bucket: str) -> Iterator[tuple[str, Location, str | None]]:
    own = session.place
    others = session.tenant.others_on_store(own)
    for place in [*others, *(place for place in session.tenant.places if place.name != own.name)]:
        if is_same_store(place, own):
            yield _title(place, own), Location(place.bucket, place.key_prefix), place.region
    if not others:
        yield "a canary prefix of the bucket (there is no second tenant)", Location(bucket, CANARY), None


def _title(place: WarehousePlace, own: WarehousePlace) -> str:
    if place.stack == own.stack:
        return f"the tenant's own prefix of {place.name}"
    return f"tenant {place.project_id}'s prefix of {place.name}"
