"""Probe: a table's access to S3 neither reads nor changes the bucket's policy."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.verify.attempts.check import Attempt, Found, expect_denied
from lakewright.verify.session.sessions import WarehouseSession
from lakewright.verify.table.object_store import StoreResponse

_NO_POLICY = b"not a policy"
"""Stores check the right first, and refuse this document then: nothing changes even if the right is there."""
_PAST_THE_CHECK = frozenset({"MalformedPolicy", "MalformedPolicyDocument", "InvalidPolicyDocument"})


def probe_bucket_policy(session: WarehouseSession) -> Iterator[Attempt]:
    """Read the policy, and send one that no store accepts."""
    table = session.table("first")
    bucket = table.location.bucket
    read = table.store.send("GET", bucket, query={"policy": ""})
    yield expect_denied(f"read the policy of bucket {bucket}", _found(read), f"GET {read}")
    written = table.store.send("PUT", bucket, query={"policy": ""}, content=_NO_POLICY)
    if written.is_success:
        # The store took the document. Restore the policy that was there.
        method = "PUT" if read.is_success else "DELETE"
        table.store.send(method, bucket, query={"policy": ""}, content=read.content if read.is_success else b"")
    yield expect_denied(f"change the policy of bucket {bucket}", _found(written), f"PUT {written}")


def _found(response: StoreResponse) -> Found:
    if response.code in _PAST_THE_CHECK or response.code == "NoSuchBucketPolicy":
        return "allowed"
    return response.denial
