"""Look up warehouses, namespaces, tables and views by id or name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, TabularRow, WarehouseRow
from lakewright_sandbox.lakekeeper.database.server_context import STATUSES, StatusCache
from lakewright_sandbox.lakekeeper.protocol.errors import namespace_missing, tabular_missing, warehouse_missing

SEPARATOR = "\x1f"
"""Separates the parts of a namespace in paths and keys."""


def find_warehouse(
    session: Session, warehouse_id: str, *, active: bool = False, during: str | None = None
) -> WarehouseRow:
    """Return a warehouse. Raises 404 `NoSuchWarehouseException`, with `active` for an inactive warehouse too."""
    warehouse = session.get(WarehouseRow, warehouse_id)
    if warehouse is None or (active and not (warehouse.active and _statuses(session).is_active(warehouse))):
        raise warehouse_missing(warehouse_id, during) if during else warehouse_missing(warehouse_id)
    return warehouse


def looks_empty(session: Session, warehouse_id: str) -> bool:
    """Return whether the catalog finds nothing in a warehouse, since it is inactive and cached as active."""
    warehouse = session.get(WarehouseRow, warehouse_id)
    return warehouse is not None and not warehouse.active and _statuses(session).is_active(warehouse)


def _statuses(session: Session) -> StatusCache:
    return session.info[STATUSES]


def parse_namespace(namespace: str) -> tuple[str, ...]:
    """Return the parts of a namespace in a path, where a plus stands for a space."""
    return tuple(namespace.replace("+", " ").split(SEPARATOR))


def path_key(path: Sequence[str]) -> str:
    """Return the key of a namespace in the database; names that differ in case alone share it."""
    return SEPARATOR.join(part.casefold() for part in path)


def find_namespace(session: Session, warehouse_id: str, path: Sequence[str]) -> NamespaceRow:
    """Return a namespace of a warehouse. Raises 404 `NoSuchNamespaceException`."""
    query = select(NamespaceRow).where(
        NamespaceRow.warehouse_id == warehouse_id, NamespaceRow.path_key == path_key(path)
    )
    namespace = session.scalars(query).first()
    if namespace is None:
        raise namespace_missing(".".join(path), warehouse_id)
    return namespace


def find_tabular(
    session: Session, namespace: NamespaceRow, name: str, kind: str, *, staged: bool = False
) -> TabularRow:
    """Return the table or view that is not deleted; a staged table only with `staged`. Raises 404."""
    tabular = find_tabular_by_name(session, namespace, name)
    if tabular is None or tabular.kind != kind or (tabular.metadata_location is None and not staged):
        raise tabular_missing(kind)
    return tabular


def find_tabular_by_id(session: Session, warehouse_id: object, tabular_id: object) -> TabularRow | None:
    """Return the table or view of any kind that has the id in a warehouse, also a deleted table or view."""
    return session.get(TabularRow, (str(warehouse_id), str(tabular_id)))


def find_tabular_by_name(session: Session, namespace: NamespaceRow, name: str) -> TabularRow | None:
    """Return the table or view of any kind that has the name and is not deleted."""
    query = select(TabularRow).where(
        TabularRow.namespace_id == namespace.id, TabularRow.name_key == name.casefold(), TabularRow.deleted_at.is_(None)
    )
    return session.scalars(query).first()
