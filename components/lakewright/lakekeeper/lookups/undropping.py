"""Restore dropped tables and views: find them by name, and undrop them unless their name is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from lakewright.lakekeeper.api.catalog import tabulars
from lakewright.lakekeeper.api.catalog.tabulars import Kind, Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import AlreadyExistsError, NotFoundError, NothingFoundError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.lookups.base import listed
from lakewright.lakekeeper.lookups.catalog import DeletedTable, deleted_tables
from lakewright.lakekeeper.provider.errors import NotOwnedError
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


def dropped(warehouse: WarehouseRef) -> list[DroppedTable]:
    """Return the restorable tables and views of a warehouse, latest first.

    Raises:
        NothingFoundError: If the warehouse is gone, inactive, or hidden from this identity.
    """
    unseen = NothingFoundError(f"{warehouse} is gone, inactive, or hidden from this identity")
    try:
        found = deleted_tables(warehouse.client, warehouse.warehouse_id)
    except NotFoundError:
        raise unseen from None
    # For a minute after a warehouse was deactivated, servers return an empty list instead of refusing.
    if not found and not warehouse.client.is_active(warehouse.warehouse_id):
        raise unseen
    return [DroppedTable(warehouse, table) for table in found]


def find_by_name(warehouse: WarehouseRef, name: QualifiedName) -> list[DroppedTable]:
    """Return the dropped tables and views that had a name, latest first.

    Raises:
        NothingFoundError: If there is none.
    """
    there = dropped(warehouse)
    if found := [table for table in there if table.name.same_as(name)]:
        return found
    if live := _in_the_way(warehouse, name):
        raise NothingFoundError(f"`{name}` is not dropped: the {live.kind} exists ({live.tabular_id})")
    found = warehouses.get(warehouse.client, warehouse.warehouse_id)
    keeps = not found or found["delete-profile"]["type"] == "soft"
    hint = "" if keeps else " The warehouse has no soft deletion: dropped tables are deleted immediately."
    names = listed(str(table.name) for table in there)
    raise NothingFoundError(f"`{name}` cannot be restored in {warehouse}. Restorable: {names}.{hint}")


def bring_back(wanted: DroppedTable) -> None:
    """Undrop a table or view.

    Raises:
        NotOwnedError: If another table or view has its name now.
        NothingFoundError: If it has expired or was purged.
    """
    warehouse, table, name = wanted.warehouse, wanted.table, wanted.name
    target = Tabular(name.namespace, name.name, cast(Kind, table.kind), table.tabular_id, dropped=True)
    try:
        tabulars.undrop(warehouse.client, warehouse.warehouse_id, target)
    except AlreadyExistsError:
        taken = _in_the_way(warehouse, name)
        by = f"{taken.kind} {taken.tabular_id}" if taken else "another table or view"
        raise NotOwnedError(
            f"{wanted} is not restored: {by} in {warehouse} has its name now. Rename that one"
            " (`ALTER TABLE ... RENAME TO ...`) or drop it, and run this again."
        ) from None
    except NotFoundError:
        raise NothingFoundError(f"{wanted} cannot be restored: it has expired or was purged") from None


def _in_the_way(warehouse: WarehouseRef, name: QualifiedName) -> Tabular | None:
    try:
        there = tabulars.live(warehouse.client, warehouse.warehouse_id, name.namespace)
    except NotFoundError:
        return None
    return next((tabular for tabular in there if tabular.name.casefold() == name.name.casefold()), None)
