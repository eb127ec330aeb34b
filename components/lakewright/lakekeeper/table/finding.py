"""Where a table is that is known by its uuid: under its name, under another one, among the dropped ones, or nowhere."""

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
    """A table that can be used, with its metadata."""

    path: Path
    name: str
    metadata: Metadata

    @property
    def table_id(self) -> str:
        """Its uuid, which a renamed table keeps and one made again does not."""
        return str(self.metadata["table-uuid"])


def find_by_name(client: Client, warehouse_id: str, path: Path, name: str) -> LoadedTable | None:
    """The table of a name."""
    metadata = tables.load(client, warehouse_id, path, name)
    return None if metadata is None else LoadedTable(path, name, metadata)


def elsewhere(client: Client, warehouse_id: str, path: Path, table_id: str) -> LoadedTable | Tabular | None:
    """A table that is not under its name: renamed, or (as a Tabular) soft-deleted. Looks at its namespace first."""
    if found := _listed(client, warehouse_id, path, table_id):
        return find_by_name(client, warehouse_id, found.namespace, found.name)
    dropped = next((one for one in tabulars.dropped(client, warehouse_id) if one.tabular_id == table_id), None)
    if dropped:
        return dropped
    pending = [one.path for one in namespaces.children(client, warehouse_id)]
    while pending:
        other = pending.pop(0)
        if other != path and (found := _listed(client, warehouse_id, other, table_id)):
            return find_by_name(client, warehouse_id, found.namespace, found.name)
        pending += [one.path for one in namespaces.children(client, warehouse_id, other)]
    return None


def _listed(client: Client, warehouse_id: str, path: Path, table_id: str) -> Tabular | None:
    try:
        there = tabulars.listed(client, warehouse_id, path, "table")
        return next((one for one in there if one.tabular_id == table_id), None)
    except NotFoundError:
        return None
