"""Probe: a table's access to S3 lists neither the bucket nor other buckets."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.client_access.check import Attempt, expect_denied
from lakewright.client_access.object_store import make_listing_query
from lakewright.verify.session.sessions import WarehouseSession


def probe_bucket_root(session: WarehouseSession) -> Iterator[Attempt]:
    """List the root of the bucket."""
    table = session.ensure_table("first")
    bucket = table.location.bucket
    for title, query in (("the root", {"list-type": "2", "delimiter": "/"}), ("all objects", make_listing_query(""))):
        response = table.store.send("GET", bucket, query=query)
        yield expect_denied(f"list {title} of bucket {bucket}", response.denial, f"LIST {response}")
