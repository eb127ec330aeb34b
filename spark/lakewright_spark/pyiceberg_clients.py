"""PyIceberg's catalogs with what its own lack: locations of one table each, in a database."""

from __future__ import annotations

from uuid import uuid4

from pyiceberg.catalog.sql import SqlCatalog


class UniqueLocationSqlCatalog(SqlCatalog):
    """A catalog in a database that gives every new table a location of its own, as Java's `unique-table-location`.

    By default a location is made of the table's name alone, so that a table that is made under the name of a renamed
    one shares its files' folder. PyIceberg 0.12 has no such setting.
    """

    def _get_default_warehouse_location(self, database_name: str, table_name: str) -> str:
        return f"{super()._get_default_warehouse_location(database_name, table_name)}-{uuid4().hex}"
