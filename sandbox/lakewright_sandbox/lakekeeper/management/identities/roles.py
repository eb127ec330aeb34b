"""Roles of a project: create, read, list, search, replace, bind to another source, delete."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import AfterValidator, ValidationInfo
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.enforcement.management_targets import role_missing
from lakewright_sandbox.lakekeeper.authz.store import Target, forget_objects
from lakewright_sandbox.lakekeeper.database.models import ProjectRow, RoleRow
from lakewright_sandbox.lakekeeper.management.identities.search import (
    MAX_LENGTH,
    MAX_RESULTS,
    Search,
    trigram_distance,
    trigrams,
)
from lakewright_sandbox.lakekeeper.protocol.clock import new_id, optional_timestamp, timestamp
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body, knows, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.server.paging import AskedPage
from lakewright_sandbox.lakekeeper.server.server import ProjectId, Server, validate_project_id

OWN_PROVIDER, RESERVED_PROVIDER = "lakekeeper", "system"
PROVIDER_ID = re.compile(r"[a-z0-9-]+")

router = APIRouter(prefix="/management/v1")

OptionalProject = Annotated[str, AfterValidator(validate_project_id)] | None


def validate_provider_id(value: str, info: ValidationInfo) -> str:
    """Return a provider id. Raises ValueError for an invalid id; before 0.12 roles have none."""
    if knows(info, "0.12"):
        if not value:
            raise ValueError("role provider ID cannot be empty")
        if not PROVIDER_ID.fullmatch(value):
            message = "role provider ID must only contain lowercase ASCII letters, digits, and hyphens"
            raise ValueError(f"{message}, got: {value}")
    return value


ProviderId = Annotated[str, AfterValidator(validate_provider_id)]


class CreateRole(Body):
    """Request to create a role."""

    name: str
    description: str | None = None
    project_id: OptionalProject = None
    provider_id: ProviderId | None = None
    source_id: str | None = None


class UpdateRole(Body):
    """Request to update a role."""

    name: str
    description: str | None = None


class SourceSystem(Body):
    """The system that manages a role's members."""

    provider_id: ProviderId
    source_id: str


class SearchRole(Search):
    """Request to find roles by name."""

    project_id: OptionalProject = None


@router.post("/role")
def create_role(server: Server, project: ProjectId, body: Annotated[CreateRole, read_body(CreateRole)]) -> Response:
    """Create a role."""
    _check_name(body.name)
    _check_provider(body.provider_id)
    paired = server.settings.is_at_least("0.12")  # earlier roles have a source id and no provider
    if paired and (body.provider_id is None) != (body.source_id is None):
        message = "provider-id and source-id must be provided together, or both omitted"
        raise ApiError(400, "InvalidRoleIdentifier", message)
    during = "Error creating role in catalog"
    role_id, project = new_id(), body.project_id or project
    role = RoleRow(
        id=role_id,
        project_id=project,
        name=body.name,
        name_key=body.name.casefold(),
        description=body.description or None,
        provider_id=body.provider_id or OWN_PROVIDER,
        source_id=body.source_id or role_id,
        created_at=server.clock.now(),
        updated_at=None,
    )
    try:
        with server.database.write() as session:
            if session.get(ProjectRow, project) is None:
                raise ApiError(404, "ProjectNotFound", f"Project with id '{project}' not found", during)
            session.add(role)
            session.flush()
            server.authorizer.add_owner(session, Target("role", role_id))
    except IntegrityError as error:
        raise _build_conflict(error, during) from None
    return json_response(role_to_json(server.settings, role), 201)


@dataclass(frozen=True)
class RoleFilter:
    """Query parameters of the listing. Each parameter limits the returned roles."""

    role_ids: Annotated[list[UUID] | None, Query(alias="roleIds")] = None
    source_ids: Annotated[list[str] | None, Query(alias="sourceIds")] = None
    provider_ids: Annotated[list[str] | None, Query(alias="providerIds")] = None
    project_id: Annotated[str | None, Query(alias="projectId")] = None


@router.get("/role")
def list_roles(
    server: Server, project: ProjectId, page: AskedPage, role_filter: Annotated[RoleFilter, Depends()]
) -> Response:
    """List the roles of a project."""
    query = select(RoleRow).where(RoleRow.project_id == (role_filter.project_id or project))
    if role_filter.role_ids is not None:
        query = query.where(RoleRow.id.in_([str(role_id) for role_id in role_filter.role_ids]))
    if role_filter.source_ids is not None:
        query = query.where(RoleRow.source_id.in_(role_filter.source_ids))
    if role_filter.provider_ids is not None:
        query = query.where(RoleRow.provider_id.in_(role_filter.provider_ids))
    with server.database.read() as session:
        roles = session.scalars(page.select(query, RoleRow.created_at, RoleRow.id)).all()
    return json_response(
        {"roles": [role_to_json(server.settings, role) for role in roles], "next-page-token": page.build_token(roles)}
    )


@router.post("/search/role")
def search_role(server: Server, project: ProjectId, body: Annotated[SearchRole, read_body(SearchRole)]) -> Response:
    """Find roles: first by id, then by source id, then by the closest names; ten at most."""
    term = body.search[:MAX_LENGTH]
    term_trigrams = trigrams(term)
    query = select(RoleRow).where(RoleRow.project_id == (body.project_id or project))
    with server.database.read() as session:
        roles = session.scalars(query.order_by(RoleRow.created_at, RoleRow.id)).all()

    def closeness(role: RoleRow) -> tuple[bool, bool, float]:
        return role.id != term, role.source_id != term, trigram_distance(term_trigrams, trigrams(role.name))

    return json_response(
        {"roles": [role_to_json(server.settings, role) for role in sorted(roles, key=closeness)[:MAX_RESULTS]]}
    )


@router.get("/role/{role_id}")
def get_role(server: Server, project: ProjectId, role_id: UUID) -> Response:
    """Return a role of the project."""
    with server.database.read() as session:
        return json_response(role_to_json(server.settings, find_role(session, project, role_id)))


@router.get("/role/{role_id}/metadata")
def get_role_metadata(server: Server, role_id: UUID) -> Response:
    """Return the metadata of a role of any project."""
    with server.database.read() as session:
        role = session.get(RoleRow, str(role_id))
    if role is None:
        message = f"A role with id '{role_id}' does not exist"
        raise ApiError(404, "RoleNotFound", message, "Role not found or access denied")
    identifiers = ("ident", "provider-id", "source-id") if server.settings.is_at_least("0.12") else ()
    role_document = role_to_json(server.settings, role)
    return json_response({field: role_document[field] for field in ("id", *identifiers, "name", "project-id")})


@router.post("/role/{role_id}")
def update_role(
    server: Server, project: ProjectId, role_id: UUID, body: Annotated[UpdateRole, read_body(UpdateRole)]
) -> Response:
    """Replace name and description; a description that is left out is removed."""
    _check_name(body.name)
    try:
        with server.database.write() as session:
            role = find_role(session, project, role_id)
            role.name, role.name_key = body.name, body.name.casefold()
            role.description, role.updated_at = body.description or None, server.clock.now()
    except IntegrityError as error:
        raise _build_conflict(error, "Error updating role in catalog") from None
    return json_response(role_to_json(server.settings, role))


@router.put("/role/{role_id}/source-system")
def update_source_system(
    server: Server, project: ProjectId, role_id: UUID, body: Annotated[SourceSystem, read_body(SourceSystem)]
) -> Response:
    """Set the system that manages the role's members."""
    _check_provider(body.provider_id)
    try:
        with server.database.write() as session:
            role = find_role(session, project, role_id)
            role.provider_id, role.source_id = body.provider_id, body.source_id
            role.updated_at = server.clock.now()
    except IntegrityError as error:
        raise _build_conflict(error, "Error updating role in catalog") from None
    return json_response(role_to_json(server.settings, role))


@router.delete("/role/{role_id}")
def delete_role(server: Server, project: ProjectId, role_id: UUID) -> Response:
    """Delete a role, its memberships and its grants."""
    with server.database.write() as session:
        role = find_role(session, project, role_id)
        forget_objects(session, "role", [role.id])
        session.delete(role)
    return empty()


def find_role(session: Session, project: str, role_id: UUID | str) -> RoleRow:
    """Return a role. Raises 404 `RoleNotFoundInProject`, also for a role of another project."""
    role = session.get(RoleRow, str(role_id))
    if role is None or role.project_id != project:
        raise role_missing(role_id, project)
    return role


def _check_name(name: str) -> None:
    if not name:
        raise ApiError(400, "EmptyRoleName", "Role name cannot be empty")


def _check_provider(provider: str | None) -> None:
    if provider == RESERVED_PROVIDER:
        message = "provider_id `system` is reserved for catalog-managed roles"
        raise ApiError(400, "RoleProviderIdReserved", f"{message} and cannot be used in role-management requests.")


def _build_conflict(error: IntegrityError, during: str) -> ApiError:
    """Return the 409. SQLite names the columns of the violated constraint, Postgres the constraint."""
    if any(mark in str(error.orig) for mark in ("role.source_id", '"role_source"')):
        message = "A role with the specified provider and source id already exists in the specified project"
        return ApiError(409, "RoleSourceIdConflict", message, during)
    message = "A role with the specified name already exists in the specified project"
    return ApiError(409, "RoleNameAlreadyExists", message, during)


def role_ident(role: RoleRow) -> str:
    """Return the role's identifier in its source system."""
    return f"{role.provider_id}~{role.source_id}"


def role_to_json(settings: Settings, role: RoleRow) -> dict[str, Any]:
    """Return a role as responses contain it."""
    if settings.is_at_least("0.12"):
        source = {"ident": role_ident(role), "provider-id": role.provider_id, "source-id": role.source_id}
    else:
        source = {"source-id": role.source_id if role.source_id != role.id else None}
    return {
        "id": role.id,
        **source,
        "name": role.name,
        "description": role.description,
        "project-id": role.project_id,
        "created-at": timestamp(role.created_at),
        "updated-at": optional_timestamp(role.updated_at),
    }
