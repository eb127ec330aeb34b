"""Drop a namespace with its contents. Obstacles are checked in the server's order."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, delete, select
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.store import forget_namespaces, forget_tabulars
from lakewright_sandbox.lakekeeper.database.lookups import SEPARATOR, find_namespace, find_warehouse
from lakewright_sandbox.lakekeeper.database.models import (
    DefaultNamespaceRow,
    NamespaceRow,
    TabularRow,
    TaskRow,
)
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper
from lakewright_sandbox.lakekeeper.server.task_queue import cancel_soft_deletion, schedule_purge

ERROR_CONTEXT = "Error dropping Namespace in catalog"


def drop_namespace(
    server: Lakekeeper, warehouse_id: str, path: Sequence[str], *, recursive: bool, force: bool, purge: bool
) -> None:
    """Drop a namespace; `purge` schedules the deletion of the files of its tables and views.

    Files of soft-deleted and generic tables remain. Raises 400 or 409 if it is blocked.
    """
    with server.database.write() as session:
        warehouse = find_warehouse(session, warehouse_id, active=True)
        top = find_namespace(session, warehouse_id, path)
        if recursive and not force and warehouse.delete_profile["type"] == "soft":
            message = "Cannot recursively delete namespace with soft-deletion without force flag"
            raise ApiError(400, "NamespaceDeleteNotAllowed", message)
        below = NamespaceRow.path_key.startswith(top.path_key + SEPARATOR, autoescape=True)
        children = list(session.scalars(select(NamespaceRow).where(NamespaceRow.warehouse_id == warehouse_id, below)))
        ids = [top.id, *(child.id for child in children)]
        tabulars = list(session.scalars(select(TabularRow).where(TabularRow.namespace_id.in_(ids))))
        if not recursive:
            tabulars = [tabular for tabular in tabulars if tabular.metadata_location is not None]
        name = ".".join(top.path)
        if not recursive:
            _check_empty(name, children, tabulars)
        if not force:
            _check_unprotected(name, top, children, tabulars)
        if tabulars:
            _check_no_running_expiration(session, name, tabulars)
        for tabular in tabulars:
            cancel_soft_deletion(session, tabular)
            if purge and _is_purged(tabular):
                schedule_purge(server, session, warehouse, tabular)
        forget_namespaces(session, ids)
        forget_tabulars(session, tabulars)
        session.execute(delete(TabularRow).where(TabularRow.namespace_id.in_(ids)))
        _check_no_default_namespace(session, name, ids)
        session.execute(delete(NamespaceRow).where(NamespaceRow.id.in_(ids)))


def _is_purged(tabular: TabularRow) -> bool:
    is_live = tabular.metadata_location is not None and tabular.deleted_at is None
    return is_live and tabular.kind != "generic-table"


def _check_no_default_namespace(session: Session, name: str, ids: list[str]) -> None:
    """Raise 409 if a version of a remaining view, even of a soft-deleted view, has a default namespace among these."""
    is_of_view = and_(
        TabularRow.warehouse_id == DefaultNamespaceRow.warehouse_id, TabularRow.id == DefaultNamespaceRow.view_id
    )
    query = select(TabularRow.id).join(DefaultNamespaceRow, is_of_view)
    if session.scalars(query.where(DefaultNamespaceRow.namespace_id.in_(ids)).limit(1)).first():
        message = f"Namespace with name '{name}' is not empty."
        raise ApiError(409, "NamespaceNotEmptyException", message, ERROR_CONTEXT)


def _check_empty(name: str, children: list[NamespaceRow], tabulars: list[TabularRow]) -> None:
    if children or tabulars:
        deleted = sum(1 for tabular in tabulars if tabular.deleted_at is not None)
        content = (
            f"Contains {len(tabulars) - deleted} tables/views/generic tables, {deleted} soft-deleted "
            f"tables/views/generic tables and {len(children)} child namespaces."
        )
        advice = "Use 'recursive' flag to delete all content."
        message = f"Namespace with name '{name}' is not empty."
        raise ApiError(409, "NamespaceNotEmptyException", message, content, advice, ERROR_CONTEXT)


def _check_unprotected(name: str, top: NamespaceRow, children: list[NamespaceRow], tabulars: list[TabularRow]) -> None:
    if top.protected:
        message = f"Namespace '{name}' is protected and force flag not set."
        raise ApiError(409, "NamespaceProtected", message, ERROR_CONTEXT)
    if any(child.protected for child in children):
        message = f"Namespace '{name}' has protected child namespaces and force flag not set."
        raise ApiError(409, "ChildNamespaceProtected", message, ERROR_CONTEXT)
    if any(tabular.protected for tabular in tabulars):
        message = f"Namespace '{name}' has protected tables or views and force flag not set."
        raise ApiError(409, "ChildTabularProtected", message, ERROR_CONTEXT)


def _check_no_running_expiration(session: Session, name: str, tabulars: list[TabularRow]) -> None:
    running = select(TaskRow.id).where(
        TaskRow.warehouse_id == tabulars[0].warehouse_id,
        TaskRow.entity_id.in_([tabular.id for tabular in tabulars]),
        TaskRow.queue == "soft_deletion",
        TaskRow.status.in_(("RUNNING", "STOPPING")),
    )
    if session.scalars(running.limit(1)).first():
        message = f"Namespace '{name}' has a currently running tabular expiration, please retry later."
        raise ApiError(409, "NamespaceHasRunningTabularExpirations", message, ERROR_CONTEXT)
