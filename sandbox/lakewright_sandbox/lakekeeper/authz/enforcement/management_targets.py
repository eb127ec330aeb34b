"""The object that the path of a management request names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.store import TABULAR_KINDS, Target
from lakewright_sandbox.lakekeeper.database.lookups import find_tabular_by_id, find_warehouse
from lakewright_sandbox.lakekeeper.database.models import (
    NamespaceRow,
    ProjectRow,
    RoleRow,
    TagDefinitionRow,
)
from lakewright_sandbox.lakekeeper.protocol.errors import (
    ApiError,
    RequestRejectedError,
    namespace_missing,
    project_missing,
    tabular_missing,
)
from lakewright_sandbox.lakekeeper.protocol.identities import validate_user_id
from lakewright_sandbox.lakekeeper.protocol.requests import uuid_fault
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, ProjectId

PATHS = {
    "server": "/server",
    "project": "/project",
    "warehouse": "/warehouse/{warehouse_id}",
    "namespace": "/warehouse/{warehouse_id}/namespace/{namespace_id}",
    "table": "/warehouse/{warehouse_id}/table/{table_id}",
    "view": "/warehouse/{warehouse_id}/view/{view_id}",
    "generic-table": "/warehouse/{warehouse_id}/generic-table/{generic_table_id}",
    "tag-definition": "/tag-definition/{tag_definition_id}",
}
INNERMOST_FIRST = (
    *("generic-table", "view", "table", "namespace", "warehouse"),
    *("tag-definition", "role", "user", "project"),
)


def id_name(kind: str) -> str:
    """Return the path parameter that names an object of a kind."""
    return f"{kind.replace('-', '_')}_id"


class NamedTarget:
    """An object that a path names, before it is looked up."""

    def __init__(self, kind: str, ids: Mapping[str, str], project: str) -> None:
        """Set the kind, the ids of the path and the project."""
        self.kind, self.ids, self.project = kind, ids, project

    def target(self, server: Lakekeeper) -> Target:
        """Return the object, whether it exists or not."""
        if self.kind == "server":
            return Target(self.kind, server.server_id)
        object_id = self.ids[id_name(self.kind)]
        if self.kind in TABULAR_KINDS:
            return Target.name_tabular(self.kind, self.ids["warehouse_id"], object_id)
        return Target(self.kind, object_id)

    def find(self, server: Lakekeeper, session: Session) -> Target:
        """Return the object. Raises 404 if it does not exist."""
        ids = self.ids
        match self.kind:
            case "project":
                if session.get(ProjectRow, ids["project_id"]) is None:
                    raise project_missing(ids["project_id"])
            case "warehouse":
                find_warehouse(session, ids["warehouse_id"])
            case "namespace":
                find_namespace_by_id(session, ids["namespace_id"], ids.get("warehouse_id"))
            case "role":
                role = session.get(RoleRow, ids["role_id"])
                if role is None or role.project_id != self.project:
                    raise role_missing(ids["role_id"], self.project)
            case "tag-definition":
                tag = session.get(TagDefinitionRow, ids["tag_definition_id"])
                if tag is None or tag.project_id != self.project:
                    raise tag_definition_missing(ids["tag_definition_id"])
            case "table" | "view" | "generic-table" as kind:
                find_warehouse(session, ids["warehouse_id"])
                tabular = find_tabular_by_id(session, ids["warehouse_id"], ids[id_name(kind)])
                if tabular is None or tabular.kind != kind:
                    raise tabular_missing(kind)
            case _:
                pass
        return self.target(server)


async def find_named_object(request: Request, project: ProjectId) -> NamedTarget:
    """Return the innermost object of the path. Ids other than projects' and users' must be UUIDs."""
    path_params = request.path_params
    ids = {
        name: _check_id(name, path_params[name]) for kind in INNERMOST_FIRST if (name := id_name(kind)) in path_params
    }
    path = request.scope["route"].path
    kind = next((kind for kind in INNERMOST_FIRST if id_name(kind) in ids), None)
    if kind is None:
        kind = "server" if "/server" in path else "project"
        ids["project_id"] = project
    return NamedTarget(kind, ids, project)


NamedObject = Annotated[NamedTarget, Depends(find_named_object)]


def _check_id(name: str, value: str) -> str:
    if name == "project_id":
        return value
    if name == "user_id":
        return validate_user_id(value)
    try:
        return str(UUID(value))
    except ValueError:
        reason = f"UUID parsing failed: {uuid_fault(value)}"
        message = f"Invalid URL: Cannot parse `{name}` with value `{value}`: {reason}"
        raise RequestRejectedError(400, message) from None


def find_namespace_by_id(session: Session, namespace_id: str, warehouse_id: str | None = None) -> NamespaceRow:
    """Return a namespace. Raises 404, also for a namespace of another warehouse than `warehouse_id`."""
    if warehouse_id is not None:
        find_warehouse(session, warehouse_id)
    row = session.get(NamespaceRow, namespace_id)
    if row is None or warehouse_id not in (None, row.warehouse_id):
        raise namespace_missing(namespace_id, warehouse_id or "")
    return row


def tag_definition_missing(definition_id: str) -> ApiError:
    """Return the 404 of a missing tag definition."""
    return ApiError(404, "TagDefinitionNotFound", f"Tag definition `{definition_id}` not found or access denied")


def role_missing(role_id: object, project: str) -> ApiError:
    """Return the 404 of a missing role."""
    message = f"A role with id '{role_id}' does not exist in project with id '{project}'"
    stack = ("Role not found or access denied", "Error getting Role from catalog")
    return ApiError(404, "RoleNotFoundInProject", message, *stack)
