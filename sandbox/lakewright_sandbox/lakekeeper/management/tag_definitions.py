"""Tag definitions of a project. The server stores no tagged objects, only who may apply which tag."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.enforcement.management_targets import tag_definition_missing
from lakewright_sandbox.lakekeeper.authz.store import Target, forget_objects
from lakewright_sandbox.lakekeeper.database.models import ProjectRow, TagDefinitionRow
from lakewright_sandbox.lakekeeper.protocol.clock import new_id, optional_timestamp, timestamp
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError, project_missing
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.server.paging import AskedPage
from lakewright_sandbox.lakekeeper.server.server import ProjectId, Server

Scope = Literal["warehouse", "namespace", "table", "view", "generic-table", "column"]

router = APIRouter(prefix="/management/v1/tag-definition")


class CreateTagDefinition(Body):
    """Request to define a tag."""

    name: str
    scope: list[Scope]
    value_kind: Literal["marker", "free-text", "enumerated"]
    description: str | None = None
    allowed_values: list[str] | None = None


@router.post("")
def create(
    server: Server, project: ProjectId, body: Annotated[CreateTagDefinition, read_body(CreateTagDefinition)]
) -> Response:
    """Define a tag."""
    row = TagDefinitionRow(
        id=new_id(),
        project_id=project,
        name=body.name,
        name_key=body.name.casefold(),
        description=body.description,
        scope=list(body.scope),
        value_kind=body.value_kind,
        allowed_values=body.allowed_values,
        created_at=server.clock.now(),
        updated_at=None,
    )
    with server.database.write() as session:
        if session.get(ProjectRow, project) is None:
            raise project_missing(project)
        if session.scalars(_select_by_name(project, body.name)).first():
            raise ApiError(409, "TagDefinitionNameAlreadyExists", f"A tag `{body.name}` exists in the project.")
        session.add(row)
        session.flush()
        server.authorizer.add_owner(session, Target("tag-definition", row.id))
    return json_response(_to_json(row) | {"allowed-values": row.allowed_values}, 201)


@router.get("")
def list_all(
    server: Server, project: ProjectId, page: AskedPage, name: Annotated[str | None, Query()] = None
) -> Response:
    """List the tag definitions of a project, or the definition with a name."""
    query = _select_by_name(project, name) if name is not None else _select_in_project(project)
    with server.database.read() as session:
        rows = session.scalars(page.select(query, TagDefinitionRow.created_at, TagDefinitionRow.id)).all()
        token = page.next_token(rows)
        visible_rows = server.authorizer.filter_visible(session, rows, lambda row: Target("tag-definition", row.id))
    return json_response({"tag-definitions": [_to_json(row) for row in visible_rows], "next-page-token": token})


@router.get("/{tag_definition_id}")
def get(server: Server, project: ProjectId, tag_definition_id: UUID) -> Response:
    """Return a tag definition."""
    with server.database.read() as session:
        row = _find(session, project, tag_definition_id)
    return json_response(_to_json(row) | {"allowed-values": row.allowed_values})


@router.delete("/{tag_definition_id}")
def delete(server: Server, project: ProjectId, tag_definition_id: UUID) -> Response:
    """Delete a tag definition."""
    with server.database.write() as session:
        row = _find(session, project, tag_definition_id)
        forget_objects(session, "tag-definition", [row.id])
        session.delete(row)
    return empty()


def _select_in_project(project: str) -> Any:
    return select(TagDefinitionRow).where(TagDefinitionRow.project_id == project)


def _select_by_name(project: str, name: str) -> Any:
    return _select_in_project(project).where(TagDefinitionRow.name_key == name.casefold())


def _find(session: Session, project: str, definition_id: UUID) -> TagDefinitionRow:
    row = session.get(TagDefinitionRow, str(definition_id))
    if row is None or row.project_id != project:
        raise tag_definition_missing(str(definition_id))
    return row


def _to_json(row: TagDefinitionRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "scope": row.scope,
        "value-kind": row.value_kind,
        "created-at": timestamp(row.created_at),
        "updated-at": optional_timestamp(row.updated_at),
    }
