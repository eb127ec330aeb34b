"""Membership in roles: add members by the catalog's rules, and follow memberships up and down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.store import Relation, Target, add_grant
from lakewright_sandbox.lakekeeper.database.models import GrantRow, RoleRow
from lakewright_sandbox.lakekeeper.database.server_context import ServerContext
from lakewright_sandbox.lakekeeper.database.users import find_user
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.identities import Subject

MEMBER, OWNER = "assignee", "ownership"
CATALOG_PROVIDERS = ("lakekeeper", "system")
MAX_DEPTH = 10
ERROR_CONTEXT = "Error adding role members"


def add_members(server: ServerContext, session: Session, role: RoleRow, subjects: Sequence[Subject]) -> None:
    """Add members to a role; existing members remain. OpenFGA checks only self-references.

    Raises:
        ApiError: 400, 404 or 409 for a member that is not allowed.
    """
    if not server.settings.openfga:
        _check_members(session, role, subjects)
    for subject in subjects:
        add_grant(session, Relation(Target("role", role.id), MEMBER, subject), server.clock.now())


def _check_members(session: Session, role: RoleRow, subjects: Sequence[Subject]) -> None:
    members = [subject.id for subject in subjects if subject.kind == "role"]
    _check_catalog_managed(role)
    for member in members:
        member_role = session.get(RoleRow, member)
        if member_role is None or member_role.project_id != role.project_id:
            message = f"A role with id '{member}' does not exist in project with id '{role.project_id}'"
            raise ApiError(404, "RoleNotFoundInProject", message, ERROR_CONTEXT)
        _check_catalog_managed(member_role)
    if members:
        _check_shape(session, role.id, members)
    for subject in subjects:
        if subject.kind == "user" and find_user(session, subject.id) is None:
            message = f"User '{subject.id}' does not exist; provision the user before assigning it to a role"
            raise ApiError(404, "RoleAssignmentUserNotFound", message, ERROR_CONTEXT)


def _check_catalog_managed(role: RoleRow) -> None:
    if role.provider_id not in CATALOG_PROVIDERS:
        message = (
            f"Role '{role.id}' is managed by provider '{role.provider_id}' and is not catalog-managed; "
            "only lakekeeper/system roles can participate in role membership edges"
        )
        raise ApiError(400, "RoleNotManuallyAssignable", message, ERROR_CONTEXT)


def _check_shape(session: Session, role_id: str, members: Sequence[str]) -> None:
    above = {role_id, *(grant.object_id for grant in roles_above(session, Subject("role", role_id)))}
    for member in members:
        if member in above:
            message = f"Adding role '{member}' as a member of role '{role_id}' would create a cycle"
            raise ApiError(409, "RoleMembershipCycle", f"{message} in the role membership graph", ERROR_CONTEXT)
    height = _depth(session, role_id, upward=True)
    for member in members:
        if height + 1 + _depth(session, member, upward=False) > MAX_DEPTH:
            message = f"Adding role '{member}' as a member of role '{role_id}' would exceed"
            message += f" the maximum role nesting depth of {MAX_DEPTH} edges"
            raise ApiError(409, "RoleMembershipDepthExceeded", message, ERROR_CONTEXT)


def _depth(session: Session, role_id: str, *, upward: bool) -> int:
    """Return the longest chain of roles above or below a role, in edges."""
    level, depth = {role_id}, -1
    while level and depth <= MAX_DEPTH:
        depth += 1
        edges = _list_parent_edges(session, level) if upward else _list_member_edges(session, level)
        level = {grant.object_id if upward else grant.subject_id for grant in edges if grant.subject_kind == "role"}
    return depth


def roles_above(session: Session, subject: Subject) -> list[GrantRow]:
    """Return one membership for each role that the subject is in, directly or through other roles."""
    of_subject = GrantRow.subject_kind == subject.kind, GrantRow.subject_id == subject.id
    edges = session.scalars(
        select(GrantRow).where(GrantRow.object_kind == "role", GrantRow.relation == MEMBER, *of_subject)
    ).all()
    memberships: dict[str, GrantRow] = {}
    while fresh := {grant.object_id: grant for grant in edges if grant.object_id not in memberships}:
        memberships |= fresh
        edges = _list_parent_edges(session, fresh)
    return list(memberships.values())


def list_acting_roles(session: Session, subject: Subject) -> list[Subject]:
    """Return the roles that the subject acts as: it is a member or the owner, directly or through other roles."""
    role_ids: set[str] = set()
    subjects = [subject]
    while subjects:
        ours = tuple_(GrantRow.subject_kind, GrantRow.subject_id).in_(subjects)
        query = select(GrantRow.object_id).where(
            GrantRow.object_kind == "role", GrantRow.relation.in_((MEMBER, OWNER)), ours
        )
        fresh = set(session.scalars(query)) - role_ids
        role_ids |= fresh
        subjects = [Subject("role", role) for role in fresh]
    return [Subject("role", role) for role in role_ids]


def subjects_below(session: Session, role_id: str) -> list[GrantRow]:
    """Return one membership for each user and role in the role, directly or through other roles."""
    edges = _list_member_edges(session, [role_id])
    memberships: dict[Subject, GrantRow] = {}
    while fresh := {key: grant for grant in edges if (key := _subject(grant)) not in memberships}:
        memberships |= fresh
        edges = _list_member_edges(session, [key.id for key in fresh if key.kind == "role"])
    return list(memberships.values())


def _subject(grant: GrantRow) -> Subject:
    return Subject(grant.subject_kind, grant.subject_id)


def _list_parent_edges(session: Session, role_ids: Iterable[str]) -> Sequence[GrantRow]:
    ours = GrantRow.subject_kind == "role", GrantRow.subject_id.in_(list(role_ids))
    return session.scalars(
        select(GrantRow).where(GrantRow.object_kind == "role", GrantRow.relation == MEMBER, *ours)
    ).all()


def _list_member_edges(session: Session, role_ids: Iterable[str]) -> Sequence[GrantRow]:
    ours = GrantRow.object_id.in_(list(role_ids))
    return session.scalars(
        select(GrantRow).where(GrantRow.object_kind == "role", GrantRow.relation == MEMBER, ours)
    ).all()
