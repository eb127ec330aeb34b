"""Find a table by its uuid: under its name, under another name, or among the dropped tables."""

from __future__ import annotations

from dataclasses import dataclass

from lakewright.lakekeeper.api.catalog import namespaces, tables, tabulars
from lakewright.lakekeeper.api.catalog.namespaces import Path
from lakewright.lakekeeper.api.catalog.tables import Metadata
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError


@dataclass(frozen=True)
class LoadedTable:
    """A table that is not dropped, with its metadata."""

    path: Path
    name: str
    metadata: Metadata

    @property
    def table_id(self) -> str:
        """Uuid of the table. A renamed table keeps it, a recreated table does not."""
        return str(self.metadata["table-uuid"])


def find_by_name(client: Client, warehouse_id: str, path: Path, name: str) -> LoadedTable | None:
    """Return the table with a name, or None."""
    metadata = tables.load(client, warehouse_id, path, name)
    return None if metadata is None else LoadedTable(path, name, metadata)


def elsewhere(client: Client, warehouse_id: str, path: Path, table_id: str) -> LoadedTable | Tabular | None:
    """Find a table that was renamed, or (returned as a Tabular) soft-deleted. Search its namespace first."""
    if tabular := _find_in_namespace(client, warehouse_id, path, table_id):
        return find_by_name(client, warehouse_id, tabular.namespace, tabular.name)
    dropped = next(
        (table for table in tabulars.list_dropped(client, warehouse_id) if table.tabular_id == table_id), None
    )
    if dropped:
        return dropped
    pending = [child.path for child in namespaces.list_children(client, warehouse_id)]
    while pending:
        other = pending.pop(0)
        if other != path and (tabular := _find_in_namespace(client, warehouse_id, other, table_id)):
            return find_by_name(client, warehouse_id, tabular.namespace, tabular.name)
        pending += [child.path for child in namespaces.list_children(client, warehouse_id, other)]
    return None


def _find_in_namespace(client: Client, warehouse_id: str, path: Path, table_id: str) -> Tabular | None:
    try:
        tabulars_of_namespace = tabulars.list_kind(client, warehouse_id, path, "table")
        return next((table for table in tabulars_of_namespace if table.tabular_id == table_id), None)
    except NotFoundError:
        return None
