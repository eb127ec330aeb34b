"""Members of roles: users and roles, directly or through other roles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.membership import MEMBER, add_members, roles_above, subjects_below
from lakewright_sandbox.lakekeeper.authz.store import Relation, Target, grants_on, remove_grant, select_grants
from lakewright_sandbox.lakekeeper.database.models import GrantRow, RoleRow, UserRow
from lakewright_sandbox.lakekeeper.database.users import find_user, user_missing
from lakewright_sandbox.lakekeeper.management.identities.roles import find_role, role_ident
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.identities import RoleId, Subject, UserId, validate_user_id
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body, uuid_fault
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.server.paging import AskedPage, ListPage
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, ProjectId, Server

MemberType = Literal["user", "role"]

router = APIRouter(prefix="/management/v1")


class UserMember(Body):
    """A user as a member."""

    type: Literal["user"]
    id: UserId


class RoleMember(Body):
    """A role as a member."""

    type: Literal["role"]
    id: RoleId


class AddMembers(Body):
    """Request to add members."""

    members: list[Annotated[UserMember | RoleMember, Field(discriminator="type")]]


@router.get("/role/{role_id}/members")
def list_members(
    server: Server,
    project: ProjectId,
    role_id: UUID,
    page: AskedPage,
    kind: Annotated[MemberType | None, Query(alias="type")] = None,
) -> Response:
    """List the direct members of a role."""
    with server.database.read() as session:
        role = find_role(session, project, role_id)
        query = grants_on(Target("role", role.id), [MEMBER])
        if kind:
            query = query.where(GrantRow.subject_kind == kind)
        grants = session.scalars(page.select(query, GrantRow.created_at, GrantRow.id)).all()
        return _members(session, grants, page)


@router.post("/role/{role_id}/members")
def add_role_members(
    server: Server, project: ProjectId, role_id: UUID, body: Annotated[AddMembers, read_body(AddMembers)]
) -> Response:
    """Add members to a role, all or none; existing members remain."""
    subjects = list(dict.fromkeys(Subject(member.type, str(member.id)) for member in body.members))
    with server.database.write() as session:
        add_members(server, session, find_role(session, project, role_id), subjects)
    return json_response({"members": [{"type": subject.kind, "id": subject.id} for subject in subjects]})


@router.delete("/role/{role_id}/members/{kind}/{member_id}")
def remove_member(server: Server, project: ProjectId, role_id: UUID, kind: MemberType, member_id: str) -> Response:
    """Remove a member. Responds with 204 for a non-member, too."""
    subject = Subject(kind, validate_user_id(member_id) if kind == "user" else _validate_role_id(member_id))
    with server.database.write() as session:
        role = find_role(session, project, role_id)
        remove_grant(session, Relation(Target("role", role.id), MEMBER, subject))
    return empty()


def _validate_role_id(value: str) -> str:
    try:
        return str(UUID(value))
    except ValueError:
        message = f"Provided role id `{value}` is not a valid UUID: {uuid_fault(value)}"
        raise ApiError(400, "RoleIDIsNotUUID", message) from None


@router.get("/role/{role_id}/member-of")
def list_direct_parents(server: Server, project: ProjectId, role_id: UUID, page: AskedPage) -> Response:
    """List the roles that a role is a direct member of."""
    with server.database.read() as session:
        role = find_role(session, project, role_id)
        return _direct_roles(session, Subject("role", role.id), page)


@router.get("/user/{user_id}/roles")
def list_user_roles(server: Server, project: ProjectId, user_id: str, page: AskedPage) -> Response:
    """List the roles that a user is a direct member of."""
    with server.database.read() as session:
        _check_user(server, session, user_id)
        return _direct_roles(session, Subject("user", user_id), page, project)


@router.get("/role/{role_id}/members/transitive")
def list_transitive_members(
    server: Server,
    project: ProjectId,
    role_id: UUID,
    page: AskedPage,
    kind: Annotated[MemberType | None, Query(alias="type")] = None,
) -> Response:
    """List the direct and indirect members of a role."""
    _check_transitive(server)
    with server.database.read() as session:
        grants = subjects_below(session, find_role(session, project, role_id).id)
        selected_grants = [grant for grant in grants if kind in (None, grant.subject_kind)]
        return _members(session, page.slice_rows(selected_grants), page)


@router.get("/role/{role_id}/member-of/transitive")
def list_transitive_parents(server: Server, project: ProjectId, role_id: UUID, page: AskedPage) -> Response:
    """List the roles that a role is a direct or indirect member of."""
    _check_transitive(server)
    with server.database.read() as session:
        role = find_role(session, project, role_id)
        return _roles(session, page.slice_rows(roles_above(session, Subject("role", role.id))), page)


@router.get("/user/{user_id}/roles/transitive")
def list_transitive_user_roles(server: Server, project: ProjectId, user_id: str, page: AskedPage) -> Response:
    """List the roles that a user is a direct or indirect member of."""
    _check_transitive(server)
    with server.database.read() as session:
        _check_user(server, session, user_id)
        grants = roles_above(session, Subject("user", user_id))
        inside = set(session.scalars(select(RoleRow.id).where(RoleRow.project_id == project)))
        return _roles(session, page.slice_rows([grant for grant in grants if grant.object_id in inside]), page)


def _check_transitive(server: Lakekeeper) -> None:
    if server.authorizer.enforces:
        message = "Transitive role-membership listing is not supported under this authorizer backend"
        advice = "use the direct listings, or a catalog-backed authorizer."
        raise ApiError(501, "TransitiveRoleMembershipListingNotImplemented", f"{message}; {advice}")


def _check_user(server: Lakekeeper, session: Session, user_id: str) -> None:
    """Raise 404 for a missing user; OpenFGA accepts any."""
    if find_user(session, validate_user_id(user_id)) is None and not server.authorizer.enforces:
        raise user_missing(user_id)


def _direct_roles(session: Session, subject: Subject, page: ListPage, project: str | None = None) -> Response:
    query = select_grants(subject).where(GrantRow.object_kind == "role", GrantRow.relation == MEMBER)
    if project is not None:
        query = query.where(GrantRow.object_id.in_(select(RoleRow.id).where(RoleRow.project_id == project)))
    return _roles(session, session.scalars(page.select(query, GrantRow.created_at, GrantRow.id)).all(), page)


def _members(session: Session, grants: Sequence[GrantRow], page: ListPage) -> Response:
    users = {user.id: user for user in _rows(session, UserRow, grants, lambda grant: grant.subject_id)}
    roles = {role.id: role for role in _rows(session, RoleRow, grants, lambda grant: grant.subject_id)}
    members: list[dict[str, Any]] = []
    for grant in grants:
        if grant.subject_kind == "role":
            members.append({"type": "role", **_to_json(roles[grant.subject_id])})
            continue
        user = users.get(grant.subject_id)
        user_values = (user.name, user.email, user.user_type) if user else (None, None, None)
        members.append(
            {
                "type": "user",
                "id": grant.subject_id,
                **dict(zip(("name", "email", "user-type"), user_values, strict=True)),
            }
        )
    return json_response({"members": members, "next-page-token": page.build_token(grants)})


def _roles(session: Session, grants: Sequence[GrantRow], page: ListPage) -> Response:
    roles = {role.id: role for role in _rows(session, RoleRow, grants, lambda grant: grant.object_id)}
    documents = [_to_json(roles[grant.object_id]) for grant in grants]
    return json_response({"roles": documents, "next-page-token": page.build_token(grants)})


def _rows(session: Session, model: Any, grants: Iterable[GrantRow], key: Callable[[GrantRow], str]) -> Sequence[Any]:
    return session.scalars(select(model).where(model.id.in_([key(grant) for grant in grants]))).all()


def _to_json(role: RoleRow) -> dict[str, str]:
    return {"id": role.id, "ident": role_ident(role), "name": role.name}
