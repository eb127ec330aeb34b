"""The hierarchy that rights are inherited along: tables and views, namespace, warehouse, project, server.

Roles and tag definitions are in their project, users in the server.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.database.lookups import find_tabular_by_id
from lakewright_sandbox.lakekeeper.database.models import (
    FormerParentRow,
    NamespaceRow,
    ProjectRow,
    RoleRow,
    TabularRow,
    TagDefinitionRow,
    WarehouseRow,
)
from lakewright_sandbox.lakekeeper.database.server_context import ServerContext

_FORMER_PARENTS = "former parents"
"""Key of a session's former parents."""


def find_parent(server: ServerContext, session: Session, target: Target) -> Target | None:
    """Return the parent of an object, None for the server and for an object that does not exist."""
    if target.kind == "user" or (target.kind == "project" and session.get(ProjectRow, target.id)):
        return Target("server", server.server_id)
    above: Target | None = None
    if target.is_tabular and (tabular := find_tabular_by_id(session, target.warehouse_id, target.object_id)):
        above = _find_parent_of_tabular(session, tabular)
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


def keep_parent(session: Session, tabular: TabularRow) -> None:
    """Record the parent of a table or view before it moves to another namespace, unless it moved before."""
    if session.get(FormerParentRow, (tabular.warehouse_id, tabular.id)) is None:
        parent = FormerParentRow(
            warehouse_id=tabular.warehouse_id, tabular_id=tabular.id, namespace_id=tabular.namespace_id
        )
        session.add(parent)


def _find_parent_of_tabular(session: Session, tabular: TabularRow) -> Target | None:
    """Return the namespace in which a table or view was created; None if it moved and that namespace was dropped."""
    namespace_id = _list_former_parents(session).get((tabular.warehouse_id, tabular.id), tabular.namespace_id)
    return Target("namespace", namespace_id) if namespace_id else None


def _list_former_parents(session: Session) -> dict[tuple[str, str], str | None]:
    """Return the parents of tables and views that moved, by warehouse and id. A session reads them once."""
    if _FORMER_PARENTS not in session.info:
        rows = session.scalars(select(FormerParentRow))
        session.info[_FORMER_PARENTS] = {(row.warehouse_id, row.tabular_id): row.namespace_id for row in rows}
    return session.info[_FORMER_PARENTS]


def list_ancestors(server: ServerContext, session: Session, target: Target) -> Iterator[Target]:
    """Yield the object and its ancestors."""
    current: Target | None = target
    while current is not None:
        yield current
        current = find_parent(server, session, current)


def project_above(server: ServerContext, session: Session, target: Target) -> str | None:
    """Return the id of the object's project, None if it has none."""
    return next((above.id for above in list_ancestors(server, session, target) if above.kind == "project"), None)
