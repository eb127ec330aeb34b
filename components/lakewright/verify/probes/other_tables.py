"""Probe: a credential that was vended for one table reaches no other table of the warehouse."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.client_access.check import Attempt, Note, expect_denied
from lakewright.client_access.object_store import make_listing_query
from lakewright.verify.session.sessions import WarehouseSession


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
