"""A catalog in a database for PyIceberg: unique locations, shared clients of the store, commits without a reload."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast
from uuid import uuid4

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import Table
from pyiceberg.table.update import TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from lakewright_spark.pyiceberg_client.file_io import OneRequestFileIO

MAX_FILE_IOS = 16
"""Clients of the store that a catalog keeps."""
_TABLE_SETTINGS = (
    *("commit.", "format-version", "gc.", "history.", "read.", "schema.", "write."),
    *("lakewright.policy.", "lakewright.migration", "lakewright.standby"),
)
"""Beginnings of table properties that no client of a store reads."""
_FILE_IO = f"{OneRequestFileIO.__module__}.{OneRequestFileIO.__name__}"
_VIEW = "VIEW"
"""Value of the column `iceberg_type`."""
_S3_SCHEMES = ("s3", "s3a", "s3n")


class DatabaseCatalog(SqlCatalog):
    """A catalog in a database.

    Every new table has a unique location, as with Java's `unique-table-location`. By default, the location consists of
    the table's name, so a new table with the old name of a renamed table shares its folder. Tables share the clients of
    the store, since each new client opens its own connections. PyIceberg 0.12 does neither.
    """

    def __init__(self, name: str, **properties: str) -> None:
        """Open the catalog."""
        super().__init__(name, **properties)
        self._open_file_io = lru_cache(MAX_FILE_IOS)(_open_file_io)

    def _get_default_warehouse_location(self, database_name: str, table_name: str) -> str:
        return f"{super()._get_default_warehouse_location(database_name, table_name)}-{uuid4().hex}"

    def _load_file_io(self, properties: Mapping[str, Any] | None = None, location: str | None = None) -> FileIO:
        settings = {**self.properties, **(properties or {})}
        shared = frozenset((key, value) for key, value in settings.items() if not key.startswith(_TABLE_SETTINGS))
        return self._open_file_io(shared, (location or "").partition("://")[0])

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        location = orm_table.metadata_location
        if not location:
            raise NoSuchTableError(f"table {orm_table.table_namespace}.{orm_table.table_name} has no metadata file")
        metadata = FromInputFile.table_metadata(self._load_file_io(location=location).new_input(location))
        identifier = (*Catalog.identifier_to_tuple(orm_table.table_namespace), orm_table.table_name)
        return Table(identifier, metadata, location, self._load_file_io(metadata.properties, location), self)

    def commit_loaded(self, table: Table, updates: tuple[TableUpdate, ...]) -> None:
        """Commit updates to a table as it was loaded, and let `table` have the new metadata.

        Unlike `commit_table`, this does not load the table again, and refuses to change a table that another writer
        has changed.

        Raises:
            CommitFailedException: Another writer has changed the table since it was loaded.
        """
        identifier, old = table.name(), table.metadata_location
        staged = self._update_and_stage_table(table, identifier, (), updates)
        # Its name has a new UUID: no file of this name exists.
        ToOutputFile.table_metadata(staged.metadata, staged.io.new_output(staged.metadata_location), overwrite=True)
        if not self.swap_pointer(identifier, old, staged.metadata_location):
            raise CommitFailedException(f"table {'.'.join(identifier)} was changed by another writer")
        table.metadata, table.metadata_location = staged.metadata, staged.metadata_location

    def create_namespace(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        """Create a namespace.

        Raises:
            NamespaceAlreadyExistsError: It exists. PyIceberg looks for it and then inserts it, so that the database
                refuses a namespace that another process creates at the same time.
        """
        try:
            super().create_namespace(namespace, properties)
        except IntegrityError:
            name = ".".join(Catalog.identifier_to_tuple(namespace))
            raise NamespaceAlreadyExistsError(f"namespace {name} already exists") from None

    def list_views(self, namespace: str | Identifier) -> list[Identifier]:
        """Return the names of a namespace's views, which Iceberg's Java catalog writes and PyIceberg cannot read."""
        if self._schema_version != "v1":
            return []
        path = Catalog.identifier_to_tuple(namespace)
        query = select(IcebergTables.table_name).where(
            IcebergTables.catalog_name == self.name,
            IcebergTables.table_namespace == ".".join(path),
            IcebergTables.iceberg_type == _VIEW,
        )
        with Session(self.engine) as session:
            return [(*path, name) for name in session.scalars(query)]

    def swap_pointer(self, identifier: Identifier, old: str, new: str) -> bool:
        """Let a table have another metadata file, and return whether it had the expected file until then."""
        *namespace, name = identifier
        swap = (
            update(IcebergTables)
            .where(
                IcebergTables.catalog_name == self.name,
                IcebergTables.table_namespace == ".".join(namespace),
                IcebergTables.table_name == name,
                IcebergTables.metadata_location == old,
            )
            .values(metadata_location=new, previous_metadata_location=old)
        )
        with Session(self.engine) as session:
            was_swapped = cast(Any, session.execute(swap)).rowcount == 1
            session.commit()
        return was_swapped


def _open_file_io(settings: frozenset[tuple[str, Any]], scheme: str) -> FileIO:
    """Return a client of the store for locations of a scheme."""
    implementation = {"py-io-impl": _FILE_IO} if scheme in _S3_SCHEMES else {}
    return load_file_io({**implementation, **dict(settings)}, f"{scheme}://" if scheme else None)
