"""What lies in what, as rights are inherited: tables and views, namespace, warehouse, project, server.

Roles and tag definitions lie in their project, users in the server.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.orm import Session

from ..database.models import NamespaceRow, ProjectRow, RoleRow, TabularRow, TagDefinitionRow, WarehouseRow
from ..database.server_context import ServerContext
from .store import Target


def parent_of(server: ServerContext, session: Session, target: Target) -> Target | None:
    """None above the server, and for an object that is gone."""
    if target.kind == "user" or (target.kind == "project" and session.get(ProjectRow, target.id)):
        return Target("server", server.server_id)
    above: Target | None = None
    if target.kind in ("table", "view", "generic-table") and (tabular := session.get(TabularRow, target.id)):
        above = Target("namespace", tabular.namespace_id)
    elif target.kind == "namespace" and (namespace := session.get(NamespaceRow, target.id)):
        parent = namespace.parent_id
        above = Target("namespace", parent) if parent else Target("warehouse", namespace.warehouse_id)
    elif target.kind == "warehouse" and (warehouse := session.get(WarehouseRow, target.id)):
        above = Target("project", warehouse.project_id)
    elif target.kind == "role" and (role := session.get(RoleRow, target.id)):
        above = Target("project", role.project_id)
    elif target.kind == "tag-definition" and (tag := session.get(TagDefinitionRow, target.id)):
        above = Target("project", tag.project_id)
    return above


def line_of(server: ServerContext, session: Session, target: Target) -> Iterator[Target]:
    """The object and all above it."""
    current: Target | None = target
    while current is not None:
        yield current
        current = parent_of(server, session, current)


def project_above(server: ServerContext, session: Session, target: Target) -> str | None:
    return next((one.id for one in line_of(server, session, target) if one.kind == "project"), None)
