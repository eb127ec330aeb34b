"""The Grants API: list and change privileges on objects, the same way for every kind of object.

Under allow-all the grants are stored and enforce nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.actions import READ_GRANTS
from lakewright_sandbox.lakekeeper.authz.caller import actor
from lakewright_sandbox.lakekeeper.authz.enforcement.management_targets import PATHS, NamedObject, NamedTarget
from lakewright_sandbox.lakekeeper.authz.hierarchy import project_above
from lakewright_sandbox.lakekeeper.authz.privileges import GRANTABLE, grantable_privileges, privilege_to_json
from lakewright_sandbox.lakekeeper.authz.store import Relation, Target, grants_on, select_grants
from lakewright_sandbox.lakekeeper.database.models import GrantRow
from lakewright_sandbox.lakekeeper.management.access import granting
from lakewright_sandbox.lakekeeper.management.access.actions import check_inspectable
from lakewright_sandbox.lakekeeper.protocol.clock import timestamp
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.identities import Subject, UserOrRole, principal_parameters
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.server.paging import AskedPage, ListPage
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, ProjectId, Server

MAX_ENTRIES = 100
MAX_PRIVILEGE = 256
MAX_NAMED = 5

router = APIRouter(prefix="/management/v1")


class GrantDiffEntry(Body):
    """A privilege of a user or role."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    privilege: str
    principal: UserOrRole

    def to_relation(self, target: Target) -> Relation:
        """Return the grant on an object."""
        return Relation(target, self.privilege, self.principal.subject)


class GrantDiff(Body):
    """Grants to add and to remove."""

    model_config = ConfigDict(extra="forbid")

    writes: list[GrantDiffEntry] = Field(default_factory=list[GrantDiffEntry])
    deletes: list[GrantDiffEntry] = Field(default_factory=list[GrantDiffEntry])

    def entries(self) -> list[tuple[str, GrantDiffEntry]]:
        """Return the entries, each with its path in the request."""
        sides = (("writes", self.writes), ("deletes", self.deletes))
        return [(f"{side}[{index}]", entry) for side, entries in sides for index, entry in enumerate(entries)]


RequestedPrincipal = Annotated[Subject | None, principal_parameters("AmbiguousGrantPrincipal")]


@router.get("/grants")
def list_grants(server: Server, project: ProjectId, principal: RequestedPrincipal, page: AskedPage) -> Response:
    """List the grants of one user or role in the project."""
    if principal is None:
        message = "Specify `principalUser` or `principalRole`: this listing is for one principal at a time."
        raise ApiError(400, "MissingGrantPrincipal", message)
    if server.authorizer.enforces:
        message = "This authorizer cannot list the grants of a principal across all objects of a project."
        raise ApiError(501, "GrantListingNotImplemented", f"{message} Read the grants of one object instead.")
    with server.database.read() as session:
        grants = session.scalars(select_grants(principal).where(GrantRow.object_kind.in_(GRANTABLE)))
        inside = [grant for grant in grants if project_above(server, session, _target(grant)) == project]
        return _to_response(server, session, page.slice_rows(inside), page)


@router.get("/grants/grantable-privileges")
def all_privileges(server: Server) -> Response:
    """List the grantable privileges of every kind of object."""
    settings = server.settings
    kinds = {
        kind: [privilege_to_json(settings, kind, name) for name in grantable_privileges(settings, kind)]
        for kind in GRANTABLE
    }
    return json_response({"privileges": kinds})


def list_object_grants(
    server: Server, named_object: NamedObject, principal: RequestedPrincipal, page: AskedPage
) -> Response:
    """List the grants on an object."""
    with server.database.read() as session:
        target = _find(server, session, named_object)
        _check_readable(server, session, target, principal)
        query = grants_on(target, grantable_privileges(server.settings, named_object.kind))
        if principal is not None:
            query = query.where(GrantRow.subject_kind == principal.kind, GrantRow.subject_id == principal.id)
        grants = session.scalars(page.select(query, GrantRow.created_at, GrantRow.id)).all()
        return _to_response(server, session, grants, page)


def list_privileges(server: Server, named_object: NamedObject, principal: RequestedPrincipal) -> Response:
    """List the grantable privileges on an object, with whether the principal may grant them."""
    settings = server.settings
    with server.database.read() as session:
        target = _find(server, session, named_object)
        check_inspectable(server, session, target, principal)
        allowed = granting.list_grantable_privileges(
            server, session, target, grantable_privileges(settings, target.kind), principal
        )
        entries = [
            {
                "privilege": privilege_to_json(settings, target.kind, name),
                "allowed": name in allowed,
            }
            for name in grantable_privileges(settings, target.kind)
        ]
    return json_response({"privileges": entries})


def apply_diff(server: Server, named_object: NamedObject, diff: Annotated[GrantDiff, read_body(GrantDiff)]) -> Response:
    """Change the grants on an object, all or none. Existing and missing grants are ignored."""
    _check_shape(diff)
    _check_privileges(diff, named_object.kind, grantable_privileges(server.settings, named_object.kind))
    with server.database.write() as session:
        target = _find(server, session, named_object)
        granting.check_roles(session, named_object.project, [entry.principal.subject for entry in diff.writes])
        privileges = ([entry.privilege for entry in side] for side in (diff.writes, diff.deletes))
        granting.check_authority(server, session, target, *privileges)
        writes, deletes = ([entry.to_relation(target) for entry in side] for side in (diff.writes, diff.deletes))
        granting.apply(server, session, writes, deletes)
    return empty()


for _kind in GRANTABLE:
    _path = f"{PATHS[_kind]}/grants"
    router.add_api_route(_path, list_object_grants, methods=["GET"])
    router.add_api_route(_path, apply_diff, methods=["POST"])
    router.add_api_route(f"{_path}/grantable-privileges", list_privileges, methods=["GET"])


def _find(server: Lakekeeper, session: Session, named_target: NamedTarget) -> Target:
    """Return the object. Raises 404 for one outside the request's project."""
    target = named_target.find(server, session)
    if (
        named_target.kind not in ("server", "project")
        and project_above(server, session, target) != named_target.project
    ):
        raise ApiError(404, "NoSuchWarehouseException", "Warehouse not found or access denied")
    return target


def _target(grant: GrantRow) -> Target:
    return Target(grant.object_kind, grant.object_id)


def _check_readable(server: Lakekeeper, session: Session, target: Target, principal: Subject | None) -> None:
    """Require the right to read grants, which makes objects visible; callers may always read their own grants."""
    if principal is not None and principal == actor().subject:
        if target.kind != "server":
            server.authorizer.require(session, target, "include_in_list")
    elif not server.authorizer.may(session, target, READ_GRANTS):
        server.authorizer.require(session, target, READ_GRANTS)


def _to_response(server: Lakekeeper, session: Session, grants: Sequence[GrantRow], page: ListPage) -> Response:
    entries = [
        {
            "principal": Subject(grant.subject_kind, grant.subject_id).to_json(),
            "resource": granting.resource(session, _target(grant)),
            "privilege": grant.relation,
            "recognized": grant.relation in grantable_privileges(server.settings, grant.object_kind),
            "created-at": timestamp(grant.created_at),
        }
        for grant in grants
    ]
    return json_response({"grants": entries, "next-page-token": page.build_token(grants)})


def _check_shape(diff: GrantDiff) -> None:
    """Raise 400 with the entries that are wrong."""
    entries = diff.entries()
    if not entries:
        raise ApiError(400, "EmptyGrantDiff", "A grant diff must contain at least one write or delete")
    if len(entries) > MAX_ENTRIES:
        message = f"A grant diff may contain at most {MAX_ENTRIES} entries, got {len(entries)}"
        raise ApiError(400, "GrantDiffTooLarge", message)
    if wrong := [position for position, entry in entries if not 0 < len(entry.privilege) <= MAX_PRIVILEGE]:
        message = f"A privilege must be between 1 and {MAX_PRIVILEGE} characters; violated by {_places(wrong)}"
        raise ApiError(400, "InvalidGrantPrivilegeLength", message)
    if both := [f"writes[{index}]" for index, entry in enumerate(diff.writes) if entry in diff.deletes]:
        message = f"The same grant appears in both writes and deletes: {_places(both)}"
        raise ApiError(400, "ContradictoryGrantDiff", message)
    earlier = [[other for _, other in entries[:index]] for index in range(len(entries))]
    if repeated := [
        position
        for (position, entry), earlier_entries in zip(entries, earlier, strict=True)
        if entry in earlier_entries
    ]:
        raise ApiError(400, "DuplicateGrantEntry", f"A grant diff must not repeat the same entry: {_places(repeated)}")


def _check_privileges(diff: GrantDiff, kind: str, grantable: list[str]) -> None:
    """Raise 400 for writes of unknown privileges; deletes may name any."""
    wrong = [(index, entry.privilege) for index, entry in enumerate(diff.writes) if entry.privilege not in grantable]
    if wrong:
        places = _places([f"writes[{index}].privilege" for index, _ in wrong])
        message = f"`{wrong[0][1]}` is not a grantable privilege for {kind}; rejected {places}"
        raise ApiError(400, "InvalidGrantPrivilege", message)


def _places(places: list[str]) -> str:
    if len(places) <= MAX_NAMED:
        return ", ".join(places)
    return f"{', '.join(places[:MAX_NAMED])} and {len(places) - MAX_NAMED} more"
