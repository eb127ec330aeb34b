"""Assignments as OpenFGA takes them: not idempotent, refused with 401, without checking that objects exist."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.caller import actor
from lakewright_sandbox.lakekeeper.authz.store import Relation, Target, add_grant, find_grant, remove_grant
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper

MAX_TUPLES = 100
BELOW_WAREHOUSE = ("namespace", "table", "view", "generic-table")


def require(server: Lakekeeper, session: Session, target: Target, relation: str) -> None:
    """Raise 401 `Unauthorized`, not 403, unless the caller has a relation to the object."""
    if not server.authorizer.rights(session).has(target, relation):
        message = f"Unauthorized for action `can_{relation}` on `{target.kind}:{target.id}`"
        raise ApiError(401, "Unauthorized", message)


def check_allowed(
    server: Lakekeeper,
    session: Session,
    target: Target,
    writes: Collection[Relation],
    deletes: Collection[Relation],
) -> None:
    """Raise 400 or 401 for assignments that the caller may not change."""
    if target.kind == "role" and any(relation.subject == target for relation in writes):
        raise ApiError(400, "SelfAssignment", f"Cannot assign {target.id} to itself")
    if actor().subject is None:
        raise ApiError(401, "AuthenticationRequired", "Authentication required")
    if actor().role is not None and target.kind in BELOW_WAREHOUSE:
        message = "Cannot grant permissions while role is assumed in OpenFGA Authorizer"
        raise ApiError(400, "GrantRoleWithAssumedRole", message)
    for name in sorted({relation.name for relation in (*writes, *deletes)}):
        require(server, session, target, f"grant_{name}")


def apply(server: Lakekeeper, session: Session, writes: Collection[Relation], deletes: Collection[Relation]) -> None:
    """Add and remove tuples. Raises 409 for an existing tuple, 404 for a missing tuple; then nothing is changed."""
    if len(writes) + len(deletes) > MAX_TUPLES:
        message = f"A write may have {MAX_TUPLES} tuples at most, got {len(writes) + len(deletes)}"
        raise ApiError(503, "AuthorizationBackendError", message)
    if any(find_grant(session, relation) is None for relation in deletes):
        raise ApiError(404, "TupleNotFoundError", "Cannot delete a tuple which does not exist")
    for relation in writes:
        if not add_grant(session, relation, server.clock.now()):
            raise ApiError(409, "TupleAlreadyExistsError", "Cannot write a tuple which already exists")
    for relation in deletes:
        remove_grant(session, relation)
