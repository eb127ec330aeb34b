"""The targets of catalog calls: namespaces, tables and views that path, query and body name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.database.lookups import find_tabular_by_name, parse_namespace, path_key
from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, WarehouseRow
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper
from lakewright_sandbox.typed.json_values import is_array, is_object

RequiredAction = tuple[Target, str]

TABULARS = {"table": "table", "view": "view", "generic_table": "generic-table"}
"""Kinds by path parameter."""


class CatalogNames:
    """Names in one warehouse, looked up in one session. Missing objects need no right: handlers respond 404."""

    def __init__(self, session: Session, warehouse_id: str) -> None:
        """Look up names in a warehouse."""
        self._session = session
        self._warehouse = Target("warehouse", warehouse_id)

    def list_required_actions(
        self, action: str, params: dict[str, str], parent: str | None, body: Any
    ) -> Iterator[RequiredAction]:
        """Yield the required actions on named objects. For a namespace or table, the warehouse must only exist."""
        if "namespace" in params:
            path = parse_namespace(params["namespace"])
            tabular_name = next(((kind, params[name]) for name, kind in TABULARS.items() if name in params), None)
            yield from (
                self._tabular(path, tabular_name[1], tabular_name[0], action)
                if tabular_name
                else self._namespace(path, action)
            )
        elif action == "list_namespaces":
            yield from self._namespace(parse_namespace(parent), action) if parent else [(self._warehouse, action)]
        else:
            yield from self._list_body_actions(action, body if is_object(body) else {})

    def _list_body_actions(self, action: str, body: dict[str, Any]) -> Iterator[RequiredAction]:
        if action == "create_namespace":
            above = _path(body.get("namespace"))[:-1]
            yield from self._namespace(above, action) if above else [(self._warehouse, action)]
        elif action == "rename":
            yield from self._list_identifier_actions(body.get("source"), action)
            destination = body.get("destination")
            if is_object(destination):
                yield from self._namespace(_path(destination.get("namespace")), "create_table")
        elif action == "commit":
            changes: list[Any] = body.get("table-changes") or []
            for change in changes:
                yield from self._list_identifier_actions(
                    change.get("identifier") if is_object(change) else None, action
                )

    def _list_identifier_actions(self, identifier: Any, action: str) -> Iterator[RequiredAction]:
        if is_object(identifier):
            yield from self._tabular(_path(identifier.get("namespace")), str(identifier.get("name")), None, action)

    def _namespace(self, path: Sequence[str], action: str) -> Iterator[RequiredAction]:
        if namespace := self._find(path):
            yield Target("namespace", namespace.id), action

    def _tabular(self, path: Sequence[str], name: str, kind: str | None, action: str) -> Iterator[RequiredAction]:
        namespace = self._find(path)
        tabular = find_tabular_by_name(self._session, namespace, name) if namespace else None
        if tabular is not None and kind in (None, tabular.kind):
            yield Target.from_tabular(tabular), action

    def _find(self, path: Sequence[str]) -> NamespaceRow | None:
        key = path_key(path)
        query = select(NamespaceRow).where(
            NamespaceRow.warehouse_id == self._warehouse.id, NamespaceRow.path_key == key
        )
        return self._session.scalars(query).first()


def catalog_actions(
    session: Session, action: str, params: dict[str, str], parent: str | None, body: Any
) -> Iterator[RequiredAction]:
    """Yield the required actions of a call under `/catalog/v1/{prefix}`, in the order of checking."""
    try:
        warehouse_id = str(UUID(params["prefix"]))
    except ValueError:
        return
    if session.get(WarehouseRow, warehouse_id) is not None:
        yield from CatalogNames(session, warehouse_id).list_required_actions(action, params, parent, body)


def config_actions(server: Lakekeeper, session: Session, project: str, warehouse: str) -> Iterator[RequiredAction]:
    """Yield the required action of `GET /config`, whose warehouse may follow its project and a slash."""
    head, slash, name_in_project = warehouse.partition("/")
    names = [(head, name_in_project)] if slash else []
    for owner, name in [*names, (project or server.settings.default_project, warehouse)]:
        query = select(WarehouseRow).where(WarehouseRow.project_id == owner, WarehouseRow.name_key == name.casefold())
        if warehouse_row := session.scalars(query).first():
            yield Target("warehouse", warehouse_row.id), "get_config"
            return


def _path(value: Any) -> list[str]:
    return [str(part) for part in value] if is_array(value) else []
