"""Probe: a table's access to S3 neither reads nor changes the bucket's policy."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.client_access.check import Attempt, AttemptResult, expect_denied
from lakewright.client_access.object_store import StoreResponse
from lakewright.verify.session.sessions import WarehouseSession

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
