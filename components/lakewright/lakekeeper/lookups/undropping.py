"""Restore dropped tables and views: find them by name, and undrop them unless their name is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from lakewright.lakekeeper.api.catalog import tabulars
from lakewright.lakekeeper.api.catalog.tabulars import Kind, Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import AlreadyExistsError, NotFoundError, NothingFoundError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.lookups.catalog import DeletedTable, list_deleted_tables
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.server.lookup_base import format_names
from lakewright.names.table_name import QualifiedName


@dataclass(frozen=True)
class WarehouseRef:
    """A warehouse, and the client of its server."""

    name: str
    warehouse_id: str
    client: Client

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"warehouse `{self.name}` ({self.warehouse_id}) at {self.client.endpoint}"


@dataclass(frozen=True)
class DroppedTable:
    """A dropped table or view, and its warehouse."""

    warehouse: WarehouseRef
    table: DeletedTable

    @property
    def name(self) -> QualifiedName:
        """Full name of the table or view."""
        return QualifiedName(self.warehouse.name, tuple(self.table.namespace.split(".")), self.table.name)

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"{self.table.kind} {self.name} ({self.table.tabular_id})"


def list_dropped(warehouse: WarehouseRef) -> list[DroppedTable]:
    """Return the restorable tables and views of a warehouse, latest first.

    Raises:
        NothingFoundError: If the warehouse was deleted, is inactive, or is hidden from this identity.
    """
    unseen = NothingFoundError(f"{warehouse} does not exist, is inactive, or is hidden from this identity")
    try:
        tables = list_deleted_tables(warehouse.client, warehouse.warehouse_id)
    except NotFoundError:
        raise unseen from None
    # For a minute after a warehouse was deactivated, servers return an empty list instead of refusing.
    if not tables and not warehouse.client.is_active(warehouse.warehouse_id):
        raise unseen
    return [DroppedTable(warehouse, table) for table in tables]


def find_by_name(warehouse: WarehouseRef, name: QualifiedName) -> list[DroppedTable]:
    """Return the dropped tables and views that had a name, latest first.

    Raises:
        NothingFoundError: If there is none.
    """
    dropped_tables = list_dropped(warehouse)
    if matches := [table for table in dropped_tables if table.name.same_as(name)]:
        return matches
    if live := _find_obstacle(warehouse, name):
        raise NothingFoundError(f"`{name}` is not dropped: the {live.kind} exists ({live.tabular_id})")
    live_warehouse = warehouses.get(warehouse.client, warehouse.warehouse_id)
    keeps = not live_warehouse or live_warehouse["delete-profile"]["type"] == "soft"
    hint = "" if keeps else " The warehouse has no soft deletion: dropped tables are deleted immediately."
    names = format_names(str(table.name) for table in dropped_tables)
    raise NothingFoundError(f"`{name}` cannot be restored in {warehouse}. Restorable: {names}.{hint}")


def bring_back(dropped_table: DroppedTable) -> None:
    """Undrop a table or view.

    Raises:
        NotOwnedError: If another table or view has its name now.
        NothingFoundError: If it has expired or was purged.
    """
    warehouse, table, name = dropped_table.warehouse, dropped_table.table, dropped_table.name
    target = Tabular(name.namespace, name.name, cast(Kind, table.kind), table.tabular_id, dropped=True)
    try:
        tabulars.undrop(warehouse.client, warehouse.warehouse_id, target)
    except AlreadyExistsError:
        taken = _find_obstacle(warehouse, name)
        by = f"{taken.kind} {taken.tabular_id}" if taken else "another table or view"
        raise NotOwnedError(
            f"{dropped_table} is not restored: {by} in {warehouse} has its name now. Rename it"
            " (`ALTER TABLE ... RENAME TO ...`) or drop it, and run this again."
        ) from None
    except NotFoundError:
        raise NothingFoundError(f"{dropped_table} cannot be restored: it has expired or was purged") from None


def _find_obstacle(warehouse: WarehouseRef, name: QualifiedName) -> Tabular | None:
    try:
        tabular_list = tabulars.live(warehouse.client, warehouse.warehouse_id, name.namespace)
    except NotFoundError:
        return None
    return next((tabular for tabular in tabular_list if tabular.name.casefold() == name.name.casefold()), None)
