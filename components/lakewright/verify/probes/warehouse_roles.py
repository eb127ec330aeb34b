"""Probe: the roles that the catalog assumes reach their warehouse's prefix only.

Units never hold these roles: the catalog limits each credential by a session policy. A wide role would be used by a
catalog that is broken or taken over, so its own policies must be narrow, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakewright_spark.aws_partition import bucket_arn

from lakewright.client_access.check import Attempt, Note, expect_denied
from lakewright.client_access.role_documents import RoleReader
from lakewright.client_access.role_policies import PolicyRequest, find_allowing_statement, find_open_trust
from lakewright.verify.probes.table_access import CANARY
from lakewright.verify.session.sessions import TenantSession
from lakewright.verify.session.stack_warehouses import StackWarehouse

_ON_OBJECTS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")
_ON_BUCKET = ("s3:PutBucketPolicy", "s3:DeleteBucketPolicy", "s3:PutBucketAcl", "s3:DeleteBucket")


def probe_warehouse_roles(session: TenantSession) -> Iterator[Attempt | Note]:
    """Evaluate the policies of the roles, which are read with the stack's AWS identity."""
    roles = [(arn, warehouse) for warehouse in session.warehouses for arn in warehouse.role_arns]
    if not roles:
        yield Note("roles of warehouses: the catalog reaches this tenant's stores with keys, and assumes no role")
        return
    reader = RoleReader(session.settings.aws)
    account = reader.find_account()
    for arn, warehouse in roles:
        if arn.split(":")[4] != account:
            yield Note(f"role {arn}: its policies are in another account and cannot be read from here")
            continue
        yield from _try_role(reader, arn, warehouse, session)


def _try_role(reader: RoleReader, arn: str, warehouse: StackWarehouse, session: TenantSession) -> Iterator[Attempt]:
    name = arn.rpartition("/")[2]
    documents = reader.read(arn)
    for title, requests in _list_requests(warehouse, arn, session).items():
        allowed = [
            f"{request.action} on {request.resource} by statement {statement}"
            for request in requests
            if (statement := find_allowing_statement(documents.policies, request))
        ]
        evidence = "; ".join(allowed[:3]) or f"no statement allows any of {len(requests)} requests"
        yield expect_denied(f"{title} with role {name}", "allowed" if allowed else "denied", evidence)
    reason = find_open_trust(documents.trust, session.settings.server.principal_arn)
    evidence = reason or "one principal with a literal external ID is required"
    attempt = f"assume role {name} as another principal, or without its external ID"
    yield expect_denied(attempt, "allowed" if reason else "denied", evidence)


def _list_requests(warehouse: StackWarehouse, role: str, session: TenantSession) -> dict[str, list[PolicyRequest]]:
    """Return requests that the role must not be able to send."""
    bucket = bucket_arn(warehouse.bucket, warehouse.region)
    other_warehouses = [
        other
        for other in (*session.other_warehouses, *session.warehouses)
        if other.service == "s3" and role not in other.role_arns
    ]
    neighbors = _list_neighbors(warehouse.key_prefix)
    objects = [f"{bucket}/{CANARY}", f"{bucket}-{CANARY}/object", *(f"{bucket}/{prefix}x" for prefix in neighbors)]
    objects += [f"{bucket_arn(other.bucket, other.region)}/{other.key_prefix}/{CANARY}" for other in other_warehouses]
    listings = [("", bucket), (f"{CANARY}/", bucket), *((prefix, bucket) for prefix in neighbors)]
    listings += [(f"{other.key_prefix}/", bucket_arn(other.bucket, other.region)) for other in other_warehouses]
    return {
        "reach objects beside the warehouse": [
            PolicyRequest(action, resource) for resource in objects for action in _ON_OBJECTS
        ],
        "list beside the warehouse": [
            PolicyRequest("s3:ListBucket", bucket),
            *(PolicyRequest("s3:ListBucket", arn, prefix) for prefix, arn in listings),
        ],
        "change the bucket": [PolicyRequest(action, bucket) for action in _ON_BUCKET],
        "reach other buckets and roles": [
            PolicyRequest("s3:ListAllMyBuckets", "arn:aws:s3:::*"),
            PolicyRequest("sts:AssumeRole", f"{role}-{CANARY}"),
            PolicyRequest("iam:PassRole", f"{role}-{CANARY}"),
        ],
    }


def _list_neighbors(key_prefix: str) -> list[str]:
    """Return prefixes beside a warehouse's: the first begins with its text, the second is in the folder above it."""
    if not key_prefix:
        return []
    folder, slash, _ = key_prefix.rpartition("/")
    return [f"{key_prefix}-{CANARY}/", f"{folder}{slash}{CANARY}/"]
