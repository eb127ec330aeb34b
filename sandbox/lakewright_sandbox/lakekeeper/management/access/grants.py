"""The Grants API: who holds which privilege on an object, listed and changed the same way for every kind of object.

Under allow-all the grants are an inventory and enforce nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session
from starlette.responses import Response

from ...authz.actions import READ_GRANTS
from ...authz.caller import actor
from ...authz.enforcement.management_targets import PATHS, NamedObject, NamedTarget
from ...authz.hierarchy import project_above
from ...authz.privileges import GRANTABLE, described, grantable
from ...authz.store import Relation, Target, grants_of, grants_on
from ...database.models import GrantRow
from ...protocol.clock import timestamp
from ...protocol.errors import ApiError
from ...protocol.identities import Subject, UserId, UserOrRole, subject_of
from ...protocol.requests import Body, read_body
from ...protocol.responses import empty, json_response
from ...server.paging import AskedPage, ListPage
from ...server.server import Lakekeeper, ProjectId, Server
from . import granting
from .introspection import check_inspectable

MAX_ENTRIES = 100
MAX_PRIVILEGE = 256
MAX_NAMED = 5

router = APIRouter(prefix="/management/v1")


class GrantEntry(Body):
    model_config = ConfigDict(extra="forbid", frozen=True)

    privilege: str
    principal: UserOrRole

    def on(self, target: Target) -> Relation:
        return Relation(target, self.privilege, self.principal.subject)


class GrantDiff(Body):
    model_config = ConfigDict(extra="forbid")

    writes: list[GrantEntry] = Field(default_factory=list)
    deletes: list[GrantEntry] = Field(default_factory=list)

    def entries(self) -> list[tuple[str, GrantEntry]]:
        """Each with its place in the request."""
        sides = (("writes", self.writes), ("deletes", self.deletes))
        return [(f"{side}[{index}]", entry) for side, entries in sides for index, entry in enumerate(entries)]


async def asked_principal(
    user: Annotated[UserId | None, Query(alias="principalUser")] = None,
    role: Annotated[UUID | None, Query(alias="principalRole")] = None,
) -> Subject | None:
    if user is not None and role is not None:
        message = "Specify at most one of `principalUser` and `principalRole`"
        raise ApiError(400, "AmbiguousGrantPrincipal", message)
    return subject_of(user, role)


AskedPrincipal = Annotated[Subject | None, Depends(asked_principal)]


@router.get("/grants")
def list_grants(server: Server, project: ProjectId, principal: AskedPrincipal, page: AskedPage) -> Response:
    """Everything that one user or role holds in the project."""
    if principal is None:
        message = "Specify `principalUser` or `principalRole`: this listing answers for one principal at a time."
        raise ApiError(400, "MissingGrantPrincipal", message)
    if server.authorizer.enforces:
        message = "This authorizer cannot list the grants of a principal across all objects of a project."
        raise ApiError(501, "GrantListingNotImplemented", f"{message} Read the grants of one object instead.")
    with server.database.read() as session:
        held = session.scalars(grants_of(principal).where(GrantRow.object_kind.in_(GRANTABLE)))
        inside = [one for one in held if project_above(server, session, _target(one)) == project]
        return _listed(server, session, page.cut(inside), page)


@router.get("/grants/grantable-privileges")
def all_privileges(server: Server) -> Response:
    settings = server.settings
    kinds = {kind: [described(settings, kind, name) for name in grantable(settings, kind)] for kind in GRANTABLE}
    return json_response({"privileges": kinds})


def list_on(server: Server, named: NamedObject, principal: AskedPrincipal, page: AskedPage) -> Response:
    with server.database.read() as session:
        target = _find(server, session, named)
        _check_readable(server, session, target, principal)
        query = grants_on(target, grantable(server.settings, named.kind))
        if principal is not None:
            query = query.where(GrantRow.subject_kind == principal.kind, GrantRow.subject_id == principal.id)
        grants = session.scalars(page.of(query, GrantRow.created_at, GrantRow.id)).all()
        return _listed(server, session, grants, page)


def privileges_on(server: Server, named: NamedObject, principal: AskedPrincipal) -> Response:
    settings = server.settings
    with server.database.read() as session:
        target = _find(server, session, named)
        check_inspectable(server, session, target, principal)
        allowed = granting.grantable_by(server, session, target, grantable(settings, target.kind), principal)
        shown = [
            {
                "privilege": described(settings, target.kind, name),
                "allowed": name in allowed,
            }
            for name in grantable(settings, target.kind)
        ]
    return json_response({"privileges": shown})


def apply_to(server: Server, named: NamedObject, diff: Annotated[GrantDiff, read_body(GrantDiff)]) -> Response:
    """The difference, as a whole or not at all. What is so already stays so."""
    _check_shape(diff)
    _check_privileges(diff, named.kind, grantable(server.settings, named.kind))
    with server.database.write() as session:
        target = _find(server, session, named)
        granting.check_roles(session, named.project, [entry.principal.subject for entry in diff.writes])
        privileges = ([entry.privilege for entry in side] for side in (diff.writes, diff.deletes))
        granting.check_authority(server, session, target, *privileges)
        writes, deletes = ([entry.on(target) for entry in side] for side in (diff.writes, diff.deletes))
        granting.apply(server, session, writes, deletes)
    return empty()


for _kind in GRANTABLE:
    _path = f"{PATHS[_kind]}/grants"
    router.add_api_route(_path, list_on, methods=["GET"])
    router.add_api_route(_path, apply_to, methods=["POST"])
    router.add_api_route(f"{_path}/grantable-privileges", privileges_on, methods=["GET"])


def _find(server: Lakekeeper, session: Session, named: NamedTarget) -> Target:
    """Only in the project that the request is about."""
    target = named.find(server, session)
    if named.kind not in ("server", "project") and project_above(server, session, target) != named.project:
        raise ApiError(404, "NoSuchWarehouseException", "Warehouse not found or access denied")
    return target


def _target(grant: GrantRow) -> Target:
    return Target(grant.object_kind, grant.object_id)


def _check_readable(server: Lakekeeper, session: Session, target: Target, principal: Subject | None) -> None:
    """Whoever may read the grants sees the object by that alone; everybody may read one's own."""
    if principal is not None and principal == actor().subject:
        if target.kind != "server":
            server.authorizer.require(session, target, "include_in_list")
    elif not server.authorizer.may(session, target, READ_GRANTS):
        server.authorizer.require(session, target, READ_GRANTS)


def _listed(server: Lakekeeper, session: Session, grants: Sequence[GrantRow], page: ListPage) -> Response:
    shown = [
        {
            "principal": Subject(grant.subject_kind, grant.subject_id).shown(),
            "resource": granting.resource(session, _target(grant)),
            "privilege": grant.relation,
            "recognized": grant.relation in grantable(server.settings, grant.object_kind),
            "created-at": timestamp(grant.created_at),
        }
        for grant in grants
    ]
    return json_response({"grants": shown, "next-page-token": page.token_behind(grants)})


def _check_shape(diff: GrantDiff) -> None:
    """Raises 400, naming the entries that are wrong."""
    entries = diff.entries()
    if not entries:
        raise ApiError(400, "EmptyGrantDiff", "A grant diff must contain at least one write or delete")
    if len(entries) > MAX_ENTRIES:
        message = f"A grant diff may contain at most {MAX_ENTRIES} entries, got {len(entries)}"
        raise ApiError(400, "GrantDiffTooLarge", message)
    if wrong := [place for place, entry in entries if not 0 < len(entry.privilege) <= MAX_PRIVILEGE]:
        message = f"A privilege must be between 1 and {MAX_PRIVILEGE} characters; violated by {_places(wrong)}"
        raise ApiError(400, "InvalidGrantPrivilegeLength", message)
    if both := [f"writes[{index}]" for index, entry in enumerate(diff.writes) if entry in diff.deletes]:
        message = f"The same grant appears in both writes and deletes: {_places(both)}"
        raise ApiError(400, "ContradictoryGrantDiff", message)
    if twice := [place for index, (place, entry) in enumerate(entries) if entry in [one for _, one in entries[:index]]]:
        raise ApiError(400, "DuplicateGrantEntry", f"A grant diff must not repeat the same entry: {_places(twice)}")


def _check_privileges(diff: GrantDiff, kind: str, known: list[str]) -> None:
    """What is written must be known; what is deleted may come from another vocabulary."""
    wrong = [(index, entry.privilege) for index, entry in enumerate(diff.writes) if entry.privilege not in known]
    if wrong:
        places = _places([f"writes[{index}].privilege" for index, _ in wrong])
        message = f"`{wrong[0][1]}` is not a grantable privilege for {kind}; rejected {places}"
        raise ApiError(400, "InvalidGrantPrivilege", message)


def _places(places: list[str]) -> str:
    if len(places) <= MAX_NAMED:
        return ", ".join(places)
    return f"{', '.join(places[:MAX_NAMED])} and {len(places) - MAX_NAMED} more"
