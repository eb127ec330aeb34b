"""Projects: create, read, list, rename, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import AfterValidator
from sqlalchemy import select
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.store import Target, forget_objects
from lakewright_sandbox.lakekeeper.database.models import (
    ProjectRow,
    RoleRow,
    TagDefinitionRow,
    TaskQueueConfigRow,
    WarehouseRow,
)
from lakewright_sandbox.lakekeeper.protocol.clock import new_id
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError, project_missing
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.server.server import ProjectId, Server, validate_project_id

router = APIRouter(prefix="/management/v1")


class CreateProject(Body):
    """Request to create a project."""

    project_name: str
    project_id: Annotated[str, AfterValidator(validate_project_id)] | None = None


class RenameProjectBody(Body):
    """Request to rename a project."""

    new_name: str


@router.post("/project")
def create_project(server: Server, body: Annotated[CreateProject, read_body(CreateProject)]) -> Response:
    """Create a project."""
    _check_name(body.project_name)
    project_id = body.project_id or new_id()
    with server.database.write() as session:
        if session.get(ProjectRow, project_id) is not None:
            raise ApiError(409, "ProjectIdAlreadyExists", "Project with this id already exists")
        session.add(ProjectRow(id=project_id, name=body.project_name, created_at=server.clock.now()))
        server.authorizer.add_owner(session, Target("project", project_id))
    return json_response({"project-id": project_id}, 201)


@router.get("/project-list")
def list_projects(server: Server) -> Response:
    """List the projects that the caller may see."""
    with server.database.read() as session:
        projects = session.scalars(select(ProjectRow).order_by(ProjectRow.created_at, ProjectRow.id)).all()
        projects = server.authorizer.filter_visible(session, projects, lambda row: Target("project", row.id))
    return json_response({"projects": [_to_json(project) for project in projects]})


def get_project(server: Server, project_id: str) -> Response:
    """Return a project."""
    with server.database.read() as session:
        project = session.get(ProjectRow, project_id)
    if project is None:
        raise project_missing(project_id)
    return json_response(_to_json(project))


def rename_project(server: Server, project_id: str, name: str) -> Response:
    """Rename a project."""
    _check_name(name)
    with server.database.write() as session:
        project = session.get(ProjectRow, project_id)
        if project is None:
            raise project_missing(project_id)
        project.name = name
    return empty(200)


def delete_project(server: Server, project_id: str) -> Response:
    """Delete an empty project."""
    with server.database.write() as session:
        project = session.get(ProjectRow, project_id)
        if project is None:
            raise ApiError(404, "ProjectNotFound", "Project not found")
        contents = (select(kind.id).where(kind.project_id == project_id).limit(1) for kind in (WarehouseRow, RoleRow))
        if any(session.scalars(content).first() for content in contents):
            raise ApiError(409, "ProjectNotEmpty", "Project is not empty")
        for config in session.scalars(select(TaskQueueConfigRow).where(TaskQueueConfigRow.scope == project_id)):
            session.delete(config)
        tags = session.scalars(select(TagDefinitionRow).where(TagDefinitionRow.project_id == project_id)).all()
        forget_objects(session, "tag-definition", [tag.id for tag in tags])
        for tag in tags:
            session.delete(tag)
        forget_objects(session, "project", [project_id])
        session.delete(project)
    return empty()


@router.get("/project")
def get_by_header(server: Server, project_id: ProjectId) -> Response:
    """Return the project that the header names."""
    return get_project(server, project_id)


@router.post("/project/rename")
def rename_by_header(
    server: Server, project_id: ProjectId, body: Annotated[RenameProjectBody, read_body(RenameProjectBody)]
) -> Response:
    """Rename the project that the header names."""
    return rename_project(server, project_id, body.new_name)


@router.delete("/project")
def delete_by_header(server: Server, project_id: ProjectId) -> Response:
    """Delete the project that the header names."""
    return delete_project(server, project_id)


@router.get("/project/{project_id}")
def get_by_path(server: Server, project_id: str) -> Response:
    """Return the project that the path names."""
    return get_project(server, project_id)


@router.post("/project/{project_id}/rename")
def rename_by_path(
    server: Server, project_id: str, body: Annotated[RenameProjectBody, read_body(RenameProjectBody)]
) -> Response:
    """Rename the project that the path names."""
    return rename_project(server, project_id, body.new_name)


@router.delete("/project/{project_id}")
def delete_by_path(server: Server, project_id: str) -> Response:
    """Delete the project that the path names."""
    return delete_project(server, project_id)


def _to_json(project: ProjectRow) -> dict[str, str]:
    return {"project-id": project.id, "project-name": project.name}


def _check_name(name: str) -> None:
    if not name:
        raise ApiError(400, "EmptyProjectName", "Project name cannot be empty")
    if len(name.encode()) > 128:
        raise ApiError(400, "ProjectNameTooLong", "Project name must be shorter than 128 chars")
