"""Bringing back what was dropped: which table is meant, what may stand in its way, and that it is there again."""

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
    """Where to look."""

    name: str
    warehouse_id: str
    client: Client

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"warehouse `{self.name}` ({self.warehouse_id}) at {self.client.endpoint}"


@dataclass(frozen=True)
class DroppedTable:
    """A dropped table or view, and where it was."""

    warehouse: WarehouseRef
    table: DeletedTable

    @property
    def name(self) -> QualifiedName:
        """Its full name."""
        return QualifiedName(self.warehouse.name, tuple(self.table.namespace.split(".")), self.table.name)

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"{self.table.kind} {self.name} ({self.table.tabular_id})"


def dropped(warehouse: WarehouseRef) -> list[DroppedTable]:
    """What can be brought back in a warehouse, last ones first. Raises NothingFoundError if that cannot be seen."""
    unseen = NothingFoundError(f"{warehouse} is gone, inactive, or hidden from this identity")
    try:
        found = deleted_tables(warehouse.client, warehouse.warehouse_id)
    except NotFoundError:
        raise unseen from None
    # For a minute after a warehouse was deactivated, servers list nothing instead of refusing.
    if not found and not warehouse.client.is_active(warehouse.warehouse_id):
        raise unseen
    return [DroppedTable(warehouse, one) for one in found]


def find_by_name(warehouse: WarehouseRef, name: QualifiedName) -> list[DroppedTable]:
    """The dropped tables that had a name, last ones first; at least one. Raises NothingFoundError."""
    there = dropped(warehouse)
    if found := [one for one in there if one.name.same_as(name)]:
        return found
    if live := _in_the_way(warehouse, name):
        raise NothingFoundError(f"`{name}` is not dropped: the {live.kind} is there ({live.tabular_id})")
    found = warehouses.get(warehouse.client, warehouse.warehouse_id)
    keeps = not found or found["delete-profile"]["type"] == "soft"
    hint = "" if keeps else " It has no soft deletion: what is dropped there is gone at once."
    names = listed(str(one.name) for one in there)
    raise NothingFoundError(f"no `{name}` can be brought back in {warehouse}; what can be: {names}.{hint}")


def bring_back(wanted: DroppedTable) -> None:
    """Undrop a table or view. Raises NotOwnedError if its name is taken by now, NothingFoundError if it is too late."""
    warehouse, table, name = wanted.warehouse, wanted.table, wanted.name
    target = Tabular(name.namespace, name.name, cast(Kind, table.kind), table.tabular_id, dropped=True)
    try:
        tabulars.undrop(warehouse.client, warehouse.warehouse_id, target)
    except AlreadyExistsError:
        taken = _in_the_way(warehouse, name)
        by = f"{taken.kind} {taken.tabular_id}" if taken else "another table or view"
        raise NotOwnedError(
            f"{wanted} is not brought back: {by} in {warehouse} has its name by now. Rename that one"
            " (`ALTER TABLE ... RENAME TO ...`) or drop it, and run this again."
        ) from None
    except NotFoundError:
        raise NothingFoundError(f"{wanted} is gone for good: its time was up, or it was purged") from None


def _in_the_way(warehouse: WarehouseRef, name: QualifiedName) -> Tabular | None:
    try:
        there = tabulars.live(warehouse.client, warehouse.warehouse_id, name.namespace)
    except NotFoundError:
        return None
    return next((one for one in there if one.name.casefold() == name.name.casefold()), None)
